"""Handles a session's commands: each takes effect once, and is answered when it is durable.

Commands change the state synchronously, so each sees what all earlier ones did. A cancel reaches
its scope when it is read; only its answer waits for the commit. The same key twice is one command.
The owner of the session also takes the commands that others entered into the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import assert_never

import msgspec

from keryx import commands as cm
from keryx import events as ev
from keryx.command_checks import checked
from keryx.engine.answer_schema import check_schema
from keryx.engine.approvals.answers import Answers
from keryx.engine.log.dedup import Dedup, row_of
from keryx.engine.operations.cancels import Cancels
from keryx.engine.operations.compaction import KEEP, LONGEST_FOCUS
from keryx.engine.operations.forks import fork
from keryx.engine.operations.reverts import Reverts
from keryx.engine.operations.titles import BY, first_title
from keryx.engine.operations.user_calls import UserCalls
from keryx.engine.operations.variants import Variants
from keryx.engine.session_context import SessionContext
from keryx.engine.steps.client_calls import check_client_tools, redacted
from keryx.engine.turns.turn_queue import TurnQueue
from keryx.errors import KeryxError, ScopeClosedError, UserMustActError
from keryx.ids import new_id
from keryx.ports.dispatch import Answer, Done, Sent
from keryx.ports.store import InboxRow
from keryx.ports.tags import clean_tags
from keryx.ports.view import Typed


class Inbox:
    """Handles the commands of one session."""

    def __init__(
        self, context: SessionContext, turn_queue: TurnQueue, log: list[ev.LoggedEvent]
    ) -> None:
        self._context = context
        self._turn_queue = turn_queue
        self._sent = _sent_messages(log)
        self._dedup = Dedup(context.services.store, context.log, context.fold.session_id)
        self._answers = Answers(
            context.services, context.fold, context.log, context.answers, self._dedup
        )
        self._user_calls = UserCalls(context, self._dedup)
        self._reverts = Reverts(context, self._dedup)
        self._variants = Variants(context.fold, context.log, self._dedup, self._reverts)
        self._cancels = Cancels(
            context.fold, context.log, turn_queue, self._dedup, self._user_calls
        )

    async def tell(self, command: cm.Command) -> Answer:
        """Handle a command; return once it is durable. `InvalidCommandError` if it is malformed."""
        command = checked(command)
        if isinstance(command, cm.SendMessage | cm.ChangeMessage) and command.text:
            # Before anything else: not even the inbox may contain a secret.
            text = self._context.services.redactor.text(command.text)
            command = msgspec.structs.replace(command, text=text)
        elif isinstance(command, cm.AnswerCalls):
            command = redacted(command, self._context.services.redactor)
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
                | cm.RestoreTurn()
                | cm.ForkSession()
                | cm.CompactContext()
                | cm.SetDraft()
            ):
                return await self._run_operation(command)
            case cm.AnswerApproval() | cm.AnswerQuestion() | cm.AnswerCalls():
                return await self._answers.take(command)
            case cm.WithdrawMessage() | cm.ChangeMessage() | cm.ChangeSession():
                return await self._change(command)
            case _:
                assert_never(command)

    @property
    def is_quiet(self) -> bool:
        """Whether no command is being handled, and none waits."""
        return self._dedup.is_quiet

    async def wait_calls_ended(self) -> None:
        """Return once no call of a person is running."""
        await self._user_calls.wait_ended()

    async def read(self) -> None:
        """Handle the commands that others entered into the store."""
        for row in await self._dedup.pending():
            command = None
            try:
                command = cm.decode(row.body)
                await self.tell(msgspec.structs.replace(command, command_id=row.key))
            except (KeryxError, msgspec.DecodeError):
                # Nobody here can be told of the error; the command is done all the same.
                self._context.log.raise_if_broken()
            if not isinstance(command, cm.RunCall):  # it waits until its call has ended
                self._dedup.done_with(row)
        await self._context.log.wait_durable()

    async def _answer(self, *, done: bool = True) -> Done:
        await self._context.log.wait_durable()
        return Done(done)

    # -- messages

    async def _send(self, command: cm.SendMessage, row: InboxRow) -> Sent:
        prompt_parts = None
        # A command without a key has a new id for each attempt, so the store need not be read.
        if (command.key is not None or row.key in self._sent) and await self._dedup.was_taken(row):
            return await self._acknowledge(row.key)
        if command.replaces is not None:
            self._variants.check(command.replaces)
        if command.schema is not None:
            await self._context.services.executor.bridge.to_thread(check_schema, command.schema)
        if command.options is not None:
            check_client_tools(command.options)
        if command.attachments:
            await self._context.files.store_attachments(command.attachments)
        if self._turn_queue.is_resting:
            prompt_parts = await self._turn_queue.read_prompt_parts(command.workspace, command.text)
        if command.replaces is not None:
            await self._variants.prepare(command, row)
        self._sent[row.key] = self._accept(command, row.key)
        self._dedup.take(row)
        if prompt_parts is not None and self._turn_queue.is_resting:
            self._turn_queue.start_next(prompt_parts)
        else:
            self._affect_running_turn(command)
        return await self._acknowledge(row.key)

    async def _acknowledge(self, key: str) -> Sent:
        await self._context.log.wait_durable()
        return self._sent[key]

    def _accept(self, command: cm.SendMessage, key: str) -> Sent:
        fold = self._context.fold
        joins = (
            command.mode == "steer"
            and command.replaces is None
            and fold.turn is not None
            and fold.turn.cancelling is None
            and command.turn_id in (None, fold.turn.turn_id)
        )
        turn_id = fold.turn.turn_id if joins and fold.turn is not None else new_id("t")
        replaces, by = command.replaces, command.by
        variants = () if replaces is None else self._variants.put_aside(replaces, by)
        accepted = self._context.log.record(
            ev.MessageAccepted,
            message_id=new_id("m"),
            turn_id=turn_id,
            key=key,
            by=by,
            mode=command.mode,
            text=command.text,
            workspace=command.workspace or fold.settings.workspace,
            attachments=command.attachments,
            wait=command.wait,
            schema=command.schema,
            attended=command.attended,
            options=command.options,
            variants=variants,
        )
        if not fold.settings.title and (title := first_title(command.text)):
            self._context.log.record(ev.SessionChanged, by=BY, title=title)
        return Sent(accepted.message_id, turn_id, accepted.seq)

    def _affect_running_turn(self, command: cm.SendMessage) -> None:
        """Interrupt or steer the running turn, if the accepted message asks for that."""
        fold, turn = self._context.fold, self._turn_queue.turn
        if fold.turn is None or turn is None:
            return
        if command.mode == "interrupt" and command.turn_id in (None, fold.turn.turn_id):
            self._cancels.log(fold.turn.turn_id, "interrupt", command.by)
            turn.scope.cancel("interrupt", by=command.by)
        elif command.mode == "steer" and not command.wait and fold.steers:
            turn.steer(by=command.by)

    async def _run_operation(
        self,
        command: cm.RunCall
        | cm.RevertFiles
        | cm.UndoTurn
        | cm.RestoreTurn
        | cm.ForkSession
        | cm.CompactContext
        | cm.SetDraft,
    ) -> Done:
        """Run an operation that does not belong to a turn."""
        match command:
            case cm.RunCall():
                return await self._user_calls.run(command)
            case cm.RevertFiles():
                return await self._reverts.run(command)
            case cm.UndoTurn() | cm.RestoreTurn():
                return await self._undo_or_restore(command)
            case cm.ForkSession():
                return await fork(self._context.services, self._context.log, self._dedup, command)
            case cm.CompactContext():
                return await self._compact(command)
            case cm.SetDraft():
                await self._context.drafts.save(Typed(command.text, command.attachments))
                return Done(True)

    async def _undo_or_restore(self, command: cm.UndoTurn | cm.RestoreTurn) -> Done:
        if isinstance(command, cm.UndoTurn):
            return await self._reverts.undo(command)
        return await self._variants.restore(command)

    async def _compact(self, command: cm.CompactContext) -> Done:
        """Compact the context; answer when that is done. Messages do not wait for it."""
        row, scope = row_of(command), self._context.scope
        if len(command.focus) > LONGEST_FOCUS:
            raise UserMustActError(
                f"the focus is longer than {LONGEST_FOCUS} characters; shorten it"
            )
        if not await self._dedup.was_taken(row):
            on_record = partial(self._dedup.take, row)
            if not await self._turn_queue.compaction.run(
                scope, keep=KEEP, focus=command.focus, on_record=on_record
            ):
                raise ScopeClosedError("the session was closed; try again when it is open")
        return Done(True)

    # -- changes of messages and settings

    async def _change(
        self, command: cm.WithdrawMessage | cm.ChangeMessage | cm.ChangeSession
    ) -> Done:
        row = row_of(command)
        if await self._dedup.was_taken(row):
            return await self._answer()
        if isinstance(command, cm.ChangeSession) and isinstance(command.model, str):
            own = self._context.fold.settings.profile
            # `ModelError` if no turn could ask it. Whether its key is right, only its server knows.
            self._context.services.model(command.model, command.profile or own)
        if isinstance(command, cm.ChangeMessage) and command.attachments:
            await self._context.files.store_attachments(command.attachments)
        match command:
            case cm.WithdrawMessage() if self._is_waiting(command.message_id):
                fact, target = ev.MessageWithdrawn, {"message_id": command.message_id}
            case cm.ChangeMessage() if command.message_id in self._context.fold.queue:
                fact, target = ev.MessageChanged, _changed_fields(command)
            case cm.ChangeSession():
                fact, target = ev.SessionChanged, _changed_fields(command)
            case _:
                return Done(False)
        self._context.log.record(fact, by=command.by, **target)
        self._dedup.take(row)
        return await self._answer()

    def _is_waiting(self, message_id: str) -> bool:
        fold = self._context.fold
        return message_id in fold.queue or message_id in fold.steers


def _sent_messages(log: Sequence[ev.LoggedEvent]) -> dict[str, Sent]:
    """Return the answers to sent messages, by key. Messages that a fork inherited do not count."""
    inherited = 0
    sent: dict[str, Sent] = {}
    for event in log:
        if isinstance(event, ev.SessionOpened) and event.fork is not None:
            inherited = event.fork.up_to
        elif isinstance(event, ev.MessageAccepted) and event.key and event.seq > inherited:
            sent[event.key] = Sent(event.message_id, event.turn_id, event.seq)
    return sent


def _changed_fields(command: cm.ChangeMessage | cm.ChangeSession) -> dict[str, object]:
    """Return the fields that the command sets, without its envelope."""
    fields: dict[str, object] = {
        name: value
        for name in command.__struct_fields__
        if name not in ("command_id", "session_id", "by", "v")
        and (value := getattr(command, name)) is not msgspec.UNSET
    }
    if isinstance(command, cm.ChangeSession) and command.tags is not msgspec.UNSET:
        fields["tags"] = clean_tags(command.tags)
    return fields
