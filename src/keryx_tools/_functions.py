"""Functions for the granted tools, as their schemas describe them.

KERYX_TOOLS_GRANTED holds the grants, as a path or as JSON; a tool that is not in it gets no
function. This module knows nothing of how a call gets to the host.
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
# How long a call may take by default, in seconds.
PATIENCE = 300.0
# Extra seconds for a tool with a longer `timeout` of its own, to report that it is over.
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
    """One call with its checked arguments."""

    tool: str
    arguments: dict[str, Any]
    seconds: float | None


class Grant:
    """A tool that may be called."""

    def __init__(self, described: dict[str, Any]) -> None:
        self.name = str(described["name"])
        self.aliases: list[str] = described.get("aliases") or []
        self.description = str(described.get("description") or "")
        schema: Schema = described.get("parameters") or {}
        self._properties: dict[str, Schema] = schema.get("properties") or {}
        self._required: list[str] = schema.get("required") or []
        self._open = bool(schema.get("additionalProperties"))
        positional: list[str] | None = described.get("positional")
        self._positional = list(self._properties) if positional is None else positional

    def bind(self, args: tuple[Any, ...], named: dict[str, Any]) -> Bound:
        """Return the arguments by name; raise `TypeError` as Python itself would."""
        seconds: Any = named.pop("_deadline", _UNSET)
        if len(args) > len(self._positional):
            most = len(self._positional)
            raise TypeError(f"{self.name}() takes {most} positional arguments, not {len(args)}")
        arguments = {self._positional[at]: value for at, value in enumerate(args)}
        for name, value in named.items():
            if name in arguments:
                raise TypeError(f"{self.name}() got multiple values for argument {name!r}")
            if name not in self._properties and not self._open:
                names = ", ".join(self._properties) or "none"
                raise TypeError(f"{self.name}() has no argument {name!r}; it has: {names}")
            arguments[name] = value
        arguments = {
            name: arguments[name] for name in arguments if not self._unset(name, arguments)
        }
        missing = [name for name in self._required if name not in arguments]
        if missing:
            raise TypeError(f"{self.name}() misses: {', '.join(missing)}")
        return Bound(
            self.name, arguments, _default_deadline(arguments) if seconds is _UNSET else seconds
        )

    def signature(self) -> inspect.Signature:
        kinds = inspect.Parameter
        order = [
            *self._positional,
            *(name for name in self._properties if name not in self._positional),
        ]
        valid_names = [
            name for name in order if name.isidentifier() and not keyword.iskeyword(name)
        ]
        parameters: list[inspect.Parameter] = []
        optional = False
        for name in valid_names:
            by_position = name in self._positional
            default: Any = kinds.empty
            if name not in self._required:
                default, optional = self._properties.get(name, {}).get("default"), True
            elif optional and by_position:
                default = ...  # Python needs a default after an optional parameter
            kind = kinds.POSITIONAL_OR_KEYWORD if by_position else kinds.KEYWORD_ONLY
            parameters.append(kinds(name, kind, default=default, annotation=self._annotation(name)))
        parameters.append(
            kinds("_deadline", kinds.KEYWORD_ONLY, default=PATIENCE, annotation=Optional[float])
        )
        if self._open or len(valid_names) < len(order):
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
        python_type = type_of(schema)
        if name in self._required or "default" in schema:
            return python_type
        return Optional[python_type]

    def _unset(self, name: str, arguments: dict[str, Any]) -> bool:
        """Return whether the argument is None, and None means that it was left out."""
        return (
            arguments[name] is None
            and name not in self._required
            and not _takes_null(self._properties.get(name, {}))
        )


_UNSET = object()


def _default_deadline(arguments: dict[str, Any]) -> float:
    own = arguments.get("timeout")
    if isinstance(own, (int, float)) and own + GRACE > PATIENCE:
        return own + GRACE
    return PATIENCE


def type_of(schema: Schema) -> Any:
    """Return the Python type that a schema describes; `Any` if there is none."""
    if "const" in schema or "enum" in schema:
        values = schema.get("enum") or [schema.get("const")]
        plain = all(value is None or isinstance(value, (str, int)) for value in values)
        return Literal[tuple(values)] if plain else Any
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return _union([type_of(option) for option in schema[choice]])
    named: str | list[str] | None = schema.get("type")
    if isinstance(named, list):
        return _union([type_of({**schema, "type": option}) for option in named])
    if named == "array":
        return typing.Sequence[type_of(schema.get("items") or {})]
    return _TYPES.get(named or "", Any)


def _union(types: list[Any]) -> Any:
    return Union[tuple(types)] if types else Any


def _takes_null(schema: Schema) -> bool:
    python_type = type_of(schema)
    return python_type in (Any, None) or type(None) in getattr(python_type, "__args__", ())


class Grants:
    """The granted tools, read at the first use and again if the environment changes."""

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
        grants = [Grant(tool) for tool in described]
        named = {alias: grant for grant in grants for alias in grant.aliases}
        return {**named, **{grant.name: grant for grant in grants}}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ImportError(f"{GRANTED} cannot be read: {type(error).__name__}: {error}") from error


GRANTS = Grants()


def describe_function(function: Callable[..., Any], grant: Grant, module: str) -> None:
    """Give the function the name, signature and documentation of the tool."""
    signature = grant.signature()
    function.__name__ = function.__qualname__ = grant.name
    function.__module__ = module
    function.__doc__ = grant.documentation()
    function.__annotations__ = {
        name: parameter.annotation for name, parameter in signature.parameters.items()
    }
    function.__annotations__["return"] = Result
    # `parallel` checks arguments with the first, and `inspect` reads the second.
    function.__grant__ = grant  # pyright: ignore[reportFunctionMemberAccess] (functions take any)
    function.__signature__ = signature


def not_granted_error(name: str) -> Exception:
    """Return the error for a tool that is not granted."""
    granted = ", ".join(sorted(GRANTS.all())) or "none"
    text = f"no tool {name!r} is granted to this script; granted: {granted}"
    # `from keryx_tools import name` would drop the text of an AttributeError; others need one.
    asking = sys._getframe(2)  # pyright: ignore[reportPrivateUsage] (nothing else names the caller)
    importing = asking.f_code.co_name == "_handle_fromlist"
    return (ImportError if importing else AttributeError)(text)
