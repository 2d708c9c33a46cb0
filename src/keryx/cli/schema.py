"""Reads the JSON schema that --schema names: as JSON text, or as a file."""

from __future__ import annotations

from pathlib import Path

from keryx.engine.answer_schema import check_schema
from keryx.errors import UserMustActError


def read_schema(value: str) -> str:
    """Return the schema as JSON text; `UserMustActError` says what is wrong with it."""
    if value.lstrip().startswith("{"):
        text, source = value, "--schema"
    else:
        source = value
        try:
            text = Path(value).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise UserMustActError(
                f"the schema {value} cannot be read: {error}; name a file, or pass the JSON itself"
            ) from error
    try:
        check_schema(text)
    except UserMustActError as error:
        raise UserMustActError(f"{source}: {error}") from error
    return text
