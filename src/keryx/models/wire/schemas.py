"""JSON schemas in the dialects that APIs take for structured answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from keryx.models.wire.encoding import encode

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
_NAMED: Final = frozenset({"properties", "$defs", "definitions"})
"""Keywords whose values are schemas by name."""


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
        + encode(schema).decode()
    )
