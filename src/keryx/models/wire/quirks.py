"""What single servers of Chat Completions do differently from OpenAI's own."""

from __future__ import annotations

import msgspec


class Quirks(msgspec.Struct, frozen=True):
    """The deviations of one provider; the default is none."""

    key_header: str = ""
    """The header that holds the key, if it is another than the format's own."""
    returned: str = ""
    """The field of reasoning that the server needs back with each reply."""
    without: tuple[str, ...] = ()
    """Fields of a request that the server refuses."""
    token_limit: str = "max_completion_tokens"  # noqa: S105 (the name of a field)
    """The name of the limit of a reply."""
    takes_schemas: bool = True
    """Whether an answer may be described by a JSON schema; if not, words describe it."""
