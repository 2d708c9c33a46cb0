"""What ends a turn that would not end by itself."""

from __future__ import annotations

import msgspec

from keryx.engine.log.state import OpenTurn
from keryx.events import TurnError


class Limits(msgspec.Struct, frozen=True):
    """None means no limit."""

    steps: int | None = 200
    tokens: int | None = None
    seconds: float | None = None

    def reached(self, turn: OpenTurn) -> TurnError | None:
        """Why the turn must not ask the model again, if so."""
        if self.steps is not None and turn.steps >= self.steps:
            return _limit(f"{self.steps} steps", "steps")
        spent = turn.usage.input_tokens + turn.usage.output_tokens
        if self.tokens is not None and spent >= self.tokens:
            return _limit(f"{self.tokens} tokens", "tokens")
        return None

    def out_of_time(self) -> TurnError:
        return _limit(f"{self.seconds} s", "seconds")


def _limit(what: str, name: str) -> TurnError:
    return TurnError(
        kind="limit",
        message=f"the turn reached its limit of {what}",
        hint=f"send a message to go on in a new turn, or raise limits.{name}",
    )
