"""What the generations of Gemini differ in: how they think, and what they demand of calls."""

from __future__ import annotations

import re
from typing import Any, Final, Self

import msgspec

_VERSION: Final = re.compile(r"gemini-(\d+)(?:\.(\d+))?")
_IMAGES: Final = re.compile(r"gemini-2\S*-image")
_LEVELS: Final = {
    "none": "minimal",
    "minimal": "minimal",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "high",
    "max": "high",
}
"""The level of thinking of Gemini 3 and later."""
MAX_BUDGET: Final = 24_576
"""The largest budget that every model of generation 2.5 takes."""
_BUDGETS: Final = {
    "none": 0,
    "minimal": 512,
    "low": 2_048,
    "medium": 8_192,
    "high": MAX_BUDGET,
    "xhigh": MAX_BUDGET,
    "max": MAX_BUDGET,
}
_LEAST_OF_PRO: Final = 128
"""The pro model of generation 2.5 cannot stop thinking."""


class Generation(msgspec.Struct, frozen=True):
    """The generation of one model."""

    version: tuple[int, int]
    is_pro: bool

    @classmethod
    def of(cls, model: str) -> Self:
        """Return the generation; a name without a number is that of the latest.

        Gemma, and the images of 2.5, have none of what the generations differ in.
        """
        if "gemma" in model or _IMAGES.search(model):
            return cls((0, 0), is_pro=False)
        match = _VERSION.search(model)
        version = (99, 0) if match is None else (int(match[1]), int(match[2] or 0))
        return cls(version, "pro" in model)

    @property
    def signs_calls(self) -> bool:
        """Whether calls without a signature are refused, and results may have images."""
        return self.version >= (3, 0)

    def thinking(self, effort: str | None) -> dict[str, Any] | None:
        """Return the `thinkingConfig`; None for a model that does not think."""
        if self.version < (2, 5):
            return None
        config: dict[str, Any] = {"includeThoughts": effort != "none"}
        # Old sessions may have any word; a typo must not buy the most thinking.
        if effort in _LEVELS:
            config |= self._level(effort) if self.signs_calls else self._budget(effort)
        return config

    def _level(self, effort: str) -> dict[str, Any]:
        level = _LEVELS[effort]
        if self.is_pro:
            if level == "minimal":
                level = "low"
            elif level == "medium" and self.version == (3, 0):
                level = "high"
        return {"thinkingLevel": level}

    def _budget(self, effort: str) -> dict[str, Any]:
        budget = _BUDGETS[effort]
        return {"thinkingBudget": max(budget, _LEAST_OF_PRO) if self.is_pro else budget}
