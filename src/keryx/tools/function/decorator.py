"""Turns a typed function into a tool.

It combines the declaration, the signature and the docstring. The engine runs the tool and handles
its result.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Generic, ParamSpec, TypeVar, cast, overload

import msgspec

from keryx.errors import InvalidToolError
from keryx.ports.effects import EXCLUSIVE, Effects, EffectsOf
from keryx.ports.tool import Isolation, Replay, Risk
from keryx.ports.tool_context import ToolContext
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
    risk_function,
)
from keryx.tools.function.docstring import read_docstring
from keryx.tools.function.signature import Signature, names_around, read_signature

PREVIEW_LIMIT = 100
"""The most characters of a preview: one line of a narrow screen."""

P = ParamSpec("P")
R = TypeVar("R")


class _ToolDoc:
    """The function's docstring on a tool, and the class's own on the class."""

    def __init__(self, class_doc: str) -> None:
        self._class_doc = class_doc

    def __get__(self, tool: FunctionTool[..., Any] | None, owner: type) -> str | None:
        return self._class_doc if tool is None else tool.__wrapped__.__doc__


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FunctionTool(Generic[P, R]):
    __doc__ = _ToolDoc(  # pyright: ignore[reportAssignmentType]  # read, it is a str or None
        "A function as a tool. Calling it calls the function."
    )

    name: str
    description: str
    isolation: Isolation
    replay: Replay
    timeout: float | None
    container: bool
    aliases: tuple[str, ...]
    _function: Callable[P, R]
    _declaration: Declaration
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
        """How another process imports this tool."""
        function = self._function
        arguments = (function.__module__, function.__qualname__, self.name)
        return Address(f"{__name__}:{import_tool.__name__}", arguments)

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The JSON schema of the arguments."""
        return self._signature.schema

    def parse(self, arguments: bytes | str | Mapping[str, Any]) -> Any:
        """Validate what the model sent, into an object with the parameters as attributes."""
        return self._parser.parse(arguments)

    def effects(self, args: Any) -> Effects:
        declaration = self._declaration.effects
        return declaration if isinstance(declaration, Effects) else declaration(args)

    def risk(self, args: Any, workspace: Path) -> Risk:
        return self._judge(args, workspace)

    def preview(self, args: Any) -> str:
        """Return one short line for screens; never raises."""
        if self._declaration.preview is not None:
            try:
                return _one_line(self._declaration.preview(args))
            except Exception:  # noqa: BLE001, S110  # a line for a screen must not end a call
                pass
        return _default_preview(self._signature.names, args)

    def invoke(self, args: Any, context: ToolContext) -> Any:
        """Call the function: a coroutine if it is async, else what it returns."""
        signature = self._signature
        keywords: dict[str, Any] = {name: getattr(args, name) for name in signature.names}
        if signature.context is not None:
            keywords[signature.context] = context
        function: Callable[..., Any] = self._function
        return function(**keywords)


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
    aliases: Sequence[str] = (),
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
    aliases: Sequence[str] = (),
) -> Any:
    """Turn a typed function into a tool: `@tool`, or `@tool(name=..., ...)`.

    The schema comes from the signature, the description from the docstring. A parameter
    annotated `ToolContext` gets the call's context. `aliases` are other names by which it can be
    called; models are not told of them. Raises `InvalidToolError`.
    """
    declaration = Declaration(
        name,
        description,
        effects,
        replay,
        isolation,
        timeout,
        risk,
        preview,
        container,
        aliases,
    )

    def decorate(function: Callable[..., Any]) -> FunctionTool[..., Any]:
        return _create_tool(function, declaration, _caller(inspect.currentframe()))

    if function is None:
        return decorate
    return _create_tool(function, declaration, _caller(inspect.currentframe()))


def import_tool(module: str, name: str, tool_name: str) -> FunctionTool[..., Any]:
    """Import a tool by the place of its function. Used in the processes that run tools."""
    candidate: object = getattr(importlib.import_module(module), name)
    if not isinstance(candidate, FunctionTool):
        candidate = tool(name=tool_name, description=tool_name)(
            cast("Callable[..., Any]", candidate)
        )
    return cast("FunctionTool[..., Any]", candidate)


def _caller(frame: FrameType | None) -> FrameType | None:
    return None if frame is None else frame.f_back


def _create_tool(
    function: Callable[..., Any], declaration: Declaration, frame: FrameType | None
) -> FunctionTool[..., Any]:
    try:
        check_function(function)
        name = function.__name__ if declaration.name is None else declaration.name
        check_declaration(name, declaration)
        isolation = isolation_of(function, declaration)
        docstring = read_docstring(function.__doc__)
        description = _description(declaration.description or docstring.text)
        signature = read_signature(function, docstring.parameters, names_around(function, frame))
        if signature.context is not None:
            check_context(isolation)
    except InvalidToolError as error:
        function_name = getattr(function, "__qualname__", None) or repr(function)
        raise InvalidToolError(f"{function_name} cannot be a tool: {error}") from error
    return FunctionTool(
        name=name,
        description=description,
        isolation=isolation,
        replay=declaration.replay,
        timeout=declaration.timeout,
        container=declaration.container,
        aliases=tuple(declaration.aliases),
        _function=function,
        _declaration=declaration,
        _signature=signature,
        _parser=ArgumentsParser(name, signature.struct, signature.schema),
        _judge=risk_function(declaration.risk),
    )


def _description(text: str) -> str:
    description = inspect.cleandoc(text).strip()
    if not description:
        raise InvalidToolError(
            "it has no description, and a model needs one to use it: "
            'write a docstring, or @tool(description="...")'
        )
    return description


def _default_preview(names: tuple[str, ...], args: Any) -> str:
    """Return the first line of the first text argument, else the first argument with a value."""
    values = {name: getattr(args, name, None) for name in names}
    for value in values.values():
        if isinstance(value, str) and (line := _one_line(value)):
            return line
    for name, value in values.items():
        if value is None or isinstance(value, str):
            continue
        try:
            text = msgspec.json.encode(value, enc_hook=foreign.encode).decode()
        except (TypeError, ValueError, NotImplementedError, RecursionError, OverflowError):
            continue
        return _one_line(f"{name}={text}")
    return ""


def _one_line(text: str) -> str:
    """Return the first line with text, without control characters."""
    # A line break or an escape code in an argument must not draw elsewhere on a terminal.
    lines = (line.strip() for line in text[: 100 * PREVIEW_LIMIT].splitlines())
    line = next((line for line in lines if line), "")
    line = "".join(character if character.isprintable() else " " for character in line)
    return line if len(line) <= PREVIEW_LIMIT else line[: PREVIEW_LIMIT - 1] + "…"
