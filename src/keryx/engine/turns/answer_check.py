"""Whether the last reply of a turn may end it: it must fit the schema, if there is one.

A reply that does not fit is answered once with what is wrong, as a message in the log; if the next
one does not fit either, the turn fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from keryx import events as ev
from keryx.aio.bridge import Bridge
from keryx.engine.answer_schema import problems
from keryx.engine.log.fold import Fold
from keryx.engine.log.log_writer import LogWriter
from keryx.engine.log.state import Delivered
from keryx.engine.turns.turn_outcome import TurnEnd
from keryx.ids import new_id

CHECKER: Final = "schema check"
"""Who says that a reply does not fit."""


class AnswerCheck:
    """Decides whether one turn may rest with a reply."""

    def __init__(self, fold: Fold, log: LogWriter, bridge: Bridge, turn_id: str) -> None:
        self._fold = fold
        self._log = log
        self._bridge = bridge
        self._turn_id = turn_id

    async def misfits(self, text: str) -> list[str]:
        """What keeps this reply from being the turn's answer."""
        turn = self._fold.turn
        if turn is None or turn.schema is None:
            return []
        # In a thread: the library is large, and a schema may be slow to check.
        return await self._bridge.to_thread(problems, turn.schema, text)

    def rest(self, misfits: Sequence[str]) -> TurnEnd | None:
        """End the turn with this reply; None: the model was told what is wrong, and goes on."""
        if not misfits:
            return TurnEnd("completed")
        what = "; ".join(misfits)
        if self._was_told():
            error = ev.TurnError(
                kind="bad_response",
                message=f"the answer does not fit the schema: {what}",
                hint="ask again, or use a model that keeps to schemas",
            )
            return TurnEnd("failed", error=error)
        self._tell(what)
        return None

    def _was_told(self) -> bool:
        return any(
            isinstance(item, Delivered) and item.message.by == CHECKER
            for item in self._fold.history
            if item.turn_id == self._turn_id
        )

    def _tell(self, what: str) -> None:
        """Accepted and delivered in one commit with the reply: nothing can come between them."""
        log, turn = self._log, self._fold.turn
        assert turn is not None
        message = log.record(
            ev.MessageAccepted,
            message_id=new_id("m"),
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
        log.record(ev.MessageDelivered, turn_id=self._turn_id, message_id=message.message_id)
