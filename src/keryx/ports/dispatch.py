"""The seam between those who talk to sessions and the one who owns each of them.

*Dispatch* brings work to an owner. The *bus* carries commands to it and events from it. Within one
host both are plain objects; another process of the same machine reaches them through the host's
socket, other machines through a broker. Who talks need not know which.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol, Self

import msgspec

from keryx.commands import Command
from keryx.events import Event
from keryx.ports.store import SessionRow
from keryx.ports.view import SessionView


class Sent(msgspec.Struct, frozen=True, tag="sent"):
    """A message is durable: its id, the turn that it will be or join, and its place in the log."""

    message_id: str
    turn_id: str
    seq: int


class Done(msgspec.Struct, frozen=True, tag="done"):
    """The command took effect and is durable; not if what it names was over already."""

    done: bool


Answer = Sent | Done


class Change(msgspec.Struct, frozen=True):
    """A session as the list shows it now; no row: everything of it is gone."""

    session_id: str
    row: SessionRow | None
    upto: int | None = None
    """All changes up to this position were told by now; None while some still wait."""


class Watching(Protocol):
    """One reader's place in a session's stream. Closing it stops nothing of the session."""

    @property
    def seen(self) -> int:
        """The number of the last fact that was handed out."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc: object) -> None: ...

    def __aiter__(self) -> AsyncGenerator[Event]:
        """Facts without gaps, live events between them; closing the iterator ends the reading.

        `resync`: live events were lost; the facts missed follow, and what streams now.
        """
        ...


class Dispatch(Protocol):
    """Finds an owner for work."""

    async def wake(self, session_id: str) -> None:
        """This session has work, in its log or its inbox: it is run at least once, by one owner.

        Returns once that is certain, not once the work is done.
        """
        ...


class Bus(Protocol):
    """The way to a session's owner and back."""

    async def tell(self, command: Command) -> Answer:
        """Give the owner a command; returns once it is durable."""
        ...

    async def watch(self, session_id: str, *, after: int) -> Watching:
        """Read the session's log after that fact, then whatever comes."""
        ...

    async def view(self, session_id: str) -> SessionView:
        """The session as it is now, durable."""
        ...

    def changes(self, after: int | None) -> AsyncGenerator[Change]:
        """Sessions that changed after that position of the store, then those that do.

        None: only what comes. Rows come in the order of their positions; what a slow reader
        missed of a session it gets as one change.
        """
        ...
