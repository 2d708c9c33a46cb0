"""The session: one log, one owner. Commands come in, facts go out.

Everything here happens on one loop and changes state only between awaits, so a command sees the
session as all earlier ones left it. A command is acknowledged once it is durable; a cancel reaches
its scope when it is read.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Self

from keryx import commands as cm
from keryx import events as ev
from keryx.aio.group import Group
from keryx.aio.hub import Hub, Replay
from keryx.aio.scope import Scope
from keryx.engine.desk import Desk, Surroundings, mint
from keryx.engine.log.fold import Fold, Queued
from keryx.engine.log.ledger import Ledger
from keryx.engine.turns.turn import Turn
from keryx.errors import AlreadyTakenError, DeveloperMustActError, KeyReusedError
from keryx.ports.store import Blob, InboxRow, Store, blob_hash

TITLE_LENGTH = 60


@dataclass(frozen=True, slots=True)
class Sent:
    """A message is durable: its id, and the turn that it will be or join."""

    message_id: str
    turn_id: str


@dataclass(frozen=True, slots=True)
class Opening:
    """What a new session starts with."""

    model: str
    workspace: str
    tools: tuple[str, ...] = ()
    profile: str = "default"
    place: str = "local"
    personality: str | None = None
    title: str = ""


class Session:
    """The owner of one session's log."""

    def __init__(self, desk: Desk, sent: dict[str, Sent]) -> None:
        self._desk = desk
        self._sent = sent
        self._turn: Turn | None = None
        self._prompt: Mapping[str, str] = {}
        self._rest: asyncio.Event = asyncio.Event()
        self._rest.set()

    # -- opening

    @classmethod
    async def open(
        cls, session_id: str, around: Surroundings, scope: Scope, opening: Opening | None = None
    ) -> Self:
        """Become the owner of a session, new or old; an unfinished turn goes on."""
        epoch = await around.store.claim(session_id)
        log = await around.store.events(session_id)
        if not log and opening is None:
            raise DeveloperMustActError(f"there is no session {session_id!r}")
        fold = Fold(session_id)
        for event in log:
            fold.apply(event)
        own = scope.child(session_id)
        hub: Hub[ev.Event] = Hub(
            replay=_replay(around.store, session_id),
            snapshot=lambda: desk.snapshot(),  # noqa: PLW0108 (the desk is made after the hub)
            last=fold.last_seq,
        )
        # A tree of its own: turns and commits end by themselves when the session is cancelled.
        group = Group(Scope(f"work of {session_id}", clock=around.clock))

        def broken(error: BaseException) -> None:
            own.cancel("shutdown", by=f"the log failed: {error}")

        def show(fact: ev.LoggedEvent) -> None:
            hub.publish_fact(fact.seq, fact)
            around.neighbours.saw(fact)

        ledger = Ledger(
            around.store,
            fold,
            show=show,
            epoch=epoch,
            group=group,
            clock=around.clock,
            on_broken=broken,
        )
        desk = Desk(around, own, group, fold, hub, ledger)
        session = cls(desk, _sent(log))
        if not log and opening is not None:
            await session._begin(opening)
        await session._go_on()
        return session

    async def _begin(self, opening: Opening) -> None:
        self._desk.ledger.record(
            ev.SessionOpened,
            model=opening.model,
            profile=opening.profile,
            place=opening.place,
            workspace=opening.workspace,
            tools=opening.tools,
            personality=opening.personality,
            title=opening.title,
        )
        await self._desk.ledger.durable()

    async def _go_on(self) -> None:
        """Resume what an earlier owner left, or begin what is queued."""
        fold = self._desk.fold
        if fold.turn is not None:
            self._prompt = await self._logged_prompt()
            self._start(Turn(self._desk, fold.turn.turn_id, self._prompt, resumed=True))
            return
        self._desk.around.neighbours.rests(self.session_id)
        if fold.queue:
            await self._next_turn()

    async def _logged_prompt(self) -> Mapping[str, str]:
        """The parts of the prompt as they were logged: a resumed turn keeps what it had."""
        found: dict[str, str] = {}
        for part, name in self._desk.fold.prompt.items():
            data = await self._desk.around.store.blob(name)
            if data is not None:
                found[part] = data.decode()
        return found

    def _log_prompt(self) -> None:
        """What came from outside is logged when it has changed, so that the log tells it all."""
        ledger, known = self._desk.ledger, dict(self._desk.fold.prompt)
        for part, text in self._prompt.items():
            data = text.encode()
            name = blob_hash(data)
            if known.pop(part, None) != name:
                ledger.keep(Blob(name, data))
                ledger.record(ev.PromptChanged, part=part, blob=name)
        for part in known:
            ledger.record(ev.PromptChanged, part=part, blob=None)

    # -- what anyone may ask

    @property
    def session_id(self) -> str:
        return self._desk.fold.session_id

    @property
    def fold(self) -> Fold:
        """The state, for reading."""
        return self._desk.fold

    @property
    def hub(self) -> Hub[ev.Event]:
        return self._desk.hub

    async def wait_rested(self) -> None:
        """Return once no turn runs and none waits."""
        await self._rest.wait()

    # -- commands

    async def send(self, command: cm.SendMessage) -> Sent:
        """Accept a message; the same key twice is one message."""
        key = command.key or command.command_id
        if (earlier := await self._earlier(key, command)) is not None:
            return earlier
        if self._desk.fold.turn is None:
            workspace = command.workspace or self._desk.fold.settings.workspace
            self._prompt = await self._desk.around.prompt(self._desk.fold.settings, workspace)
            if key in self._sent:
                return await self._acknowledge(self._sent[key])
        sent = self._accept(command, key)
        self._sent[key] = sent
        self._desk.ledger.enter(InboxRow(key, _body(command)))
        self._react(command)
        return await self._acknowledge(sent)

    async def cancel_turn(self, command: cm.CancelTurn) -> bool:
        """End a turn, started or not. False: it was over, or there never was one."""
        fold, ledger = self._desk.fold, self._desk.ledger
        if fold.turn is not None and fold.turn.turn_id == command.turn_id:
            if fold.turn.cancelling is None:
                ledger.record(
                    ev.TurnCancelling,
                    turn_id=command.turn_id,
                    reason=command.reason,
                    by=command.by,
                )
            if self._turn is not None:
                self._turn.scope.cancel(command.reason, by=command.by)
        elif (message := self._queued_for(command.turn_id)) is not None:
            self._cancel_before_start(message, command)
        else:
            return False
        ledger.enter(InboxRow(command.command_id, cm.encode(command)))
        await ledger.durable()
        return True

    def cancel_soon(self, turn_id: str, *, by: str = "signal") -> bool:
        """Cancel the running turn from a signal handler: its scope now, the log right after."""
        turn = self._turn
        if turn is None or turn.turn_id != turn_id:
            return False
        return turn.scope.cancel("interrupt", by=by)

    async def cancel_call(self, command: cm.CancelCall) -> bool:
        """End one call; its turn goes on with the outcome."""
        if self._turn is None:
            return False
        return self._turn.cancel_call(command.call_id, command.reason, by=command.by)

    async def withdraw(self, command: cm.WithdrawMessage) -> bool:
        """Take back a message that was not delivered yet."""
        fold = self._desk.fold
        if command.message_id not in fold.queue and command.message_id not in fold.steers:
            return False
        self._desk.ledger.record(ev.MessageWithdrawn, message_id=command.message_id, by=command.by)
        await self._desk.ledger.durable()
        return True

    async def change(self, command: cm.ChangeMessage) -> bool:
        """Change or reorder a message that was not delivered yet."""
        if command.message_id not in self._desk.fold.queue:
            return False
        self._desk.ledger.record(
            ev.MessageChanged,
            message_id=command.message_id,
            by=command.by,
            mode=command.mode,
            text=command.text,
            workspace=command.workspace,
            attachments=command.attachments,
            before=command.before,
        )
        await self._desk.ledger.durable()
        return True

    async def answer(self, command: cm.AnswerApproval) -> None:
        """Decide on a call that waits. The first answer wins; later ones are refused."""
        asked = self._desk.fold.approvals.get(command.approval_id)
        if asked is None:
            raise AlreadyTakenError(f"approval {command.approval_id} is answered or expired")
        self._desk.ledger.claim(f"approval {command.approval_id}")
        self._desk.ledger.record(
            ev.ApprovalAnswered,
            turn_id=asked.turn_id,
            approval_id=command.approval_id,
            call_id=asked.call_id,
            decision=command.decision,
            by=command.by,
            where=command.where,
        )
        await self._desk.ledger.durable()
        waiting = self._desk.answers.get(command.approval_id)
        if waiting is not None:
            waiting(command.decision)

    async def close(self) -> None:
        """Stop gracefully: a running turn is suspended and goes on at the next start."""
        self._desk.scope.cancel("shutdown", by="close")
        if self._turn is not None:
            await self._rest.wait()
        if self._desk.ledger.broken is None:
            await self._desk.ledger.durable()
        await self._desk.group.leave()
        self._desk.scope.close()

    # -- accepting

    async def _earlier(self, key: str, command: cm.SendMessage) -> Sent | None:
        """What became of the same command before, if it came before."""
        if command.key is None and key not in self._sent:
            return None  # its maker minted the id for this one alone
        row = await self._desk.around.store.command(self.session_id, key)
        if row is not None and row.body != _body(command):
            raise KeyReusedError(f"the key {key!r} was used for another message; choose a new one")
        return self._sent.get(key)

    async def _acknowledge(self, sent: Sent) -> Sent:
        await self._desk.ledger.durable()
        return sent

    def _accept(self, command: cm.SendMessage, key: str) -> Sent:
        fold = self._desk.fold
        joins = (
            command.mode == "steer"
            and fold.turn is not None
            and fold.turn.cancelling is None
            and command.turn_id in (None, fold.turn.turn_id)
        )
        turn_id = fold.turn.turn_id if joins and fold.turn is not None else mint("t")
        sent = Sent(mint("m"), turn_id)
        self._desk.ledger.record(
            ev.MessageAccepted,
            message_id=sent.message_id,
            turn_id=turn_id,
            key=key,
            by=command.by,
            mode=command.mode,
            text=command.text,
            workspace=command.workspace or fold.settings.workspace,
            attachments=command.attachments,
            wait=command.wait,
        )
        if not fold.settings.title and command.text.strip():
            title = command.text.strip().splitlines()[0][:TITLE_LENGTH]
            self._desk.ledger.record(ev.SessionChanged, by="keryx", title=title)
        return sent

    def _react(self, command: cm.SendMessage) -> None:
        """What an accepted message does at once."""
        fold = self._desk.fold
        if fold.turn is None:
            self._start_next()
        elif self._turn is None:
            return
        elif command.mode == "interrupt" and command.turn_id in (None, fold.turn.turn_id):
            if fold.turn.cancelling is None:
                self._desk.ledger.record(
                    ev.TurnCancelling,
                    turn_id=fold.turn.turn_id,
                    reason="interrupt",
                    by=command.by,
                )
            self._turn.scope.cancel("interrupt", by=command.by)
        elif command.mode == "steer" and not command.wait and fold.steers:
            self._turn.steer(by=command.by)

    def _queued_for(self, turn_id: str) -> Queued | None:
        return next((m for m in self._desk.fold.queue.values() if m.turn_id == turn_id), None)

    def _cancel_before_start(self, message: Queued, command: cm.CancelTurn) -> None:
        ledger, turn_id = self._desk.ledger, command.turn_id
        ledger.record(ev.TurnCancelling, turn_id=turn_id, reason=command.reason, by=command.by)
        ledger.record(
            ev.MessageExpired,
            turn_id=turn_id,
            message_id=message.message_id,
            cause=command.reason,
        )
        ledger.record(
            ev.TurnFinished,
            turn_id=turn_id,
            outcome="cancelled",
            reason=command.reason,
            started=False,
            usage=ev.Usage(),
            cost=0.0,
        )

    # -- turns

    def _start_next(self) -> None:
        """Begin the turn of the first queued message, in the same commit as its acceptance."""
        fold, ledger = self._desk.fold, self._desk.ledger
        message = next(iter(fold.queue.values()))
        self._log_prompt()
        ledger.record(ev.TurnStarted, turn_id=message.turn_id, message_ids=(message.message_id,))
        ledger.record(ev.MessageDelivered, turn_id=message.turn_id, message_id=message.message_id)
        turn = Turn(self._desk, message.turn_id, self._prompt)
        turn.begin()
        self._start(turn)

    def _start(self, turn: Turn) -> None:
        self._turn = turn
        self._rest.clear()
        self._desk.group.start(self._run(turn), name=f"turn {turn.turn_id}")

    async def _run(self, turn: Turn) -> None:
        try:
            await turn.run()
        finally:
            self._turn = None
            self._desk.around.neighbours.rests(self.session_id)
            if self._desk.scope.is_cancelled or not self._desk.fold.queue:
                self._rest.set()
        if not self._rest.is_set():
            await self._next_turn()

    async def _next_turn(self) -> None:
        message = next(iter(self._desk.fold.queue.values()))
        settings = self._desk.fold.settings
        self._prompt = await self._desk.around.prompt(settings, message.workspace)
        if self._desk.scope.is_cancelled or not self._desk.fold.queue:
            self._rest.set()
        elif self._desk.fold.turn is None:
            self._start_next()


def _body(command: cm.SendMessage) -> bytes:
    """What makes two commands the same: all but the id of the attempt."""
    return cm.encode(
        cm.SendMessage(
            command_id="",
            session_id=command.session_id,
            by=command.by,
            text=command.text,
            mode=command.mode,
            turn_id=command.turn_id,
            attachments=command.attachments,
            workspace=command.workspace,
            key=command.key,
            wait=command.wait,
        )
    )


def _sent(log: list[ev.LoggedEvent]) -> dict[str, Sent]:
    return {
        event.key: Sent(event.message_id, event.turn_id)
        for event in log
        if isinstance(event, ev.MessageAccepted) and event.key is not None
    }


def _replay(store: Store, session_id: str) -> Replay[ev.Event]:
    async def replay(after: int, upto: int) -> AsyncIterator[tuple[int, ev.Event]]:
        for event in await store.events(session_id, after=after, limit=upto - after):
            yield event.seq, event

    return replay
