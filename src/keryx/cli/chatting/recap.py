"""The end of a session, for someone who comes back to it."""

from __future__ import annotations

from collections.abc import Sequence

from keryx import events as ev
from keryx.cli.chatting.pieces import Piece, printable
from keryx.cli.chatting.running_calls import RunningCalls
from keryx.cli.chatting.transcript import Transcript, user_piece
from keryx.cli.screens.markdown_stream import MarkdownStream


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
