"""The interface between the clients of sessions and the process that owns each session.

*Dispatch* finds an owner for a session that has work. The *bus* carries commands to the owner and
events from it. Within one host both are plain objects. Another process on the same machine uses the
host's socket; other machines use a broker. Clients need not know which of these is used.
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
    """A message is durable: its id, the turn that it starts or joins, and its number in the log."""

    message_id: str
    turn_id: str
    seq: int


class Done(msgspec.Struct, frozen=True, tag="done"):
    """The command is durable. `done` is False if its target had already ended."""

    done: bool


Answer = Sent | Done


class Change(msgspec.Struct, frozen=True):
    """The row of a session in the list; None: the session was deleted."""

    session_id: str
    row: SessionRow | None
    upto: int | None = None
    """All changes up to this position have been sent; None while some are still to come."""


class Watching(Protocol):
    """One reader of a session's stream. Closing it does not affect the session."""

    @property
    def seen(self) -> int:
        """The number of the last fact that the reader got."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc: object) -> None: ...

    def __aiter__(self) -> AsyncGenerator[Event]:
        """Iterate over the facts without gaps, with live events between them.

        After a `resync` event, which says that live events were lost, the missed facts and a
        snapshot of the streaming reply follow.
        """
        ...


class Dispatch(Protocol):
    """Finds an owner for a session that has work."""

    async def wake(self, session_id: str) -> None:
        """Make sure that one owner runs the session, which has work in its log or its inbox.

        Returns once that is certain, before the work is done.
        """
        ...


class Bus(Protocol):
    """Carries commands to the owner of a session, and events back."""

    async def tell(self, command: Command) -> Answer:
        """Send a command to the owner; returns once it is durable."""
        ...

    async def watch(self, session_id: str, *, after: int) -> Watching:
        """Read the session's log after that fact, then new events as they come."""
        ...

    async def view(self, session_id: str) -> SessionView:
        """Return the durable state of the session."""
        ...

    def changes(self, after: int | None) -> AsyncGenerator[Change]:
        """Iterate over the sessions that changed after that position of the store, then new ones.

        None: only new changes. Rows come in the order of their positions. If a slow reader missed
        several changes of a session, it gets them as one.
        """
        ...
