"""Parameter types that msgspec does not support: pydantic models.

Pydantic is never imported here: code that passes a model has imported it already. Without models
this module does nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

import msgspec

if TYPE_CHECKING:
    from pydantic import BaseModel

DEFS = "#/$defs/"

# The names of msgspec have no colon, so a placeholder cannot be confused with one of them.
_PLACEHOLDER = "model:"


class ModelFault(msgspec.Struct, frozen=True):
    """One error of a model, and its path inside the value."""

    path: tuple[str | int, ...]
    kind: str
    text: str


class ModelRefusedError(ValueError):
    """All errors of a model; a ValueError, so that msgspec adds the path and raises it."""

    def __init__(self, faults: tuple[ModelFault, ...]) -> None:
        super().__init__(f"{len(faults)} values do not fit the model")
        self.faults = faults


def is_model(kind: object) -> TypeGuard[type[BaseModel]]:
    """Whether this is a pydantic model's class."""
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and isinstance(kind, type) and issubclass(kind, pydantic.BaseModel)


def decode(kind: type, value: Any) -> Any:
    """Build a model from plain data: msgspec's `dec_hook`."""
    if not is_model(kind):
        raise TypeError(f"`{kind.__name__}` cannot be built from JSON")
    if isinstance(value, kind):
        return value
    pydantic = sys.modules["pydantic"]
    try:
        # Only its JSON mode is strict on numbers and still takes dates and enums as strings.
        return kind.model_validate_json(msgspec.json.encode(value), strict=True)
    except pydantic.ValidationError as error:
        raise ModelRefusedError(tuple(_faults(error))) from error


def encode(value: Any) -> Any:
    """Plain data of a model: msgspec's `enc_hook`."""
    pydantic = sys.modules.get("pydantic")
    if pydantic is not None and isinstance(value, pydantic.BaseModel):
        return value.model_dump(mode="json", by_alias=True)
    raise NotImplementedError(f"{value!r} has no JSON form")


class Models:
    """The models in one schema. Their own schemas are added at the end."""

    def __init__(self) -> None:
        self._models: dict[str, type[BaseModel]] = {}
        self.unsupported: list[type] = []

    def add_placeholder(self, kind: type) -> dict[str, Any]:
        """Return a placeholder for a model in a schema: msgspec's `schema_hook`."""
        if not is_model(kind):
            self.unsupported.append(kind)
            raise NotImplementedError
        for name, model in self._models.items():
            if model is kind:
                return {"$ref": DEFS + name}
        name = f"{_PLACEHOLDER}{len(self._models)}"
        self._models[name] = kind
        return {"$ref": DEFS + name}

    def add_to(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Replace the placeholders by the models' schemas, under names that are still free."""
        if not self._models:
            return schema
        json_schema = sys.modules["pydantic.json_schema"]
        places, generated = json_schema.models_json_schema(
            [(kind, "validation") for kind in self._models.values()], ref_template=DEFS + "{model}"
        )
        defs: dict[str, Any] = schema.setdefault("$defs", {})
        models: dict[str, Any] = generated.get("$defs", {})
        names = {name: _free_name(name, defs.keys() | models.keys() - {name}) for name in models}
        defs.update({names[name]: _rename_references(body, names) for name, body in models.items()})
        places_of = {
            name: _rename_references(places[kind, "validation"], names)
            for name, kind in self._models.items()
        }
        return _fill_placeholders(schema, places_of)


def _faults(error: Any) -> Iterator[ModelFault]:
    for detail in error.errors(include_url=False, include_context=False):
        text = str(detail["msg"])
        if detail["type"] not in {"missing", "extra_forbidden"}:
            text = f"{text}, got `{_json_type(detail['input'])}`"
        yield ModelFault(tuple(detail["loc"]), detail["type"], text)


def is_object(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether this is an object of plain data."""
    return isinstance(value, Mapping)


def is_array(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether this is an array of plain data."""
    return isinstance(value, list | tuple)


def _json_type(value: object) -> str:
    """Return the JSON type of a value, by the name that msgspec uses."""
    if value is None:
        return "null"
    if is_object(value):
        return "object"
    return "array" if is_array(value) else type(value).__name__


def _free_name(name: str, used_names: set[str]) -> str:
    chosen, number = name, 1
    while chosen in used_names:
        number += 1
        chosen = f"{name}_{number}"
    return chosen


def _rename_references(node: Any, names: dict[str, str]) -> Any:
    """Return the schema with renamed references, also in the mapping of a discriminator."""
    if is_object(node):
        return {key: _rename_references(value, names) for key, value in node.items()}
    if is_array(node):
        return [_rename_references(value, names) for value in node]
    if isinstance(node, str) and node.startswith(DEFS):
        return DEFS + names.get(node.removeprefix(DEFS), node.removeprefix(DEFS))
    return node


def _fill_placeholders(node: Any, places: dict[str, dict[str, Any]]) -> Any:
    """Return the schema with all placeholders replaced; other keys beside a reference stay."""
    if is_array(node):
        return [_fill_placeholders(value, places) for value in node]
    if not is_object(node):
        return node
    filled = {key: _fill_placeholders(value, places) for key, value in node.items()}
    reference = filled.get("$ref")
    place = places.get(reference.removeprefix(DEFS)) if isinstance(reference, str) else None
    if place is None:
        return filled
    del filled["$ref"]
    return {**place, **filled}
