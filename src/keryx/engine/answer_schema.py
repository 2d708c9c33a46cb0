"""JSON schemas that answers must fit: is a text such a schema, and does an answer fit it?

Pure functions over texts. The library behind them is large and is loaded when a schema is first
used; a schema can be slow to check, so a loop calls these in a thread. References to addresses
outside the schema are refused: checking an answer never opens a connection.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import msgspec

from keryx.errors import UserMustActError

MOST_PROBLEMS: Final = 5
"""Problems that are listed; more do not help a model to do better."""
LONGEST_PROBLEM: Final = 300
"""Characters of one problem: it may quote the whole answer."""


def check_schema(text: str) -> None:
    """Raise `UserMustActError`, which says what is wrong, if the text is no JSON schema."""
    from jsonschema import SchemaError  # noqa: PLC0415 (heavy; only who gives a schema needs it)
    from referencing.exceptions import Unresolvable  # noqa: PLC0415 (same)

    schema = _decoded_schema(text)
    try:
        _validator(schema).check_schema(schema)
        _resolve_references(schema)
    except SchemaError as error:
        problem = f"{_shortened(error.message)} (at {error.json_path})"
        raise UserMustActError(f"that is no JSON schema: {problem}") from error
    except Unresolvable as error:
        raise UserMustActError(
            f"the JSON schema refers to {error.ref!r}, which is not in it; "
            "put that part under $defs and refer to it there"
        ) from error
    except RecursionError as error:
        raise UserMustActError("the JSON schema is nested too deeply; make it flatter") from error


def problems(schema_text: str, answer_text: str) -> list[str]:
    """What keeps the answer from fitting the schema; an empty list if it fits.

    The schema must have passed `check_schema`.
    """
    try:
        answer = msgspec.json.decode(answer_text)
    except (ValueError, RecursionError) as error:
        return [f"the answer is not JSON: {error}"]
    schema = _decoded_schema(schema_text)
    try:
        return list(_misfits(schema, answer))
    except RecursionError:
        return ["the answer is nested too deeply"]


def _decoded_schema(text: str) -> Mapping[str, Any]:
    try:
        schema: object = msgspec.json.decode(text)
    except (ValueError, RecursionError) as error:
        raise UserMustActError(f"the schema is not JSON: {error}") from error
    if not isinstance(schema, dict):
        raise UserMustActError(
            "that is no JSON schema: it must be an object, for instance "
            '{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}'
        )
    return cast("dict[str, Any]", schema)


def _validator(schema: Mapping[str, Any]) -> Any:
    """A validator that looks nothing up outside the schema."""
    validators: Any = importlib.import_module("jsonschema.validators")
    referencing: Any = importlib.import_module("referencing")
    # Without a registry of ours, the library would fetch what a schema refers to.
    return validators.validator_for(schema)(schema, registry=referencing.Registry())


def _resolve_references(schema: Mapping[str, Any]) -> None:
    """Raise `Unresolvable` for a reference to what is not in the schema."""
    referencing: Any = importlib.import_module("referencing")
    newest: Any = importlib.import_module("referencing.jsonschema").DRAFT202012
    resource = referencing.Resource.from_contents(schema, default_specification=newest)
    pending: list[tuple[Any, Any]] = [
        (resource, referencing.Registry().resolver_with_root(resource))
    ]
    while pending:
        part, resolver = pending.pop()
        for reference in _references(part.contents):
            resolver.lookup(reference)
        pending += [(child, resolver.in_subresource(child)) for child in part.subresources()]


def _references(part: object) -> list[str]:
    if not isinstance(part, Mapping):
        return []
    named = cast("Mapping[str, object]", part)
    written = (named.get("$ref"), named.get("$dynamicRef"))
    return [reference for reference in written if isinstance(reference, str)]


def _misfits(schema: Mapping[str, Any], answer: object) -> Iterator[str]:
    from jsonschema.exceptions import relevance  # noqa: PLC0415 (heavy)

    errors: list[Any] = sorted(_validator(schema).iter_errors(answer), key=relevance, reverse=True)
    for error in errors[:MOST_PROBLEMS]:
        yield f"{_shortened(error.message)} (at {error.json_path})"
    if len(errors) > MOST_PROBLEMS:
        yield f"and {len(errors) - MOST_PROBLEMS} more"


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_PROBLEM else text[: LONGEST_PROBLEM - 1] + "…"
