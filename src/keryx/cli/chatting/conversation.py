"""One conversation: sends what a person typed, follows the session, and tells a view about it.

It knows no terminal. A view may be a screen with a live region, or plain lines.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

from keryx import commands as cm
from keryx import events as ev
from keryx.aio.clock import RealClock
from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.app import Keryx, SessionHandle
from keryx.app.services.diffs import diff_of_changes
from keryx.cli.chatting.call_diffs import CallDiffs
from keryx.cli.chatting.pieces import Piece, one_line
from keryx.cli.chatting.recap import recap
from keryx.cli.chatting.requests import Choice, Request
from keryx.cli.chatting.transcript import Transcript
from keryx.config import DEFAULT
from keryx.errors import AlreadyTakenError, KeryxError, UserMustActError
from keryx.messages import ApprovalMode, File, Image

RECAP: Final = 40
"""Entries of the transcript that are shown when a person comes back to a session."""
BY: Final = "terminal"
LONG_TURN: Final = 10.0
"""Seconds: after a longer turn a person may be looking elsewhere."""


class View(Protocol):
    """Shows a conversation to a person."""

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


class Opening(NamedTuple):
    """The settings of new sessions."""

    tools: Sequence[str] | None = None
    personality: str | None = None
    approvals: ApprovalMode | None = None
    read_only: bool = False
    workspace: str = "."


class Conversation:
    """A person's way to one session at a time. Belongs to one loop."""

    def __init__(self, app: Keryx, view: View, opening: Opening, *, attended: bool) -> None:
        self.app = app
        self.view = view
        self.transcript = Transcript()
        self.session: SessionHandle | None = None
        self._opening = opening
        self._attended = attended
        self._clock = RealClock()
        self._group = Group(Scope("conversation"), on_error=self._failed)
        self._following: asyncio.Task[None] | None = None
        self._sending: asyncio.Queue[Coroutine[Any, Any, None]] = asyncio.Queue()
        self._resting = asyncio.Event()
        self._unsent = 0
        self._open_turns: set[str] = set()
        self._ended_turns: set[str] = set()
        self._group.start(self._send_in_order(), name="sending")

    async def close(self) -> None:
        while not self._sending.empty():
            self._sending.get_nowait().close()
        await self._group.leave()
        self._group.scope.close()

    def start(self, work: Coroutine[Any, Any, None], *, name: str) -> None:
        """Do some work beside everything else; its error is shown."""
        self._group.start(self._reported(work), name=name)

    def in_order(self, work: Coroutine[Any, Any, None]) -> None:
        """Do some work after everything that was handed in before; its error is shown."""
        self._unsent += 1
        self._sending.put_nowait(work)

    async def wait_resting(self) -> None:
        """Wait until everything is sent and no turn runs."""
        while self._unsent or self._open_turns - self._ended_turns:
            self._resting.clear()
            await self._resting.wait()

    async def _send_in_order(self) -> None:
        while True:
            work = await self._sending.get()
            await self._reported(work)
            self._unsent -= 1
            self._resting.set()

    async def _reported(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except KeryxError as error:
            self.view.show([Piece("error", str(error))])

    def _failed(self, name: str, error: BaseException) -> None:
        text = f"{name} failed: {type(error).__name__}: {error}; please report it"
        self.view.show([Piece("error", text)])

    # -- sessions

    async def current(self) -> SessionHandle:
        """Return the session; opens one if there is none yet."""
        if self.session is None:
            opening = self._opening
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
    def workspace(self) -> str:
        """The folder of the session, or that of the next one: typed paths begin there."""
        return self.transcript.workspace or self._opening.workspace

    def forget(self) -> None:
        """Leave the session as it is; the next message opens a new one."""
        if self._following is not None:
            self._following.cancel()
        self._following = self.session = None
        self.transcript = Transcript()
        self.view.refresh()

    async def resume(self, session_id: str) -> None:
        """Show the end of an earlier session, and continue there."""
        store = self.app.store
        if await store.session(session_id) is None:
            raise UserMustActError(f"there is no session {session_id!r}; /sessions shows all")
        session = await self.app.open(session_id)
        view = await session.view()
        rows = await store.transcript(session_id, limit=RECAP)
        events = [row.event for row in rows if row.seq <= view.seq]
        transcript = Transcript()
        for event in events:
            if isinstance(event, ev.StepReplied):
                transcript.pending.apply(event)
                transcript.last_reply = event.text or transcript.last_reply
                transcript.last_reasoning = event.reasoning or transcript.last_reasoning
        transcript.cost = await self._cost(session_id)
        transcript.restore(view, self._clock.wall())
        title = one_line(view.settings.title, 60)
        self.view.show([Piece("note", f"Session {session_id} {title}".rstrip()), *recap(events)])
        for request in transcript.pending.requests.values():
            self.view.show(transcript.pending.pieces(request))
        self._follow(session, transcript, after=view.seq)
        self.view.put_back(view.draft.text)

    async def _cost(self, session_id: str) -> float | None:
        costs = [row.cost for row in await self.app.store.usage(session_id)]
        known_costs = [cost for cost in costs if cost is not None]
        return sum(known_costs) if len(known_costs) == len(costs) else None

    def _follow(self, session: SessionHandle, transcript: Transcript, *, after: int) -> None:
        if self._following is not None:
            self._following.cancel()
        self.session, self.transcript = session, transcript
        self._following = self._group.start(
            self._show_events(session, transcript, after), name="following"
        )
        self.view.refresh()

    async def _show_events(
        self, session: SessionHandle, transcript: Transcript, after: int
    ) -> None:
        client = self.app.host_client
        diffs = CallDiffs(partial(diff_of_changes, client.to_thread, client.store, client.config))
        async with aclosing(await session.follow(after)) as stream:
            async for event in stream:
                pieces = [*transcript.apply(event), *await diffs.pieces(event)]
                if pieces:
                    self.view.show(pieces)
                self._alert(event, transcript)
                self.view.refresh()
                if isinstance(event, ev.TurnFinished):
                    self._ended_turns.add(event.turn_id)
                    self._resting.set()

    def _alert(self, event: ev.Event, transcript: Transcript) -> None:
        match event:
            case ev.ApprovalAsked() | ev.QuestionAsked():
                self.view.alert("Keryx is waiting for you")
            case ev.TurnFinished() if event.at - transcript.turn_began > LONG_TURN:
                self.view.alert("Keryx has finished")
            case _:
                pass

    # -- what a person does

    async def send(
        self, text: str, attachments: Sequence[Image | File] = (), *, replaces: str | None = None
    ) -> None:
        """Send a message: it starts a turn, is queued, or `replaces` one and reverts its files."""
        try:
            session = await self.current()
            turn = await session.send(
                text,
                attended=self._attended,
                attachments=attachments,
                replaces=replaces,
                revert=replaces is not None,
            )
            self._open_turns.add(turn.turn_id)
        except KeryxError:
            self.view.put_back(text)
            raise

    async def steer(self, text: str) -> None:
        """Send a message into the running turn, now."""
        turn_id = self.transcript.turn_id
        try:
            session = await self.current()
            mode = "queue" if turn_id is None else "steer"
            await session.tell(
                cm.SendMessage,
                by=BY,
                text=text,
                mode=mode,
                turn_id=turn_id,
                attended=self._attended,
            )
        except KeryxError:
            self.view.put_back(text)
            raise

    async def stop(self) -> None:
        """Cancel the running turn."""
        turn_id = self.transcript.turn_id
        if self.session is None or turn_id is None:
            self.view.show([Piece("note", "Nothing is running.")])
            return
        await self.session.tell(cm.CancelTurn, by=BY, turn_id=turn_id)

    async def stop_call(self, number: int) -> None:
        """Cancel one call; its turn goes on."""
        row = self.transcript.calls.by_number(number)
        if self.session is None or row is None:
            raise UserMustActError(f"no call {number} is running; the rows above show the numbers")
        await self.session.tell(cm.CancelCall, by=BY, call_id=row.call_id)

    async def withdraw(self, message_id: str) -> None:
        """Withdraw a queued message."""
        session = await self.current()
        await session.tell(cm.WithdrawMessage, by=BY, message_id=message_id)

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
