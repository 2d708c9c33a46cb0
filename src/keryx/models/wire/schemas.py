"""JSON schemas in the dialects that APIs take, for structured answers and for tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import msgspec

_UNSUPPORTED: Final = frozenset(
    {
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "pattern",
        "minItems",
        "maxItems",
        "uniqueItems",
        "minProperties",
        "maxProperties",
        "$schema",
        "$id",
    }
)
"""Keywords that a strict grammar cannot follow; the answer is checked for them afterwards."""
_CHOICES: Final = ("allOf", "anyOf", "oneOf")
_NOT_AT_ROOT: Final = frozenset({*_CHOICES, "not", "enum", "const", "$ref"})
"""Keywords that the APIs refuse at the root of a tool's parameters."""
_DEEPEST: Final = 5
"""Levels of choices and references at the root; a reference may lead in a circle."""
_NAMED: Final = frozenset({"properties", "$defs", "definitions"})
"""Keywords whose values are schemas by name."""


def parameters_of(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the parameters of a tool as every API takes them: one object with properties.

    One tool with other parameters would have every request refused. What is lost here is not lost:
    the tool checks its arguments against the whole schema.
    """
    is_object = schema.get("type") == "object" and "properties" in schema
    if is_object and _NOT_AT_ROOT.isdisjoint(schema):
        return schema
    properties: dict[str, Any] = {}
    required: list[str] = []
    _collect(schema, schema, properties, required, depth=0)
    rest = {name: value for name, value in schema.items() if name not in _NOT_AT_ROOT}
    names = [name for name in dict.fromkeys(required) if name in properties]
    rest |= {"type": "object", "properties": properties}
    return {**rest, "required": names} if names or "required" in rest else rest


def _collect(
    part: Mapping[str, Any],
    root: Mapping[str, Any],
    properties: dict[str, Any],
    required: list[str],
    *,
    depth: int,
) -> None:
    """Add the properties of a part of a schema, and those that it always requires."""
    own, names = part.get("properties"), part.get("required")
    named: Mapping[str, Any] = {}
    if isinstance(own, Mapping):
        named = cast("Mapping[str, Any]", own)
    properties.update({name: value for name, value in named.items() if name not in properties})
    required += cast("list[str]", names) if isinstance(names, list) else []
    if depth == _DEEPEST:
        return
    for keyword in _CHOICES:
        inner: list[str] = required if keyword == "allOf" else []
        for choice in _parts(part.get(keyword)):
            _collect(choice, root, properties, inner, depth=depth + 1)
    if (target := _target(part.get("$ref"), root)) is not None:
        _collect(target, root, properties, required, depth=depth + 1)


def _parts(value: object) -> list[Mapping[str, Any]]:
    values = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("Mapping[str, Any]", part) for part in values if isinstance(part, Mapping)]


def _target(reference: object, root: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return what a reference into the schema itself points to; None if it points to nothing."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    value: object = root
    for name in reference.removeprefix("#/").split("/"):
        value = (
            cast("Mapping[str, object]", value).get(name) if isinstance(value, Mapping) else None
        )
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else None


def is_strict(schema: object) -> bool:
    """Return whether the schema is strict for the API: objects closed, all fields required."""
    if isinstance(schema, list):
        return all(is_strict(part) for part in cast("list[object]", schema))
    if not isinstance(schema, Mapping):
        return True
    fields = cast("Mapping[str, object]", schema)
    if fields.get("type") == "object" or "properties" in fields:
        properties = fields.get("properties")
        names = set(cast("Mapping[str, object]", properties)) if properties else set[str]()
        required = fields.get("required")
        required_names = set(cast("Sequence[str]", required)) if required else set[str]()
        if fields.get("additionalProperties") is not False or names != required_names:
            return False
    return all(is_strict(part) for part in fields.values())


def closed(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the schema with closed objects and without keywords that no grammar follows.

    None: an object may have any fields, which such a grammar cannot say.
    """
    try:
        return _closed(schema)
    except _OpenObjectError:
        return None


class _OpenObjectError(Exception):
    pass


def _closed(schema: Mapping[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _UNSUPPORTED:
            continue
        if key in _NAMED and isinstance(value, Mapping):
            parts = cast("Mapping[str, Any]", value)
            result[key] = {name: _closed_part(part) for name, part in parts.items()}
        elif key in ("enum", "const", "default", "examples", "required"):
            result[key] = value
        else:
            result[key] = _closed_part(value)
    if result.get("type") == "object" or "properties" in result:
        if schema.get("additionalProperties", False) is not False or not result.get("properties"):
            raise _OpenObjectError
        result["additionalProperties"] = False
    return result


def _closed_part(value: object) -> object:
    if isinstance(value, Mapping):
        return _closed(cast("Mapping[str, Any]", value))
    if isinstance(value, list):
        return [_closed_part(part) for part in cast("list[object]", value)]
    return value


def instruction(schema: Mapping[str, Any]) -> str:
    """Return the request for such an answer in words, for a model that takes no schema."""
    return (
        "When you have finished, answer with nothing but JSON that matches this JSON schema: "
        + msgspec.json.encode(schema).decode()
    )
