"""A JSON schema for an answer, as it is given on the command line: as JSON, or as a file of it."""

from __future__ import annotations

from pathlib import Path

from keryx.engine.answer_schema import check_schema
from keryx.errors import UserMustActError


def read_schema(written: str) -> str:
    """The schema as JSON text; `UserMustActError` says what is wrong with it."""
    if written.lstrip().startswith("{"):
        text, where = written, "--schema"
    else:
        where = written
        try:
            text = Path(written).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise UserMustActError(
                f"the schema {written} cannot be read: {error}; name a file, or write it out"
            ) from error
    try:
        check_schema(text)
    except UserMustActError as error:
        raise UserMustActError(f"{where}: {error}") from error
    return text
