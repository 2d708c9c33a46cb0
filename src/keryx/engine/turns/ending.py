"""How a turn ends, and whether its last reply may end it: it must fit the schema, if there is one.

A reply that does not fit is answered once with what is wrong, as a message in the log; if the next
one does not fit either, the turn fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from keryx import events as ev
from keryx.aio.bridge import Bridge
from keryx.aio.scope import Reason
from keryx.engine.answer_schema import problems
from keryx.engine.desk import Desk, mint
from keryx.engine.log.state import Delivered
from keryx.errors import ModelError

CHECKER: Final = "schema check"
"""Who says that a reply does not fit."""


class TurnEnding(msgspec.Struct, frozen=True):
    """How a turn ends; a suspended one gets no terminal fact and goes on at the next start."""

    outcome: ev.TurnOutcome | Literal["suspended"]
    reason: Reason | Literal["no_progress"] | None = None
    error: ev.TurnError | None = None

    @classmethod
    def failed(cls, error: ModelError) -> TurnEnding:
        turn_error = ev.TurnError(kind=error.kind, message=error.message, hint=error.hint)
        return cls("failed", error=turn_error)


class AnswerCheck:
    """Decides whether one turn may rest with a reply."""

    def __init__(self, desk: Desk, turn_id: str, bridge: Bridge) -> None:
        self._desk = desk
        self._turn_id = turn_id
        self._bridge = bridge

    async def misfits(self, text: str) -> list[str]:
        """What keeps this reply from being the turn's answer."""
        turn = self._desk.fold.turn
        if turn is None or turn.schema is None:
            return []
        # In a thread: the library is large, and a schema may be slow to check.
        return await self._bridge.to_thread(problems, turn.schema, text)

    def rest(self, misfits: Sequence[str]) -> TurnEnding | None:
        """End the turn with this reply; None: the model was told what is wrong, and goes on."""
        if not misfits:
            return TurnEnding("completed")
        what = "; ".join(misfits)
        if self._was_told():
            return TurnEnding.failed(
                ModelError(
                    "bad_response",
                    f"the answer does not fit the schema: {what}",
                    "ask again, or use a model that keeps to schemas",
                )
            )
        self._tell(what)
        return None

    def _was_told(self) -> bool:
        return any(
            isinstance(item, Delivered) and item.message.by == CHECKER
            for item in self._desk.fold.history
            if item.turn_id == self._turn_id
        )

    def _tell(self, what: str) -> None:
        """Accepted and delivered in one commit with the reply: nothing can come between them."""
        ledger, turn = self._desk.ledger, self._desk.fold.turn
        assert turn is not None
        message = ledger.record(
            ev.MessageAccepted,
            message_id=mint("m"),
            turn_id=self._turn_id,
            key=None,
            by=CHECKER,
            mode="steer",
            text=(
                f"Your answer does not fit the JSON schema that it must fit: {what}. "
                "Answer again: only the JSON, nothing before or after it."
            ),
            workspace=turn.workspace,
            attended=turn.attended,
        )
        ledger.record(ev.MessageDelivered, turn_id=self._turn_id, message_id=message.message_id)
