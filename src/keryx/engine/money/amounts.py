"""Amounts of money and tokens, and the text of a limit that was reached."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from keryx.engine.limits import Limits
from keryx.engine.money.spent import Amount
from keryx.errors import ModelError

Period = Literal["turn", "session", "day"]

_NEXT: Final[dict[Period, str]] = {
    "turn": "send a message to continue in a new turn, or",
    "session": "open a new session, or",
    "day": "wait until midnight, or",
}
NO_AMOUNT: Final = Amount()


class Bounds(msgspec.Struct, frozen=True):
    """What may be spent in one period; None: no limit."""

    period: Period
    cost: float | None
    tokens: int | None
    tokens_setting: str

    @property
    def is_set(self) -> bool:
        return self.cost is not None or self.tokens is not None

    def check(self, spent: Amount) -> None:
        """Raise `ModelError` if as much was spent as the limit allows."""
        if self.cost is not None and spent.cost >= self.cost:
            used = f"${spent.cost:.4f} was used"
            raise self._reached(f"${self.cost:g}", used, f"cost_per_{self.period}", spent.unpriced)
        if self.tokens is not None and spent.tokens >= self.tokens:
            used = f"{spent.tokens:,} were used"
            raise self._reached(f"{self.tokens:,} tokens", used, self.tokens_setting, 0)

    def _reached(self, limit: str, used: str, setting: str, unpriced: int) -> ModelError:
        unknown = f", and the cost of {unpriced} more requests is unknown" if unpriced else ""
        return ModelError(
            "limit",
            f"the limit of {limit} for a {self.period} is reached: {used}{unknown}",
            f"{_NEXT[self.period]} raise limits.{setting} in config.toml; "
            "that takes effect with the next message",
        )


def bounds_of_turn(limits: Limits) -> Bounds:
    # The turn itself checks its tokens, also where no money is counted.
    return Bounds("turn", limits.cost_per_turn, None, "tokens")


def bounds_of_session(limits: Limits) -> Bounds:
    return Bounds(
        "session", limits.cost_per_session, limits.tokens_per_session, "tokens_per_session"
    )


def bounds_of_day(limits: Limits) -> Bounds:
    return Bounds("day", limits.cost_per_day, limits.tokens_per_day, "tokens_per_day")
