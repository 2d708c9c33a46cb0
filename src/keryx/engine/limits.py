"""Limits that end a turn: steps, tokens and time."""

from __future__ import annotations

import msgspec

from keryx.engine.log.state import OpenTurn
from keryx.events import TurnError


class Limits(msgspec.Struct, frozen=True):
    """The limits of one turn. None means no limit."""

    steps: int | None = 200
    tokens: int | None = None
    seconds: float | None = None

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
