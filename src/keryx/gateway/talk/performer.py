"""Does what was planned. Every action can be repeated: it takes effect once."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from functools import partial
from typing import Final, assert_never

import msgspec

from keryx import commands as cm
from keryx.aio.clock import Clock
from keryx.app.host_client import HostClient
from keryx.errors import AlreadyTakenError, DeveloperMustActError, KeryxError
from keryx.gateway import conversations
from keryx.gateway.conversations import AwaitedTurn
from keryx.gateway.delivery import ledger
from keryx.gateway.delivery.ledger import NewMessage
from keryx.gateway.formatting.splitting import plain
from keryx.gateway.talk import edits, requests
from keryx.gateway.talk.planner import Planner
from keryx.gateway.talk.plans import (
    AnswerPlan,
    ChangePlan,
    DecidePlan,
    DropPlan,
    ModelPlan,
    Plan,
    SayPlan,
    SendPlan,
    StopPlan,
    SwitchPlan,
)
from keryx.gateway.talk.turn_progress import answer_messages
from keryx.ids import new_id
from keryx.ports.dispatch import Done, Sent
from keryx.ports.platform import Content, Incoming, Person, Press, ReceivedMessage
from keryx.sqlite_file import SqliteFile

BY: Final = "gateway"
OVER: Final = "It was over already."
MIXED: Final = (
    "This was stopped: from now on each person has memories and sessions of their own here. Please "
    "send your message again."
)
NEW: Final = "This is a new session."


class Performed(msgspec.Struct, frozen=True):
    """What came of a plan: something to say, and a turn whose answer is awaited."""

    text: str = ""
    turn: AwaitedTurn | None = None
    queued_id: str | None = None
    """The id of the message in the session that was sent to it."""


class Performer:
    """Performs the plans of one platform."""

    def __init__(
        self,
        name: str,
        host_client: HostClient,
        file: SqliteFile,
        planner: Planner,
        clock: Clock,
    ) -> None:
        self._name = name
        self._host_client = host_client
        self._file = file
        self._planner = planner
        self._clock = clock

    async def perform(self, plan: Plan, incoming: Incoming) -> Performed:
        try:
            return await self._perform(plan, incoming)
        except AlreadyTakenError:
            return Performed(requests.EXPIRED)

    async def _perform(self, plan: Plan, incoming: Incoming) -> Performed:  # noqa: PLR0911 (one for each plan)
        by = f"{self._name}:{incoming.person.id}"
        match plan:
            case SayPlan():
                return Performed(plan.text)
            case DropPlan():
                return Performed()
            case SendPlan():
                return await self._send(plan, incoming, by)
            case StopPlan():
                return await self._stop(plan, by)
            case ChangePlan():
                return await self._change(plan, by)
            case DecidePlan() | AnswerPlan():
                return await self._answer(plan, by)
            case ModelPlan():
                await self._tell(cm.ChangeSession, plan.session_id, by, model=plan.model)
                return Performed(f"The model is {plan.model} from the next message on.")
            case SwitchPlan():
                return await self._switch(plan, incoming, by)
            case _:
                assert_never(plan)

    async def _send(self, plan: SendPlan, incoming: Incoming, by: str) -> Performed:
        # An earlier version may have planned it, for a session that is not theirs alone.
        session_id = await self._planner.own_session(plan.session_id, incoming)
        sent = await self._tell(
            cm.SendMessage,
            session_id,
            by,
            text=plan.text,
            mode=plan.mode,
            key=plan.key,
            attachments=plan.attachments,
            attended=True,
        )
        assert isinstance(sent, Sent)
        is_group = not incoming.address.is_private
        message_id = incoming.message_id if isinstance(incoming, ReceivedMessage) else None
        turn = AwaitedTurn(
            turn_id=sent.turn_id,
            session_id=session_id,
            after=sent.seq - 1,
            address=incoming.address,
            reply_to=message_id if is_group else None,
            person=incoming.person.id,
        )
        if plan.is_stopped:
            # Before the update ends: whatever dies in between, this is done again.
            stop_plan = StopPlan(session_id=session_id, turn_id=sent.turn_id)
            await self._stop(stop_plan, by)
        return Performed(turn=turn, queued_id=sent.message_id)

    async def _change(self, plan: ChangePlan, by: str) -> Performed:
        try:
            answer = await self._tell(
                cm.ChangeMessage,
                plan.session_id,
                by,
                message_id=plan.message_id,
                text=plan.text,
            )
        except DeveloperMustActError:  # the session was deleted
            return Performed(edits.TOO_LATE)
        is_done = isinstance(answer, Done) and answer.done
        return Performed(edits.CHANGED if is_done else edits.TOO_LATE)

    async def _answer(self, plan: DecidePlan | AnswerPlan, by: str) -> Performed:
        """Answer an approval request or a question, of which the first answer counts."""
        if isinstance(plan, DecidePlan):
            kind, text = cm.AnswerApproval, requests.ANSWERED[plan.decision]
            fields = {"approval_id": plan.approval_id, "decision": plan.decision}
        else:
            kind, text = cm.AnswerQuestion, ""
            fields = {"question_id": plan.question_id, "answer": plan.answer}
        await self._tell(kind, plan.session_id, by, where=self._name, **fields)
        return Performed(text)

    async def _stop(self, plan: StopPlan, by: str) -> Performed:
        try:
            answer = await self._tell(
                cm.CancelTurn, plan.session_id, by, turn_id=plan.turn_id, reason="interrupt"
            )
            is_done = isinstance(answer, Done) and answer.done
        except DeveloperMustActError:  # the session was deleted
            is_done = False
        return Performed(f"{'Stopped.' if is_done else OVER}\n\n{plan.note}".strip())

    async def _switch(self, plan: SwitchPlan, incoming: Incoming, by: str) -> Performed:
        if plan.is_new:
            await self._planner.create(plan.session_id, incoming.address, incoming.person)
        row = await self._host_client.store.session(plan.session_id)
        if row is None:
            return Performed("That session does not exist any more.")
        at = self._clock.wall()
        await self._file.write(
            lambda con: conversations.switch(con, plan.conversation, plan.session_id, at)
        )
        if plan.first is not None:
            # A later change of this message comes too late: a new session has nothing to wait for.
            sent = await self._send(plan.first, incoming, by)
            return Performed(NEW, turn=sent.turn)
        if plan.is_new:
            return Performed(NEW)
        return Performed(f"Going on with: {row.title or row.session_id}")

    async def end_mixed_turns(self, account: str) -> None:
        """End turns in sessions that are not for who waits for them, before they are answered.

        An earlier version let all people share the memories of the owner of the home.
        """
        for turn in await self._file.read(partial(conversations.awaited_turns, account=account)):
            person = Person(turn.person)
            if await self._planner.is_for(turn.session_id, turn.address, person):
                continue
            with suppress(KeryxError):  # it has ended, or it ends with nobody who reads it
                plan = StopPlan(session_id=turn.session_id, turn_id=turn.turn_id)
                await self._stop(plan, BY)
            await self._file.write(partial(_end, account, turn, self._clock.wall()))

    async def _tell(
        self, kind: type[cm.Command], session_id: str, by: str, **fields: object
    ) -> Sent | Done:
        command = kind(command_id=new_id("c"), session_id=session_id, by=by, **fields)  # pyright: ignore[reportArgumentType] (the fields of that kind)
        return await self._host_client.tell(command)


def _end(account: str, turn: AwaitedTurn, at: float, connection: sqlite3.Connection) -> None:
    """Say that the turn was stopped, and wait for it no more."""
    if conversations.close_turn(connection, turn.turn_id):
        ledger.add(connection, account, answer_messages(turn, [Content(text=MIXED)]), at)


def reply_messages(
    key: str, incoming: Incoming, text: str, longest: int | None
) -> list[NewMessage]:
    """Return the reply to a command; what a press did is told to who pressed."""
    if not text or isinstance(incoming, Press):
        return []
    return [
        NewMessage(
            key=f"{key}:reply:{number}",
            address=incoming.address,
            content=content,
            reply_to=None if incoming.address.is_private else incoming.message_id,
        )
        # Not as Markdown: names of files and titles are shown as they are.
        for number, content in enumerate(plain(text, longest))
    ]
