"""What a session is told: each command takes effect once, and is answered once it is durable.

Commands change the state synchronously, so each sees it as all earlier ones left it. A cancel
reaches its scope when it is read; only its answer waits for the commit. The same key twice is one
command. Commands that others entered into the store are taken from there by whoever owns the
session.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import assert_never

import msgspec

from keryx import commands as cm
from keryx import events as ev
from keryx.engine.answer_schema import check_schema
from keryx.engine.approvals.answers import Answers
from keryx.engine.log.dedup import Dedup, row_of
from keryx.engine.operations.cancels import Cancels
from keryx.engine.operations.forks import fork
from keryx.engine.operations.reverts import Reverts
from keryx.engine.operations.titles import BY, first_title
from keryx.engine.operations.user_calls import UserCalls
from keryx.engine.session_context import SessionContext
from keryx.engine.turns.turn_queue import TurnQueue
from keryx.errors import KeryxError, ScopeClosedError
from keryx.ids import new_id
from keryx.ports.dispatch import Answer, Done, Sent
from keryx.ports.store import InboxRow
from keryx.ports.view import Typed


class Inbox:
    """Takes the commands of one session."""

    def __init__(
        self, context: SessionContext, turn_queue: TurnQueue, log: list[ev.LoggedEvent]
    ) -> None:
        self._context = context
        self._turn_queue = turn_queue
        self._sent = _sent_messages(log)
        self._dedup = Dedup(context.services.store, context.log, context.fold.session_id)
        self._answers = Answers(context, self._dedup)
        self._person_calls = UserCalls(context, self._dedup)
        self._reverts = Reverts(context, self._dedup)
        self._cancels = Cancels(context, turn_queue, self._dedup, self._person_calls)

    async def tell(self, command: cm.Command) -> Answer:
        """Take a command; returns once it is durable. `InvalidCommandError` if it does not fit."""
        command = cm.checked(command)
        if isinstance(command, cm.SendMessage | cm.ChangeMessage) and command.text:
            # Before anything else: not even the inbox shall hold a secret.
            text = self._context.services.redactor.text(command.text)
            command = msgspec.structs.replace(command, text=text)
        row = row_of(command)
        return await self._dedup.run(row, partial(self._take, command, row))

    async def _take(self, command: cm.Command, row: InboxRow) -> Answer:
        match command:
            case cm.SendMessage():
                return await self._send(command, row)
            case cm.CancelTurn():
                return await self._cancels.turn(command)
            case cm.CancelCall():
                return await self._cancels.call(command)
            case (
                cm.RunCall()
                | cm.RevertFiles()
                | cm.UndoTurn()
                | cm.ForkSession()
                | cm.CompactContext()
                | cm.SetDraft()
            ):
                return await self._act(command)
            case cm.AnswerApproval() | cm.AnswerQuestion():
                return await self._answers.take(command)
            case cm.WithdrawMessage() | cm.ChangeMessage() | cm.ChangeSession():
                return await self._change(command)
            case _:
                assert_never(command)

    @property
    def is_quiet(self) -> bool:
        """Whether no command is being taken, and none waits."""
        return self._dedup.is_quiet

    async def wait_calls_ended(self) -> None:
        """Return once no call that a person ran is under way."""
        await self._person_calls.wait_ended()

    async def read(self) -> None:
        """Take what others entered into the store."""
        for row in await self._dedup.pending():
            command = None
            try:
                command = cm.decode(row.body)
                await self.tell(msgspec.structs.replace(command, command_id=row.key))
            except (KeryxError, msgspec.DecodeError):
                # Whoever entered it is not here to be told; it is done with all the same.
                self._context.log.raise_if_broken()
            if not isinstance(command, cm.RunCall):  # that one waits until its call has ended
                self._dedup.done_with(row)
        await self._context.log.durable()

    async def _done(self, *, done: bool = True) -> Done:
        await self._context.log.durable()
        return Done(done)

    # -- messages

    async def _send(self, command: cm.SendMessage, row: InboxRow) -> Sent:
        prompt_parts = None
        # A key that its maker minted for this attempt alone needs no look into the store.
        if (command.key is not None or row.key in self._sent) and await self._dedup.was_taken(row):
            return await self._acknowledge(row.key)
        if command.schema is not None:
            await self._context.services.executor.bridge.to_thread(check_schema, command.schema)
        await self._context.bring(command.attachments)
        if self._turn_queue.is_resting:
            prompt_parts = await self._turn_queue.read_brief(command.workspace)
        self._sent[row.key] = self._accept(command, row.key)
        self._dedup.take(row)
        if prompt_parts is not None and self._turn_queue.is_resting:
            self._turn_queue.start_next(prompt_parts)
        else:
            self._react(command)
        return await self._acknowledge(row.key)

    async def _acknowledge(self, key: str) -> Sent:
        await self._context.log.durable()
        return self._sent[key]

    def _accept(self, command: cm.SendMessage, key: str) -> Sent:
        fold = self._context.fold
        joins = (
            command.mode == "steer"
            and fold.turn is not None
            and fold.turn.cancelling is None
            and command.turn_id in (None, fold.turn.turn_id)
        )
        turn_id = fold.turn.turn_id if joins and fold.turn is not None else new_id("t")
        accepted = self._context.log.record(
            ev.MessageAccepted,
            message_id=new_id("m"),
            turn_id=turn_id,
            key=key,
            by=command.by,
            mode=command.mode,
            text=command.text,
            workspace=command.workspace or fold.settings.workspace,
            attachments=command.attachments,
            wait=command.wait,
            schema=command.schema,
            attended=command.attended,
        )
        if not fold.settings.title and (title := first_title(command.text)):
            self._context.log.record(ev.SessionChanged, by=BY, title=title)
        return Sent(accepted.message_id, turn_id, accepted.seq)

    def _react(self, command: cm.SendMessage) -> None:
        """What an accepted message does at once to the turn that runs."""
        fold, turn = self._context.fold, self._turn_queue.turn
        if fold.turn is None or turn is None:
            return
        if command.mode == "interrupt" and command.turn_id in (None, fold.turn.turn_id):
            self._cancels.log(fold.turn.turn_id, "interrupt", command.by)
            turn.scope.cancel("interrupt", by=command.by)
        elif command.mode == "steer" and not command.wait and fold.steers:
            turn.steer(by=command.by)

    async def _act(
        self,
        command: cm.RunCall
        | cm.RevertFiles
        | cm.UndoTurn
        | cm.ForkSession
        | cm.CompactContext
        | cm.SetDraft,
    ) -> Done:
        """What a person does in the session by themselves."""
        match command:
            case cm.RunCall():
                return await self._person_calls.run(command)
            case cm.RevertFiles():
                return await self._reverts.run(command)
            case cm.UndoTurn():
                return await self._reverts.undo(command)
            case cm.ForkSession():
                return await fork(self._context, self._dedup, command)
            case cm.CompactContext():
                return await self._compact(command)
            case cm.SetDraft():
                await self._context.drafts.keep(Typed(command.text, command.attachments))
                return Done(True)

    async def _compact(self, command: cm.CompactContext) -> Done:
        """Answered when it is done: what is said meanwhile does not wait for it."""
        row, scope = row_of(command), self._context.scope
        if not await self._dedup.was_taken(row):
            recorded = partial(self._dedup.take, row)
            if not await self._turn_queue.compaction.run(scope, recorded=recorded):
                raise ScopeClosedError("the session was closed; ask again when it is open")
        return Done(True)

    # -- approvals, and what people change

    async def _change(
        self, command: cm.WithdrawMessage | cm.ChangeMessage | cm.ChangeSession
    ) -> Done:
        row = row_of(command)
        if await self._dedup.was_taken(row):
            return await self._done()
        if isinstance(command, cm.ChangeMessage) and command.attachments:
            await self._context.bring(command.attachments)
        match command:
            case cm.WithdrawMessage() if self._waits(command.message_id):
                fact, target = ev.MessageWithdrawn, {"message_id": command.message_id}
            case cm.ChangeMessage() if command.message_id in self._context.fold.queue:
                fact, target = ev.MessageChanged, _given(command)
            case cm.ChangeSession():
                fact, target = ev.SessionChanged, _given(command)
            case _:
                return Done(False)
        self._context.log.record(fact, by=command.by, **target)
        self._dedup.take(row)
        return await self._done()

    def _waits(self, message_id: str) -> bool:
        fold = self._context.fold
        return message_id in fold.queue or message_id in fold.steers


def _sent_messages(log: Sequence[ev.LoggedEvent]) -> dict[str, Sent]:
    """What was sent to this session, by key. What a fork shares was sent to another one."""
    inherited = 0
    sent: dict[str, Sent] = {}
    for event in log:
        if isinstance(event, ev.SessionOpened) and event.fork is not None:
            inherited = event.fork.up_to
        elif isinstance(event, ev.MessageAccepted) and event.key and event.seq > inherited:
            sent[event.key] = Sent(event.message_id, event.turn_id, event.seq)
    return sent


def _given(command: cm.ChangeMessage | cm.ChangeSession) -> dict[str, object]:
    """What the command names, without its own head; what it does not name stays as it is."""
    return {
        name: value
        for name in command.__struct_fields__
        if name not in ("command_id", "session_id", "by", "v")
        and (value := getattr(command, name)) is not msgspec.UNSET
    }
