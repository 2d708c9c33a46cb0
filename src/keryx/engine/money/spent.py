"""An amount of money and tokens that was spent. Pure: facts → amounts."""

from __future__ import annotations

from typing import Self

import msgspec

from keryx import events as ev


class Amount(msgspec.Struct, frozen=True):
    """Money and tokens that were spent."""

    cost: float = 0.0
    """US dollars, as far as they are known."""
    tokens: int = 0
    """Input and output."""
    unpriced: int = 0
    """The number of requests whose cost is unknown."""

    @classmethod
    def of(cls, fact: ev.StepReplied | ev.UsageRecorded | ev.StepAbandoned) -> Self:
        """Return what the request spent that a fact tells of; it was sent."""
        if isinstance(fact, ev.StepAbandoned):
            return cls(unpriced=1)
        usage = fact.usage or ev.Usage()
        tokens = usage.input_tokens + usage.output_tokens
        return cls(fact.cost or 0.0, tokens, int(fact.cost is None))

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            self.cost + other.cost, self.tokens + other.tokens, self.unpriced + other.unpriced
        )
