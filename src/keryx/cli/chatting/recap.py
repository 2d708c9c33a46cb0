"""The end of a session, for someone who comes back to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from keryx import events as ev
from keryx.app.services.approval_rules import with_whole_arguments
from keryx.cli.chatting.pieces import Piece, printable
from keryx.cli.chatting.running_calls import RunningCalls
from keryx.cli.chatting.transcript import Transcript, user_piece
from keryx.cli.screens.markdown_stream import MarkdownStream
from keryx.ports.store import Store, UsageRow
from keryx.ports.view import SessionView

RECAP: Final = 40
"""Entries of the transcript that are shown when a person comes back to a session."""


async def read_back(
    store: Store, session_id: str, view: SessionView, at: float
) -> tuple[Transcript, list[ev.LoggedEvent]]:
    """Return the transcript of a session as it is now, and the last events before."""
    approvals = [await with_whole_arguments(asked, store) for asked in view.approvals]
    rows = await store.transcript(session_id, limit=RECAP)
    events = [row.event for row in rows if row.seq <= view.seq]
    transcript = Transcript()
    for event in events:
        if isinstance(event, ev.StepReplied):
            transcript.pending.apply(event)
            transcript.last_reply = event.text or transcript.last_reply
            transcript.last_reasoning = event.reasoning or transcript.last_reasoning
    transcript.cost = total_cost(await store.usage(session_id))
    transcript.restore(view, approvals, at)
    return transcript, events


def recap(events: Sequence[ev.LoggedEvent]) -> list[Piece]:
    """Return the pieces of a part of the log."""
    pieces: list[Piece] = []
    for event in events:
        match event:
            case ev.MessageAccepted():
                pieces.append(user_piece(event))
            case ev.StepReplied() if event.text:
                stream = MarkdownStream()
                pieces += [*stream.feed(printable(event.text)), *stream.end()]
            case ev.CallFinished():
                pieces.append(Piece("call", RunningCalls().apply(event)[0].text))
            case ev.TurnFinished() if event.outcome != "completed":
                pieces += Transcript().apply(event)
            case _:
                continue
    return pieces


def total_cost(rows: Sequence[UsageRow]) -> float | None:
    """Return what a session has cost; None if the cost of a part of it is unknown."""
    costs = [row.cost for row in rows if row.cost is not None]
    return sum(costs) if len(costs) == len(rows) else None
