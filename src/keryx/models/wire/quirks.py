"""What single servers of Chat Completions do differently from OpenAI's own."""

from __future__ import annotations

from typing import Final

import msgspec


class Quirks(msgspec.Struct, frozen=True):
    """The deviations of one provider; the default is none."""

    key_header: str = ""
    """The header that holds the key, if it is another than the format's own."""
    returned: str = ""
    """The field of reasoning that the server needs back with each reply."""
    needs_reasoning: bool = False
    """Whether replies without that field, such as those of other models, are refused."""
    names_parallel_calls: bool = False
    """Whether the server makes parallel calls only if the request allows them by name."""
    reports_cost: bool = False
    """Whether the server says what a reply cost, in US dollars."""
    without: tuple[str, ...] = ()
    """Fields of a request that the server refuses."""
    token_limit: str = "max_completion_tokens"  # noqa: S105 (the name of a field)
    """The name of the limit of a reply."""
    takes_schemas: bool = True
    """Whether an answer may be described by a JSON schema; if not, words describe it."""


NO_QUIRKS: Final = Quirks()
