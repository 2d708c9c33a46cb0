"""What each generation of Claude takes: how much it may write, how it thinks, structured answers.

The API refuses an option that a model does not have, so the names of older models are listed here.
A name that is not listed is a newer model.
"""

from __future__ import annotations

import fnmatch
from typing import Final, Literal, Self

import msgspec

Thinking = Literal["none", "budget", "adaptive"]
"""How a model is told to think: not at all, with a budget of tokens, or by itself."""

MAX_TOKENS: Final = 32_000
"""The default limit of a reply: the API demands one, and every current model can write as much."""
LEAST_BUDGET: Final = 1024
"""The least budget for thinking that the API takes."""

_BUDGETS: Final = {
    "minimal": LEAST_BUDGET,
    "low": 4_096,
    "medium": 10_240,
    "high": 20_480,
    "xhigh": 30_720,
    "max": 30_720,
}
_EFFORTS: Final = ("low", "medium", "high", "xhigh", "max")
"""The words of the API for models that think by themselves."""


class Capabilities(msgspec.Struct, frozen=True):
    """What one model takes."""

    max_tokens: int = MAX_TOKENS
    thinking: Thinking = "adaptive"
    takes_schemas: bool = True

    @classmethod
    def of(cls, model: str) -> Self:
        """Return the capabilities of the model of that name, whatever stands before the name."""
        for pattern, row in _ROWS:
            if fnmatch.fnmatchcase(model, f"*{pattern}*"):
                return cls(*row)
        return cls()

    def budget(self, effort: str, max_tokens: int) -> int | None:
        """Return the tokens for thinking; None: there is no room for it in the reply."""
        budget = min(_BUDGETS.get(effort, _BUDGETS["medium"]), max_tokens - 1)
        return budget if budget >= LEAST_BUDGET else None

    @staticmethod
    def effort(effort: str) -> str:
        """Return the API's own word for an effort."""
        return effort if effort in _EFFORTS else "low"


_ROWS: Final[tuple[tuple[str, tuple[int, Thinking, bool]], ...]] = (
    ("claude-3-7", (MAX_TOKENS, "budget", False)),
    ("claude-3-5", (8_192, "none", False)),
    ("claude-3", (4_096, "none", False)),
    ("claude-opus-4-5", (MAX_TOKENS, "budget", True)),
    ("claude-sonnet-4-5", (MAX_TOKENS, "budget", True)),
    ("claude-haiku-4-5", (MAX_TOKENS, "budget", True)),
    ("claude-opus-4-1", (MAX_TOKENS, "budget", False)),
    ("claude-opus-4-0", (MAX_TOKENS, "budget", False)),
    ("claude-sonnet-4-0", (MAX_TOKENS, "budget", False)),
    ("claude-opus-4-2", (MAX_TOKENS, "budget", False)),
    ("claude-sonnet-4-2", (MAX_TOKENS, "budget", False)),
)
"""By a part of the name, the first that fits. The name of version 4 goes on with its date, 2025."""
