"""A JSON schema for an answer: read from a file or the command line, and used to check it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from keryx.errors import UserMustActError


def read_schema(given: str) -> str:
    """The schema as JSON text: given as such, or the name of a file that holds it."""
    if given.lstrip().startswith("{"):
        text, where = given, "the schema"
    else:
        where = given
        try:
            text = Path(given).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UserMustActError(
                f"the schema {given} cannot be read: {error}; name a file, or write it out"
            ) from error
    try:
        schema: object = json.loads(text)
    except ValueError as error:
        raise UserMustActError(f"{where} is not JSON: {error}") from error
    _check_schema(schema, where)
    return json.dumps(schema)


def misfit(answer: str, schema: str) -> str | None:
    """Why the answer does not fit the schema, if so."""
    try:
        value = json.loads(answer)
    except ValueError as error:
        return f"the answer is not JSON: {error}"
    import jsonschema  # noqa: PLC0415 (heavy; only who gives a schema needs it)

    try:
        jsonschema.validate(value, json.loads(schema))
    except jsonschema.ValidationError as error:
        return f"the answer does not fit the schema: {error.message} (at {error.json_path})"
    return None


def _check_schema(schema: object, where: str) -> None:
    from jsonschema import SchemaError  # noqa: PLC0415 (heavy; only who gives a schema needs it)
    from jsonschema.validators import validator_for  # noqa: PLC0415 (same)

    if not isinstance(schema, dict):
        raise UserMustActError(f"{where} is no JSON schema: it must be an object")
    try:
        known = cast("dict[str, Any]", schema)
        validator_for(known).check_schema(known)
    except SchemaError as error:
        raise UserMustActError(
            f"{where} is no JSON schema: {error.message} (at {error.json_path})"
        ) from error
