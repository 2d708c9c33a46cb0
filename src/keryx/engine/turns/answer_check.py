"""Checks the last reply of a turn: it must be whole, and match the schema if there is one.

If a reply does not match, the model gets one message that says what is wrong. If the next reply
does not match either, the turn fails. A turn also fails if the provider stopped its last reply for
its content, or if the reply ended at its limit before there was any answer.
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
"""The author of the message that a reply does not match."""


class AnswerCheck:
    """Decides whether one turn may end with a reply."""

    def __init__(self, fold: Fold, log: LogWriter, bridge: Bridge, turn_id: str) -> None:
        self._fold = fold
        self._log = log
        self._bridge = bridge
        self._turn_id = turn_id

    async def check(self, text: str) -> list[str]:
        """Return why this reply does not match the schema; empty if it does."""
        turn = self._fold.turn
        if turn is None or turn.schema is None:
            return []
        # In a thread: the library is large, and a schema may be slow to check.
        return await self._bridge.to_thread(problems, turn.schema, text)

    def ending(self, found_problems: Sequence[str]) -> TurnEnd | None:
        """Return how the turn ends with this reply; None: the model must answer again."""
        if (error := self._stopped()) is not None:
            return TurnEnd("failed", error=error)
        if not found_problems:
            return TurnEnd("completed")
        text = "; ".join(found_problems)
        if self._was_corrected():
            error = ev.TurnError(
                kind="bad_response",
                message=f"the answer does not fit the schema: {text}",
                hint="send the message again, or use a model that follows schemas",
            )
            return TurnEnd("failed", error=error)
        self._send_correction(text)
        return None

    def _stopped(self) -> ev.TurnError | None:
        """Return why the last reply is no answer; None if it is one."""
        reply, turn = self._fold.last_reply, self._fold.turn
        if reply is None or turn is None or reply.turn_id != self._turn_id:
            return None
        if reply.stop_reason == "content_filter":
            return ev.TurnError(
                kind="bad_response",
                message="the reply was stopped for its content, by the model or its provider",
                hint="undo the turn and word the message differently, or use another model",
            )
        if reply.stop_reason == "length" and not reply.text and turn.options.max_tokens is None:
            return ev.TurnError(
                kind="bad_response",
                message="the model used all tokens of its reply before it wrote an answer",
                hint="send the message again with less effort, or ask for less at once",
            )
        return None

    def _was_corrected(self) -> bool:
        return any(
            isinstance(item, Delivered) and item.message.by == CHECKER
            for item in self._fold.history
            if item.turn_id == self._turn_id
        )

    def _send_correction(self, text: str) -> None:
        """Send the model what is wrong, in the same commit as its reply."""
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
                f"Your answer does not fit the JSON schema that it must fit: {text}. "
                "Answer again: only the JSON, nothing before or after it."
            ),
            workspace=turn.workspace,
            attended=turn.attended,
        )
        log.record(ev.MessageDelivered, turn_id=self._turn_id, message_id=message.message_id)
