"""What a conversation asks of whoever shows it, and the settings that a person starts it with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from keryx import events as ev
from keryx.cli.chatting.pieces import Piece
from keryx.cli.chatting.transcript import Transcript
from keryx.messages import ApprovalMode

LONG_TURN: Final = 10.0
"""Seconds: after a longer turn a person may be looking elsewhere."""


class View(Protocol):
    """Shows a conversation to a person."""

    @property
    def shown_request(self) -> str:
        """The id of the request that the person sees whole, and can answer; empty: none."""
        ...

    @property
    def columns(self) -> int:
        """The width of the terminal."""
        ...

    def show(self, pieces: Sequence[Piece]) -> None:
        """Show finished pieces."""
        ...

    def refresh(self) -> None:
        """Show the present state of what runs."""
        ...

    def put_back(self, text: str) -> None:
        """Put a text into the draft, without losing what is there."""
        ...

    def alert(self, text: str) -> None:
        """Call the person: something waits, or a long turn has ended."""
        ...

    def leave(self) -> None:
        """End the chat."""
        ...


class Source(Protocol):
    """Where the screen finds what it shows."""

    @property
    def transcript(self) -> Transcript: ...

    @property
    def attached(self) -> int:
        """How many files are attached to the next message."""
        ...


class Opening(NamedTuple):
    """The settings of new sessions."""

    tools: Sequence[str] | None = None
    personality: str | None = None
    approvals: ApprovalMode | None = None
    read_only: bool = False
    workspace: str = "."


def alert_for(event: ev.Event, turn_began: float) -> str | None:
    """Return what to call the person for: something waits, or a long turn has ended."""
    match event:
        case ev.ApprovalAsked() | ev.QuestionAsked():
            return "Keryx is waiting for you"
        case ev.TurnFinished() if event.at - turn_began > LONG_TURN:
            return "Keryx has finished"
        case _:
            return None
