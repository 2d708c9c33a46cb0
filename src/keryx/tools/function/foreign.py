"""Types that msgspec does not know but tools may take: pydantic models.

Pydantic is never imported here. Whoever hands over a model has imported it already; without
one, nothing of this module does any work.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

import msgspec

if TYPE_CHECKING:
    from pydantic import BaseModel

DEFS = "#/$defs/"

# msgspec's own names have no colon, so a place for a model cannot be mistaken for one of them.
_HELD = "model:"


class Flaw(msgspec.Struct, frozen=True):
    """One thing that a model refused, and where inside the value."""

    where: tuple[str | int, ...]
    kind: str
    text: str


class ModelRefusedError(ValueError):
    """All that a model refused; a ValueError, so that msgspec adds the place and passes it on."""

    def __init__(self, flaws: tuple[Flaw, ...]) -> None:
        super().__init__(f"{len(flaws)} values do not fit the model")
        self.flaws = flaws


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
        raise ModelRefusedError(tuple(_flaws(error))) from error


def encode(value: Any) -> Any:
    """Plain data of a model: msgspec's `enc_hook`."""
    pydantic = sys.modules.get("pydantic")
    if pydantic is not None and isinstance(value, pydantic.BaseModel):
        return value.model_dump(mode="json", by_alias=True)
    raise NotImplementedError(f"{value!r} has no JSON form")


class Models:
    """The models that one schema mentions. Their own schemas are added when all are known."""

    def __init__(self) -> None:
        self._held: dict[str, type[BaseModel]] = {}
        self.unknown: list[type] = []

    def hold(self, kind: type) -> dict[str, Any]:
        """Keep a place for a model in a schema: msgspec's `schema_hook`."""
        if not is_model(kind):
            self.unknown.append(kind)
            raise NotImplementedError
        for name, known in self._held.items():
            if known is kind:
                return {"$ref": DEFS + name}
        name = f"{_HELD}{len(self._held)}"
        self._held[name] = kind
        return {"$ref": DEFS + name}

    def add_to(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Put the models' schemas in their places, under names that are still free."""
        if not self._held:
            return schema
        json_schema = sys.modules["pydantic.json_schema"]
        places, generated = json_schema.models_json_schema(
            [(kind, "validation") for kind in self._held.values()], ref_template=DEFS + "{model}"
        )
        defs: dict[str, Any] = schema.setdefault("$defs", {})
        models: dict[str, Any] = generated.get("$defs", {})
        names = {name: _free(name, defs.keys() | models.keys() - {name}) for name in models}
        defs.update({names[name]: _renamed(body, names) for name, body in models.items()})
        places_of = {
            name: _renamed(places[kind, "validation"], names) for name, kind in self._held.items()
        }
        return _filled(schema, places_of)


def _flaws(error: Any) -> Iterator[Flaw]:
    for detail in error.errors(include_url=False, include_context=False):
        text = str(detail["msg"])
        if detail["type"] not in {"missing", "extra_forbidden"}:
            text = f"{text}, got `{_json_type(detail['input'])}`"
        yield Flaw(tuple(detail["loc"]), detail["type"], text)


def is_object(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether this is an object of plain data."""
    return isinstance(value, Mapping)


def is_array(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether this is an array of plain data."""
    return isinstance(value, list | tuple)


def _json_type(value: object) -> str:
    """What a value is in the words that msgspec uses of JSON."""
    if value is None:
        return "null"
    if is_object(value):
        return "object"
    return "array" if is_array(value) else type(value).__name__


def _free(name: str, taken: set[str]) -> str:
    chosen, number = name, 1
    while chosen in taken:
        number += 1
        chosen = f"{name}_{number}"
    return chosen


def _renamed(node: Any, names: dict[str, str]) -> Any:
    """The same schema with its references renamed; a discriminator's mapping refers too."""
    if is_object(node):
        return {key: _renamed(value, names) for key, value in node.items()}
    if is_array(node):
        return [_renamed(value, names) for value in node]
    if isinstance(node, str) and node.startswith(DEFS):
        return DEFS + names.get(node.removeprefix(DEFS), node.removeprefix(DEFS))
    return node


def _filled(node: Any, places: dict[str, dict[str, Any]]) -> Any:
    """The same schema with every held place filled; what stands beside the reference stays."""
    if is_array(node):
        return [_filled(value, places) for value in node]
    if not is_object(node):
        return node
    filled = {key: _filled(value, places) for key, value in node.items()}
    reference = filled.get("$ref")
    place = places.get(reference.removeprefix(DEFS)) if isinstance(reference, str) else None
    if place is None:
        return filled
    del filled["$ref"]
    return {**place, **filled}
