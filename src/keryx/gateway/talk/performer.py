"""Does what was planned. Every action can be repeated: it takes effect once."""

from __future__ import annotations

from typing import Final, assert_never

import msgspec

from keryx import commands as cm
from keryx.aio.clock import Clock
from keryx.app.host_client import HostClient
from keryx.errors import AlreadyTakenError, DeveloperMustActError
from keryx.gateway import conversations
from keryx.gateway.conversations import AwaitedTurn
from keryx.gateway.talk import edits, requests
from keryx.gateway.talk.planner import Planner
from keryx.gateway.talk.plans import (
    AnswerPlan,
    ChangePlan,
    DecidePlan,
    ModelPlan,
    Plan,
    SayPlan,
    SendPlan,
    StopPlan,
    SwitchPlan,
)
from keryx.ids import new_id
from keryx.ports.dispatch import Done, Sent
from keryx.ports.platform import Incoming, ReceivedMessage
from keryx.sqlite_file import SqliteFile

OVER: Final = "It was over already."


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
                return await self._switch(plan)
            case _:
                assert_never(plan)

    async def _send(self, plan: SendPlan, incoming: Incoming, by: str) -> Performed:
        sent = await self._tell(
            cm.SendMessage,
            plan.session_id,
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
            session_id=plan.session_id,
            after=sent.seq - 1,
            address=incoming.address,
            reply_to=message_id if is_group else None,
            person=incoming.person.id,
        )
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
        except DeveloperMustActError:  # the session was deleted
            return Performed(OVER)
        is_done = isinstance(answer, Done) and answer.done
        return Performed("Stopped." if is_done else OVER)

    async def _switch(self, plan: SwitchPlan) -> Performed:
        if plan.is_new:
            await self._planner.create(plan.session_id)
        row = await self._host_client.store.session(plan.session_id)
        if row is None:
            return Performed("That session does not exist any more.")
        at = self._clock.wall()
        await self._file.write(
            lambda con: conversations.switch(con, plan.conversation, plan.session_id, at)
        )
        if plan.is_new:
            return Performed("This is a new session.")
        return Performed(f"Going on with: {row.title or row.session_id}")

    async def _tell(
        self, kind: type[cm.Command], session_id: str, by: str, **fields: object
    ) -> Sent | Done:
        command = kind(command_id=new_id("c"), session_id=session_id, by=by, **fields)  # pyright: ignore[reportArgumentType] (the fields of that kind)
        return await self._host_client.tell(command)
