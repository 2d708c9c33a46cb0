"""Functions for the tools that were granted, as their schemas describe them.

The grant is what KERYX_TOOLS_GRANTED says, a path or the JSON itself, and nothing else: no grant,
no function. It refuses to know how a call gets to the host.
"""

from __future__ import annotations

import inspect
import json
import keyword
import os
import sys
import typing
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Optional, Union, cast

from keryx_tools._results import Result

if TYPE_CHECKING:
    Schema = dict[str, Any]

GRANTED = "KERYX_TOOLS_GRANTED"
# How long a call may take unless its caller says otherwise.
PATIENCE = 300.0
# What a tool that was given a longer `timeout` of its own may need to say that it was over.
GRACE = 30.0

_TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "object": dict,
    "null": None,
}


class Bound(NamedTuple):
    """One call, ready to be made."""

    tool: str
    arguments: dict[str, Any]
    seconds: float | None


class Grant:
    """A tool that may be called."""

    def __init__(self, described: dict[str, Any]) -> None:
        self.name = str(described["name"])
        self.description = str(described.get("description") or "")
        schema: Schema = described.get("parameters") or {}
        self._properties: dict[str, Schema] = schema.get("properties") or {}
        self._required: list[str] = schema.get("required") or []
        self._open = bool(schema.get("additionalProperties"))
        given: list[str] | None = described.get("positional")
        self._positional = list(self._properties) if given is None else given

    def bind(self, args: tuple[Any, ...], named: dict[str, Any]) -> Bound:
        """The arguments by name. `TypeError` as Python itself would raise it."""
        seconds: Any = named.pop("_deadline", _UNSAID)
        if len(args) > len(self._positional):
            most = len(self._positional)
            raise TypeError(f"{self.name}() takes {most} positional arguments, not {len(args)}")
        arguments = {self._positional[at]: value for at, value in enumerate(args)}
        for name, value in named.items():
            if name in arguments:
                raise TypeError(f"{self.name}() got multiple values for argument {name!r}")
            if name not in self._properties and not self._open:
                known = ", ".join(self._properties) or "none"
                raise TypeError(f"{self.name}() has no argument {name!r}; it has: {known}")
            arguments[name] = value
        arguments = {
            name: arguments[name] for name in arguments if not self._unset(name, arguments)
        }
        missing = [name for name in self._required if name not in arguments]
        if missing:
            raise TypeError(f"{self.name}() misses: {', '.join(missing)}")
        return Bound(self.name, arguments, _patience(arguments) if seconds is _UNSAID else seconds)

    def signature(self) -> inspect.Signature:
        kinds = inspect.Parameter
        order = [
            *self._positional,
            *(name for name in self._properties if name not in self._positional),
        ]
        sayable = [name for name in order if name.isidentifier() and not keyword.iskeyword(name)]
        parameters: list[inspect.Parameter] = []
        optional = False
        for name in sayable:
            by_position = name in self._positional
            default: Any = kinds.empty
            if name not in self._required:
                default, optional = self._properties.get(name, {}).get("default"), True
            elif optional and by_position:
                default = ...  # Python has no way to say that it is required here
            kind = kinds.POSITIONAL_OR_KEYWORD if by_position else kinds.KEYWORD_ONLY
            parameters.append(kinds(name, kind, default=default, annotation=self._annotation(name)))
        parameters.append(
            kinds("_deadline", kinds.KEYWORD_ONLY, default=PATIENCE, annotation=Optional[float])
        )
        if self._open or len(sayable) < len(order):
            parameters.append(kinds("more", kinds.VAR_KEYWORD, annotation=Any))
        return inspect.Signature(parameters, return_annotation=Result)

    def documentation(self) -> str:
        lines = [
            f"    {name}: {schema.get('description') or 'see the signature'}"
            for name, schema in self._properties.items()
        ]
        lines.append("    _deadline: seconds after which to give up; None waits for ever")
        return "\n".join([self.description, "", "Arguments:", *lines])

    def _annotation(self, name: str) -> Any:
        schema = self._properties.get(name, {})
        found = type_of(schema)
        if name in self._required or "default" in schema:
            return found
        return Optional[found]

    def _unset(self, name: str, arguments: dict[str, Any]) -> bool:
        """Whether None means that the argument was left out, as the signature says it does."""
        return (
            arguments[name] is None
            and name not in self._required
            and not _takes_null(self._properties.get(name, {}))
        )


_UNSAID = object()


def _patience(arguments: dict[str, Any]) -> float:
    own = arguments.get("timeout")
    if isinstance(own, (int, float)) and own + GRACE > PATIENCE:
        return own + GRACE
    return PATIENCE


def type_of(schema: Schema) -> Any:
    """The Python type that a schema describes; `Any` where there is none."""
    if "const" in schema or "enum" in schema:
        values = schema.get("enum") or [schema.get("const")]
        plain = all(value is None or isinstance(value, (str, int)) for value in values)
        return Literal[tuple(values)] if plain else Any
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return _union([type_of(one) for one in schema[choice]])
    named: str | list[str] | None = schema.get("type")
    if isinstance(named, list):
        return _union([type_of({**schema, "type": one}) for one in named])
    if named == "array":
        return typing.Sequence[type_of(schema.get("items") or {})]
    return _TYPES.get(named or "", Any)


def _union(types: list[Any]) -> Any:
    return Union[tuple(types)] if types else Any


def _takes_null(schema: Schema) -> bool:
    found = type_of(schema)
    return found in (Any, None) or type(None) in getattr(found, "__args__", ())


class Grants:
    """What is granted, read when first asked for and again if the environment changes."""

    def __init__(self) -> None:
        self._source: str | None = None
        self._grants: dict[str, Grant] = {}

    def all(self) -> dict[str, Grant]:
        source = os.environ.get(GRANTED, "")
        if source != self._source:
            self._grants = _read(source)
            self._source = source
        return self._grants


def _read(source: str) -> dict[str, Grant]:
    if not source:
        return {}
    try:
        if not source.lstrip().startswith("["):
            with open(source, encoding="utf-8") as file:
                source = file.read()
        described = cast("list[dict[str, Any]]", json.loads(source))
        return {grant.name: grant for grant in map(Grant, described)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ImportError(f"{GRANTED} cannot be read: {type(error).__name__}: {error}") from error


GRANTS = Grants()


def dress(function: Callable[..., Any], grant: Grant, module: str) -> None:
    """Make the function look as if it had been written for the tool."""
    signature = grant.signature()
    function.__name__ = function.__qualname__ = grant.name
    function.__module__ = module
    function.__doc__ = grant.documentation()
    function.__annotations__ = {
        name: parameter.annotation for name, parameter in signature.parameters.items()
    }
    function.__annotations__["return"] = Result
    # By it `parallel` checks arguments, and by the other `inspect` finds them.
    function.__grant__ = grant  # pyright: ignore[reportFunctionMemberAccess] (functions take any)
    function.__signature__ = signature


def refused(name: str) -> Exception:
    """Why the module that asks has no such function."""
    granted = ", ".join(sorted(GRANTS.all())) or "none"
    text = f"no tool {name!r} is granted to this script; granted: {granted}"
    # `from keryx_tools import name` would drop the text of an AttributeError; others need one.
    asking = sys._getframe(2)  # pyright: ignore[reportPrivateUsage] (nothing else tells who asks)
    importing = asking.f_code.co_name == "_handle_fromlist"
    return (ImportError if importing else AttributeError)(text)
