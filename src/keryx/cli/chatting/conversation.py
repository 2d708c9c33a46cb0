"""One conversation: sends what a person typed, follows the session, and tells a view about it.

It knows no terminal. A view may be a screen with a live region, or plain lines.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, Final

from keryx import commands as cm
from keryx import events as ev
from keryx.aio.clock import RealClock
from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.app import Keryx, SessionHandle
from keryx.app.services.approval_rules import with_whole_arguments
from keryx.app.services.diffs import diff_of_changes
from keryx.cli.chatting.call_diffs import CallDiffs
from keryx.cli.chatting.outbox import Outbox
from keryx.cli.chatting.pieces import Piece, one_line
from keryx.cli.chatting.recap import read_back, recap
from keryx.cli.chatting.requests import Choice, Request
from keryx.cli.chatting.transcript import Transcript, has_own_turn
from keryx.cli.chatting.view import Opening, View, alert_for
from keryx.config import DEFAULT
from keryx.errors import AlreadyTakenError, KeryxError, SessionDeletedError, UserMustActError
from keryx.messages import File, Image
from keryx.ports.dispatch import Done

BY: Final = "terminal"
SUMMARY_GOES_ON: Final = (
    "Only a summary is being written. It goes on; messages need not wait for it."
)
FOLLOWING: Final = "following"
DELETED: Final = "This session was deleted. The next message starts a new one."


class Conversation:
    """A person's way to one session at a time. Belongs to one loop."""

    def __init__(self, app: Keryx, view: View, opening: Opening, *, attended: bool) -> None:
        self.app = app
        self.view = view
        self.transcript = Transcript()
        self.session: SessionHandle | None = None
        self.opening = opening
        self.is_attended = attended
        self._clock = RealClock()
        self._group = Group(Scope("conversation"), on_error=self._failed)
        self._following: asyncio.Task[None] | None = None
        self.outbox = Outbox()
        self._group.start(self.outbox.run(self._send), name="sending")

    async def close(self) -> None:
        self.outbox.close()
        await self._group.leave()
        self._group.scope.close()

    def start(self, work: Coroutine[Any, Any, None], *, name: str) -> None:
        """Do some work beside everything else; its error is shown."""
        self._group.start(self._reported(work), name=name)

    def in_order(self, work: Coroutine[Any, Any, None], *, is_message: bool = False) -> None:
        """Do some work after everything that was handed in before; its error is shown."""
        self.outbox.put(work, is_message=is_message)

    async def beside(self, work: Coroutine[Any, Any, None], *, name: str) -> None:
        """Do what may take long. A person need not wait for it with what they type next."""
        if self.is_attended:
            self.start(work, name=name)
        else:  # the next line is about what this one has done
            await work

    async def _send(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await self._reported(work)
        except Exception as error:  # noqa: BLE001 (what comes after it must be sent all the same)
            self._failed("this command", error)

    async def _reported(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except KeryxError as error:
            self.view.show([Piece("error", str(error))])

    def _failed(self, name: str, error: BaseException) -> None:
        if name == FOLLOWING:
            self.outbox.fail(error)
            if isinstance(error, OSError):
                return  # nobody reads any more
        text = f"{name} failed: {type(error).__name__}: {error}; please report it"
        self.view.show([Piece("error", text)])

    # -- sessions

    async def current(self) -> SessionHandle:
        """Return the session; opens one if there is none yet."""
        if self.session is None:
            opening = self.opening
            tools = opening.tools
            if tools is None:
                tools = await self.app.host_client.tools_for("cli", DEFAULT)
            session = await self.app.open(
                tools=tools,
                personality=opening.personality,
                approvals=opening.approvals,
                read_only=opening.read_only,
            )
            self._follow(session, Transcript(), after=0)
        assert self.session is not None
        return self.session

    @property
    def existing(self) -> SessionHandle:
        """The session that there is; `UserMustActError` if there is none yet."""
        if self.session is None:
            raise UserMustActError("there is no session yet; send a message first")
        return self.session

    @property
    def workspace(self) -> str:
        """The folder of the session, or that of the next one: typed paths begin there."""
        return self.transcript.workspace or self.opening.workspace

    def forget(self) -> None:
        """Leave the session as it is; the next message opens a new one."""
        self._stop_following()
        self._following = self.session = None
        self.transcript = Transcript()
        self.view.refresh()

    def _stop_following(self) -> None:
        if self._following is not None:
            self._following.cancel()
        self.outbox.follow_anew()

    async def resume(self, session_id: str) -> SessionHandle:
        """Show the end of an earlier session, and continue there."""
        store = self.app.store
        if await store.session(session_id) is None:
            raise UserMustActError(f"there is no session {session_id!r}; /sessions shows all")
        session = await self.app.open(session_id)
        view = await session.view()
        transcript, events = await read_back(store, session_id, view, self._clock.wall())
        title = one_line(view.settings.title, 60)
        self._follow(session, transcript, after=view.seq)
        self.view.show([Piece("note", f"Session {session_id} {title}".rstrip()), *recap(events)])
        self.view.show(transcript.pending.first_pieces())
        self.view.put_back(view.draft.text)
        return session

    def _follow(self, session: SessionHandle, transcript: Transcript, *, after: int) -> None:
        self._stop_following()
        self.session, self.transcript = session, transcript
        self._following = self._group.start(
            self._follow_until_deleted(session, transcript, after), name=FOLLOWING
        )
        self.view.refresh()

    async def _follow_until_deleted(
        self, session: SessionHandle, transcript: Transcript, after: int
    ) -> None:
        try:
            await self._show_events(session, transcript, after)
        except SessionDeletedError:
            self._following = None
            self.forget()
            self.view.show([Piece("note", DELETED)])

    async def _show_events(
        self, session: SessionHandle, transcript: Transcript, after: int
    ) -> None:
        client = self.app.host_client
        diffs = CallDiffs(partial(diff_of_changes, client.to_thread, client.store, client.config))
        async with aclosing(await session.follow(after)) as stream:
            async for event in stream:
                if isinstance(event, ev.ApprovalAsked):
                    event = await with_whole_arguments(event, client.store)  # noqa: PLW2901 (the same event)
                diff = await diffs.pieces(event)
                message = transcript.queue.get(getattr(event, "message_id", ""))
                # In one go: whoever sees that a request is the first must see its whole text.
                pieces = [*transcript.apply(event), *diff]
                if pieces:
                    self.view.show(pieces)
                if message is not None and not has_own_turn(message, event):
                    self.outbox.turn_ended(message.turn_id)
                if text := alert_for(event, transcript.turn_began):
                    self.view.alert(text)
                self.view.refresh()
                if isinstance(event, ev.TurnFinished):
                    self.outbox.turn_ended(event.turn_id)

    # -- what a person does

    async def send(
        self, text: str, attachments: Sequence[Image | File] = (), *, replaces: str | None = None
    ) -> None:
        """Send a message: it starts a turn, is queued, or `replaces` one and reverts its files."""
        try:
            session = await self.current()
            turn = await session.send(
                text,
                attended=self.is_attended,
                attachments=attachments,
                replaces=replaces,
                revert=replaces is not None,
            )
            self.outbox.turn_opened(turn.turn_id)
            if self.outbox.is_interrupted:
                await turn.cancel()
        except KeryxError:
            self.view.put_back(text)
            raise

    async def steer(self, text: str, attachments: Sequence[Image | File] = ()) -> None:
        """Send a message into the running turn, now; if it has just ended, it is queued."""
        session = await self.current()
        try:
            await session.tell(
                cm.SendMessage,
                by=BY,
                text=text,
                mode="steer",
                turn_id=self.transcript.turn_id,
                attachments=tuple(attachments),
                attended=self.is_attended,
            )
        except KeryxError:
            self.view.put_back(text)
            raise

    @property
    def is_busy(self) -> bool:
        """Whether a turn or a call runs, or will as soon as a message is sent."""
        return self.transcript.is_running or self.outbox.is_busy or bool(self.transcript.calls.rows)

    async def stop(self) -> None:
        """Cancel the running turn, or the one whose message is being sent, or a person's calls."""
        turn_id = self.transcript.turn_id or self.outbox.open_turn
        if self.session is not None and turn_id is not None:
            await self.session.tell(cm.CancelTurn, by=BY, turn_id=turn_id)
        elif not self.outbox.interrupt():
            await self._stop_calls()

    async def _stop_calls(self) -> None:
        rows = list(self.transcript.calls.rows.values())
        if self.session is None or not rows:
            text = SUMMARY_GOES_ON if self.transcript.is_compacting else "Nothing is running."
            self.view.show([Piece("note", text)])
            return
        for row in rows:
            await self.session.tell(cm.CancelCall, by=BY, call_id=row.call_id)

    async def stop_call(self, number: int) -> None:
        """Cancel one call; its turn goes on."""
        row = self.transcript.calls.by_number(number)
        if self.session is None or row is None:
            raise UserMustActError(f"no call {number} is running; the rows above show the numbers")
        await self.session.tell(cm.CancelCall, by=BY, call_id=row.call_id)

    async def withdraw(self, message_id: str) -> None:
        """Withdraw a queued message; `UserMustActError` if it has been taken meanwhile."""
        session = await self.current()
        answer = await session.tell(cm.WithdrawMessage, by=BY, message_id=message_id)
        if isinstance(answer, Done) and not answer.done:
            raise UserMustActError("that message is with the agent already; /stop stops the turn")

    @property
    def shown_request(self) -> Request | None:
        """The request that the person has seen whole; None: nothing waits.

        `UserMustActError` if it is over, and another has come that is not shown yet.
        """
        pending = self.transcript.pending
        request = pending.requests.get(self.view.shown_request)
        if request is None and pending.first is not None:
            raise UserMustActError("Another request is waiting now; read it first.")
        return request

    async def answer(self, request: Request, choice: Choice) -> None:
        """Answer an approval or a question; says so if somebody else was first."""
        session = await self.current()
        try:
            if isinstance(request, ev.QuestionAsked):
                await session.answer_question(request.question_id, choice.answer, by=BY)
            elif choice.decision is not None:
                await session.answer(
                    request.approval_id, choice.decision, reach=choice.reach, by=BY
                )
        except AlreadyTakenError:
            self.view.show([Piece("note", "It was answered elsewhere already.")])

    async def keep_draft(self, text: str) -> None:
        """Store what is typed, so that it survives the end of this process."""
        if self.session is not None:
            await self.session.tell(cm.SetDraft, by=BY, text=text)
