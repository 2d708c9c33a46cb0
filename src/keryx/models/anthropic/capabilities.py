"""What each generation of Claude takes: how much it may write, how it thinks, structured answers.

The API refuses an option that a model does not have. The generation is read from the name; a name
that has none is treated as the oldest generation that thinks by itself.
"""

from __future__ import annotations

import re
from typing import Any, Final, Literal, Self

import msgspec

Thinking = Literal["none", "budget", "adaptive"]
"""How a model is told to think: not at all, with a budget of tokens, or by itself."""

MAX_TOKENS: Final = 32_000
"""The default limit of a reply: the API demands one, and every current model can write as much."""
LEAST_BUDGET: Final = 1024
"""The least budget for thinking that the API takes."""
BINDING_HEADERS: Final = {"anthropic-beta": "thinking-binding-controls-2026-08-01"}
"""What a request needs that says what becomes of thinking whose conversation has changed."""

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
_NAME: Final = re.compile(r"claude-(?:([a-z]+)-)?(\d+)(?:[-.](\d{1,2})(?!\d))?")
"""The family, and the version; a date that follows is no part of it."""


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What one model takes."""

    max_tokens: int = MAX_TOKENS
    thinking: Thinking = "adaptive"
    takes_schemas: bool = True
    has_xhigh: bool = True
    """Whether there is an effort between `high` and `max`."""
    hides_thinking: bool = False
    """Whether thoughts are readable only if the request says so."""
    thinks_unasked: bool = False
    """Whether the model thinks unless it is told not to."""
    can_stop: bool = False
    """Whether it can be told not to think."""
    binds_thinking: bool = False
    """Whether thoughts are refused after anything before them has changed."""
    takes_choice: bool = True
    """Whether a reply can be made to call a tool."""

    @classmethod
    def of(cls, model: str) -> Self:
        """Return the capabilities of the model of that name, whatever stands before the name."""
        match = _NAME.search(model)
        if match is None:
            return cls()
        family, version = match[1] or "", (int(match[2]), int(match[3] or 0))
        if version < (4, 6):
            return cls._of_older(version)
        is_bound = version >= (5, 1)
        return cls(
            has_xhigh=version >= (4, 7),
            hides_thinking=version >= (4, 7),
            thinks_unasked=version >= (5, 0),
            can_stop=not is_bound and family not in ("fable", "mythos"),
            binds_thinking=is_bound,
            takes_choice=not is_bound or family == "haiku",
        )

    @classmethod
    def _of_older(cls, version: tuple[int, int]) -> Self:
        if version < (3, 7):
            limit = 4_096 if version < (3, 5) else 8_192
            return cls(max_tokens=limit, thinking="none", takes_schemas=False)
        return cls(thinking="budget", takes_schemas=version >= (4, 5))

    def budget(self, effort: str, max_tokens: int) -> int | None:
        """Return the tokens for thinking; None: there is no room for it in the reply."""
        budget = min(_BUDGETS.get(effort, _BUDGETS["medium"]), max_tokens - 1)
        return budget if budget >= LEAST_BUDGET else None

    def effort(self, effort: str) -> str:
        """Return the API's own word for an effort."""
        if effort == "xhigh" and not self.has_xhigh:
            return "high"
        return effort if effort in _EFFORTS else "low"

    @property
    def adaptive(self) -> dict[str, Any]:
        """The option with which the model thinks by itself."""
        option: dict[str, Any] = {"type": "adaptive"}
        if self.hides_thinking:
            option["display"] = "summarized"
        if self.binds_thinking:
            # A summary, an undone turn or a new system prompt changes what stands before thoughts.
            # The API then drops them; else it would refuse the session for ever.
            option["block_binding"] = {"prefix_mismatch_behavior": "drop_block"}
        return option
