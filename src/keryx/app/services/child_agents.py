"""Child agents: sessions that a call of another session opens, and waits for.

The id of a child follows from its parent call, and its message has a fixed key. So a call that runs
again after a crash finds its child instead of starting another one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Final, Protocol

from keryx import commands as cm
from keryx import events as ev
from keryx.aio.group import Group
from keryx.aio.scope import CancellationToken, Scope
from keryx.engine.log.state import Settings
from keryx.engine.session import Opening
from keryx.errors import ToolFailedError
from keryx.ids import derived_id, new_id
from keryx.messages import Reason
from keryx.ports.agents import ChildResult, ChildTask
from keryx.ports.dispatch import Answer, Sent, Watching
from keryx.ports.store import Store
from keryx.tools.mcp.deferral import SEARCH
from keryx.tools.mcp.tool import PREFIX

KEY: Final = "task"
"""The key of the first message of every child."""
DEEPEST: Final = 3
"""How many agents may stand above a child."""
TITLE_LENGTH: Final = 60
BY: Final = "delegate"

Progress = Callable[[str], None]
"""Gets short notes about what a child does."""


class ChildHost(Protocol):
    """What child agents need of their host."""

    @property
    def store(self) -> Store: ...

    @property
    def tell(self) -> Callable[[cm.Command], Awaitable[Answer]]: ...

    async def watch(self, session_id: str, *, after: int) -> Watching: ...

    async def open_child(self, session_id: str, opening: Opening) -> None:
        """Create the session, or open it if it exists."""
        ...


class ChildAgents:
    """Runs the child agents of one host."""

    def __init__(self, host: ChildHost, scope: Scope) -> None:
        self._host = host
        # The calls that wait get the errors.
        self._group = Group(scope.child("agents"), on_error=lambda _name, _error: None)

    def of_session(self, session_id: str, settings: Settings, attended: bool) -> SessionAgents:  # noqa: FBT001 (the type of the service has no names)
        """Return what runs the child agents of one session."""
        return SessionAgents(self._host, session_id, settings, attended=attended, group=self._group)

    async def close(self) -> None:
        await self._group.leave()
        self._group.scope.close()


class SessionAgents:
    """Runs the child agents of one session."""

    def __init__(
        self, host: ChildHost, session_id: str, settings: Settings, *, attended: bool, group: Group
    ) -> None:
        """`group` holds what must end even if the call that waits for it is cancelled."""
        self._host = host
        self._group = group
        self._session_id = session_id
        self._settings = settings
        self._attended = attended

    async def run(
        self, call_id: str, task: ChildTask, token: CancellationToken, progress: Progress
    ) -> ChildResult:
        await self._check_depth()
        # A child that is being started must be known, or nobody could cancel it.
        starting = self._group.start(self._start(call_id, task, progress), name=f"start {call_id}")
        try:
            child = await asyncio.shield(starting)
            return await child.wait()
        except asyncio.CancelledError:
            if token.reason != "shutdown":  # then the child's turn is suspended like this one
                ending = self._group.start(_end(starting), name=f"cancel {call_id}")
                await asyncio.shield(ending)
            raise

    async def _start(self, call_id: str, task: ChildTask, progress: Progress) -> _Child:
        """Open the child's session and send its task; both may have been done before a crash."""
        parent = ev.ParentCall(session_id=self._session_id, call_id=call_id)
        session_id = derived_id("s", self._session_id, call_id)
        await self._host.open_child(session_id, self._opening(task, parent))
        sent = await self._host.tell(
            cm.SendMessage(
                command_id=new_id("c"),
                session_id=session_id,
                by=BY,
                text=task.text,
                key=KEY,
                attended=self._attended,
            )
        )
        assert isinstance(sent, Sent)
        return _Child(self._host, session_id, sent.turn_id, task.max_tokens, progress)

    def _opening(self, task: ChildTask, parent: ev.ParentCall) -> Opening:
        settings = self._settings
        return Opening(
            model=task.model or settings.model,
            workspace=task.workspace or settings.workspace,
            tools=self._tools(task),
            profile=settings.profile,
            effort=settings.effort,
            personality=settings.personality,
            title=task.title or " ".join(task.text.split())[:TITLE_LENGTH],
            approvals=settings.approvals,
            read_only=settings.read_only or task.read_only,
            parent=parent,
            person=settings.person,
        )

    def _tools(self, task: ChildTask) -> tuple[str, ...]:
        granted = self._settings.tools
        if task.tools is None:
            return granted
        if unknown := sorted(name for name in set(task.tools) if not _covers(granted, name)):
            raise ToolFailedError(
                f"a child agent cannot get {', '.join(unknown)}: this session has only "
                f"{', '.join(granted)}"
            )
        return task.tools

    async def _check_depth(self) -> None:
        depth, session_id = 0, self._session_id
        while (row := await self._host.store.session(session_id)) is not None and row.parent:
            depth, session_id = depth + 1, row.parent.session_id
        if depth >= DEEPEST:
            raise ToolFailedError(
                f"agents are nested {DEEPEST} levels deep already; do this task in this session"
            )


def _covers(granted: tuple[str, ...], name: str) -> bool:
    """Return whether these grants contain this tool, also as one of an MCP server."""
    if name in granted or not name.startswith(PREFIX):
        return name in granted
    of_servers = (grant for grant in granted if grant.startswith(PREFIX))
    return SEARCH in granted or any(name.startswith(f"{grant}_") for grant in of_servers)


async def _end(starting: asyncio.Task[_Child]) -> None:
    """Cancel the child's turn, and return once it has ended."""
    await asyncio.wait([starting])
    if starting.cancelled() or starting.exception() is not None:
        return
    child = starting.result()
    await child.cancel("interrupt")
    await child.wait()


class _Child:
    """The turn of one child, as its parent follows it."""

    def __init__(
        self,
        host: ChildHost,
        session_id: str,
        turn_id: str,
        max_tokens: int | None,
        progress: Progress,
    ) -> None:
        self._host = host
        self._session_id = session_id
        self._turn_id = turn_id
        self._max_tokens = max_tokens
        self._progress = progress
        self._tokens = 0
        self._steps = 0
        self._calls = 0
        self._text = ""
        self._model = ""
        self._is_over_budget = False

    async def wait(self) -> ChildResult:
        """Follow the child's events from the beginning until its turn has ended."""
        reader = await self._host.watch(self._session_id, after=0)
        async with reader, aclosing(aiter(reader)) as events:
            async for event in events:
                match event:
                    case ev.StepStarted(turn_id=self._turn_id):
                        self._model = event.model
                    case ev.StepReplied(turn_id=self._turn_id):
                        await self._note_reply(event)
                    case ev.CallStarted(turn_id=self._turn_id):
                        self._calls += 1
                        self._progress(f"{event.tool} {event.preview}".strip())
                    case ev.ApprovalAsked() | ev.QuestionAsked():
                        self._progress("waits for a person")
                    case ev.TurnFinished(turn_id=self._turn_id):
                        return self._result(event)
                    case _:
                        pass
        raise ToolFailedError(f"the session {self._session_id} of this agent was deleted")

    async def _note_reply(self, reply: ev.StepReplied) -> None:
        self._steps += 1
        self._text = reply.text or self._text
        if reply.usage is not None:
            self._tokens += reply.usage.input_tokens + reply.usage.output_tokens
        if self._max_tokens is not None and self._tokens > self._max_tokens and reply.calls:
            self._is_over_budget = True
            await self.cancel("timeout")

    async def cancel(self, reason: Reason) -> None:
        """Cancel the child's turn; returns once that is durable."""
        await self._host.tell(
            cm.CancelTurn(
                command_id=new_id("c"),
                session_id=self._session_id,
                by=BY,
                turn_id=self._turn_id,
                reason=reason,
            )
        )

    def _result(self, finished: ev.TurnFinished) -> ChildResult:
        problem = "" if finished.outcome == "completed" else f"{finished.reason or 'failed'}"
        if finished.error is not None:
            problem = f"{finished.error.message}; {finished.error.hint}"
        if self._is_over_budget:
            problem = f"it was stopped after {self._tokens} tokens (budget: {self._max_tokens})"
        return ChildResult(
            session_id=self._session_id,
            outcome=finished.outcome,
            text=self._text,
            problem=problem,
            model=self._model,
            usage=finished.usage,
            cost=finished.cost,
            steps=self._steps,
            calls=self._calls,
        )
