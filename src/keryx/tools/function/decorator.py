"""From a typed function to a tool.

Puts together what the declaration, the signature and the docstring say. Running the tool and
what its result becomes are the engine's affair.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Generic, ParamSpec, TypeVar, cast, overload

import msgspec

from keryx.errors import InvalidToolError
from keryx.ports.effects import EXCLUSIVE, Effects, EffectsOf
from keryx.ports.tool import Isolation, Replay, Risk, ToolContext
from keryx.ports.workers import Address
from keryx.tools.function import foreign
from keryx.tools.function.arguments import ArgumentsParser
from keryx.tools.function.declaration import (
    NO_RISK,
    Declaration,
    check_context,
    check_declaration,
    check_function,
    isolation_of,
    judgement_of,
)
from keryx.tools.function.docstring import read_docstring
from keryx.tools.function.signature import Signature, names_around, read_signature

PREVIEW_LIMIT = 100
"""Characters of a preview: one line of a narrow screen."""

P = ParamSpec("P")
R = TypeVar("R")


class _Doc:
    """The function's docstring on a tool, and the class's own on the class."""

    def __init__(self, own: str) -> None:
        self._own = own

    def __get__(self, tool: FunctionTool[..., Any] | None, owner: type) -> str | None:
        return self._own if tool is None else tool.__wrapped__.__doc__


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FunctionTool(Generic[P, R]):
    __doc__ = _Doc(  # pyright: ignore[reportAssignmentType]  # read, it is a str or None
        "A function as a tool. Calling it calls the function."
    )

    name: str
    description: str
    isolation: Isolation
    replay: Replay
    timeout: float | None
    container: bool
    _function: Callable[P, R]
    _declared: Declaration
    _signature: Signature
    _parser: ArgumentsParser
    _judge: Callable[[Any, Path], Risk]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<tool {self.name}>"

    @property
    def __wrapped__(self) -> Callable[P, R]:
        return self._function

    @property
    def __name__(self) -> str:
        return self._function.__name__

    @property
    def address(self) -> Address:
        """How another process finds it."""
        function = self._function
        told = (function.__module__, function.__qualname__, self.name)
        return Address(f"{__name__}:{imported.__name__}", told)

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The JSON schema of the arguments."""
        return self._signature.schema

    def parse(self, arguments: bytes | str | Mapping[str, Any]) -> Any:
        """Validate what the model sent, into an object with the parameters as attributes."""
        return self._parser.parse(arguments)

    def effects(self, args: Any) -> Effects:
        declared = self._declared.effects
        return declared if isinstance(declared, Effects) else declared(args)

    def risk(self, args: Any, workspace: Path) -> Risk:
        return self._judge(args, workspace)

    def preview(self, args: Any) -> str:
        """One short line for screens; never raises."""
        if self._declared.preview is not None:
            try:
                return _one_line(self._declared.preview(args))
            except Exception:  # noqa: BLE001, S110  # a line for a screen must not end a call
                pass
        return _telling(self._signature.names, args)

    def invoke(self, args: Any, context: ToolContext) -> Any:
        """Call the function: a coroutine if it is async, else what it returns."""
        signature = self._signature
        given: dict[str, Any] = {name: getattr(args, name) for name in signature.names}
        if signature.context is not None:
            given[signature.context] = context
        function: Callable[..., Any] = self._function
        return function(**given)


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    effects: Effects | EffectsOf = EXCLUSIVE,
    replay: Replay = "never",
    isolation: Isolation | None = None,
    timeout: float | None = None,
    risk: Risk | Callable[..., Risk] = NO_RISK,
    preview: Callable[[Any], str] | None = None,
    container: bool = False,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    effects: Effects | EffectsOf = EXCLUSIVE,
    replay: Replay = "never",
    isolation: Isolation | None = None,
    timeout: float | None = None,
    risk: Risk | Callable[..., Risk] = NO_RISK,
    preview: Callable[[Any], str] | None = None,
    container: bool = False,
) -> Any:
    """Turn a typed function into a tool: `@tool`, or `@tool(name=..., ...)`.

    The schema comes from the signature, the description from the docstring. A parameter
    annotated `ToolContext` gets the call's context. Raises `InvalidToolError`.
    """
    declared = Declaration(
        name, description, effects, replay, isolation, timeout, risk, preview, container
    )

    def decorate(function: Callable[..., Any]) -> FunctionTool[..., Any]:
        return _made(function, declared, _caller(inspect.currentframe()))

    if function is None:
        return decorate
    return _made(function, declared, _caller(inspect.currentframe()))


def imported(module: str, name: str, called: str) -> FunctionTool[..., Any]:
    """Find a tool by where its function is. For processes that tools run in."""
    found: object = getattr(importlib.import_module(module), name)
    if not isinstance(found, FunctionTool):
        found = tool(name=called, description=called)(cast("Callable[..., Any]", found))
    return cast("FunctionTool[..., Any]", found)


def _caller(frame: FrameType | None) -> FrameType | None:
    return None if frame is None else frame.f_back


def _made(
    function: Callable[..., Any], declared: Declaration, frame: FrameType | None
) -> FunctionTool[..., Any]:
    try:
        check_function(function)
        name = function.__name__ if declared.name is None else declared.name
        check_declaration(name, declared)
        isolation = isolation_of(function, declared)
        docstring = read_docstring(function.__doc__)
        description = _description(declared.description or docstring.text)
        signature = read_signature(function, docstring.parameters, names_around(function, frame))
        if signature.context is not None:
            check_context(isolation)
    except InvalidToolError as error:
        where = getattr(function, "__qualname__", None) or repr(function)
        raise InvalidToolError(f"{where} cannot be a tool: {error}") from error
    return FunctionTool(
        name=name,
        description=description,
        isolation=isolation,
        replay=declared.replay,
        timeout=declared.timeout,
        container=declared.container,
        _function=function,
        _declared=declared,
        _signature=signature,
        _parser=ArgumentsParser(name, signature.struct, signature.schema),
        _judge=judgement_of(declared.risk),
    )


def _description(text: str) -> str:
    description = inspect.cleandoc(text).strip()
    if not description:
        raise InvalidToolError(
            "nothing says what it does, and a model cannot use what it knows nothing of: "
            'write a docstring, or @tool(description="...")'
        )
    return description


def _telling(names: tuple[str, ...], args: Any) -> str:
    """The first line of the first argument that is a text, else the first that says something."""
    values = {name: getattr(args, name, None) for name in names}
    for value in values.values():
        if isinstance(value, str) and (line := _one_line(value)):
            return line
    for name, value in values.items():
        if value is None or isinstance(value, str):
            continue
        try:
            shown = msgspec.json.encode(value, enc_hook=foreign.encode).decode()
        except (TypeError, ValueError, NotImplementedError, RecursionError, OverflowError):
            continue
        return _one_line(f"{name}={shown}")
    return ""


def _one_line(text: str) -> str:
    """The first line that says something, fit for a screen: no control characters."""
    # A line break or an escape code in an argument must not draw elsewhere on a terminal.
    lines = (line.strip() for line in text[: 100 * PREVIEW_LIMIT].splitlines())
    line = next((line for line in lines if line), "")
    line = "".join(character if character.isprintable() else " " for character in line)
    return line if len(line) <= PREVIEW_LIMIT else line[: PREVIEW_LIMIT - 1] + "…"
