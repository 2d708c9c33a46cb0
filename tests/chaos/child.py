"""One life of a host, seen from inside: what it says, and the labelled points where it can die.

The points are planted around parts of the product from here, in a process that was forked for it;
the product knows nothing of them.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from typing import Any, Final

import msgspec

from keryx import commands as cm
from keryx import events as ev
from keryx.aio.hub import Hub
from keryx.engine.inbox import Inbox
from keryx.models.scripted import ScriptedModel
from keryx.ports.dispatch import Answer, Done, Sent
from keryx.ports.model import Finished, ModelRequest, Piece
from keryx.ports.store import Commit
from keryx.store.sqlite import SqliteStore, writes
from keryx.store.sqlite.transaction import Transaction
from tests.chaos.host_processes import Orders

SHOWN: Final = (
    ev.MessageAccepted,
    ev.TurnCancelling,
    ev.CallStarted,
    ev.CallFinished,
    ev.ApprovalAnswered,
    ev.TurnFinished,
)
"""The facts whose showing is a point of its own."""


class Child:
    """This life."""

    def __init__(self, orders: Orders, line: int, gate: int = -1) -> None:
        self.orders = orders
        self._line = line
        self.gate = gate
        self._passed: Counter[str] = Counter()
        self.refused = asyncio.Event()
        """Set once the store has refused a commit."""
        self._watchers: list[Callable[[ev.Event], None]] = []

    def say(self, line: str) -> None:
        os.write(self._line, f"{line}\n".encode())

    def wait_gate(self) -> None:
        """Stand still until the test opens the gate."""
        os.read(self.gate, 1)

    def trace(self, call_id: str) -> None:
        """Act: leave a mark that outlives this process."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        file = os.open(self.orders.folder / "traces", flags, 0o600)
        os.write(file, f"{self.orders.life} {call_id}\n".encode())
        os.close(file)

    def reach(self, label: str) -> None:
        """Pass a labelled point, or die there."""
        self._passed[label] += 1
        if (label, self._passed[label]) == self.orders.die:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(self, see: Callable[[ev.Event], None]) -> None:
        """Tell of every fact that is shown."""
        self._watchers.append(see)

    def shown(self, event: ev.Event) -> None:
        for see in self._watchers:
            see(event)
        if isinstance(event, SHOWN):
            self.reach(f"shown {ev.type_of(event)}")

    def tell_passed(self) -> None:
        """How often each point was passed, for who wants to kill the next life at each of them."""
        self.say(f"passed {msgspec.json.encode(self._passed).decode()}")


Scenario = Callable[[Child], Coroutine[Any, Any, None]]
"""One life: it goes on with whatever earlier lives left."""


def plant(child: Child) -> None:
    """Put the points around the store, what is shown, and what is acknowledged."""
    _plant_commits(child)
    _plant_acknowledgements(child)
    publish_facts = Hub[ev.Event].publish_facts

    def shown(self: Hub[Any], facts: Iterable[tuple[int, Any, int]]) -> None:
        for fact in facts:
            publish_facts(self, [fact])
            child.shown(fact[1])

    Hub.publish_facts = shown


def _plant_commits(child: Child) -> None:
    append, write = SqliteStore.append, writes.append

    async def committed(self: SqliteStore, commit: Commit) -> int:
        child.reach("before commit")
        try:
            position = await append(self, commit)
        except Exception as error:
            child.refused.set()
            child.say(f"refused {type(error).__name__}")
            raise
        # Durable, and nobody was told.
        child.reach("after commit")
        return position

    def written(transaction: Transaction, commit: Commit) -> int:
        position = write(transaction, commit)
        child.reach("in the transaction")
        return position

    SqliteStore.append = committed
    writes.append = written


def _plant_acknowledgements(child: Child) -> None:
    tell = Inbox.tell

    async def tell_and_report(self: Inbox, command: cm.Command) -> Answer:
        answer = await tell(self, command)
        child.reach("acknowledged")
        match command, answer:
            case cm.SendMessage(), Sent():
                child.say(f"accepted {command.key} {answer.turn_id}")
            case cm.CancelTurn(), Done():
                child.say(f"cancelled {command.turn_id} {'yes' if answer.done else 'over'}")
            case _:
                pass
        return answer

    Inbox.tell = tell_and_report


class DeadlyModel(ScriptedModel):
    """A scripted model with points: asked, in the middle of a reply, at its end."""

    def __init__(self, child: Child, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._child = child

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        self._child.reach("asked")
        first = True
        async for piece in super().stream(request):
            if isinstance(piece, Finished):
                self._child.reach("replied")
            elif first:
                self._child.reach("mid-reply")
                first = False
            yield piece
