"""Limits that end a turn: steps, tokens, time, and what may be spent."""

from __future__ import annotations

import msgspec

from keryx.engine.log.state import OpenTurn
from keryx.events import TurnError


class Limits(msgspec.Struct, frozen=True):
    """The limits of turns, and of what sessions and days may spend. None means no limit."""

    steps: int | None = 200
    tokens: int | None = None
    seconds: float | None = None
    cost_per_turn: float | None = None
    cost_per_session: float | None = None
    cost_per_day: float | None = None
    tokens_per_session: int | None = None
    tokens_per_day: int | None = None

    @property
    def has_cost(self) -> bool:
        """Whether there is a limit for money."""
        costs = (self.cost_per_turn, self.cost_per_session, self.cost_per_day)
        return any(cost is not None for cost in costs)

    @property
    def has_money(self) -> bool:
        """Whether there is a limit that the host has to check before a request."""
        tokens = (self.tokens_per_session, self.tokens_per_day)
        return self.has_cost or any(limit is not None for limit in tokens)

    def reached(self, turn: OpenTurn) -> TurnError | None:
        """Return the error if the turn has reached a limit; else None."""
        if self.steps is not None and turn.steps >= self.steps:
            return _limit_error(f"{self.steps} steps", "steps")
        spent = turn.usage.input_tokens + turn.usage.output_tokens
        if self.tokens is not None and spent >= self.tokens:
            return _limit_error(f"{self.tokens} tokens", "tokens")
        return None

    def out_of_time(self) -> TurnError:
        return _limit_error(f"{self.seconds} s", "seconds")


def _limit_error(limit: str, name: str) -> TurnError:
    return TurnError(
        kind="limit",
        message=f"the turn reached its limit of {limit}",
        hint=f"send a message to continue in a new turn, or raise limits.{name}",
    )
