"""The session: one log, one owner. Commands come in, facts go out.

Everything here happens on one loop and changes state only between awaits. A commit that fails
breaks the session: what runs is stopped, readers get the error, and the session must be reopened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any, Final, Self

import msgspec

from keryx import events as ev
from keryx.aio.group import Group
from keryx.aio.hub import Hub
from keryx.aio.scope import Scope
from keryx.engine.calls.background import Backgrounds
from keryx.engine.calls.session_resources import SessionResources
from keryx.engine.inbox import Inbox
from keryx.engine.live.session_hub import caught_up, open_hub
from keryx.engine.log.drafts import Drafts
from keryx.engine.log.fold import Fold
from keryx.engine.log.log_writer import LogWriter
from keryx.engine.log.rebuild import folded
from keryx.engine.log.views import view_of
from keryx.engine.memory.outbox_rows import OutboxRows
from keryx.engine.money.spending import NOTED
from keryx.engine.session_context import EVENT_WEIGHT, HostServices, SessionContext, report
from keryx.engine.session_files import SessionFiles
from keryx.engine.turns.turn_queue import TurnQueue
from keryx.errors import AlreadyTakenError, DeveloperMustActError
from keryx.messages import ApprovalMode
from keryx.ports.store import Commit
from keryx.ports.view import SessionView

STOP_PATIENCE: Final = 5.0
"""Seconds that running work has to stop when the session is closed: many times the ladder."""


class Opening(msgspec.Struct, frozen=True):
    """The settings of a new session."""

    model: str
    workspace: str
    tools: tuple[str, ...] = ()
    profile: str = "default"
    place: str = "local"
    effort: str | None = None
    personality: str | None = None
    title: str = ""
    archived: bool = False
    approvals: ApprovalMode | None = None
    read_only: bool = False
    brought: tuple[str, ...] = ()
    parent: ev.ParentCall | None = None
    person: str | None = None
    """For whom it is; None: for the owner of the home."""


class Session:
    """The owner of one session's log."""

    def __init__(self, context: SessionContext, log: list[ev.LoggedEvent]) -> None:
        self._context = context
        self._turn_queue = TurnQueue(context)
        self._inbox = Inbox(context, self._turn_queue, log)
        self.tell = self._inbox.tell
        self.is_released = False

    @classmethod
    async def open(
        cls,
        session_id: str,
        services: HostServices,
        scope: Scope,
        opening: Opening | None = None,
        *,
        hub: Hub[ev.Event] | None = None,
    ) -> Self:
        """Become the owner of a session, new or old, and resume its unfinished turn.

        The hub exists already if somebody watched the session before it was opened.
        """
        if opening is not None:
            with suppress(AlreadyTakenError):
                return await cls._create(session_id, services, scope, opening)
        elif await services.store.session(session_id) is None:
            raise DeveloperMustActError(f"there is no session {session_id!r}")
        epoch = await services.store.claim(session_id)
        log = await services.store.events(session_id)
        if not log:
            raise DeveloperMustActError(f"there is no session {session_id!r}")
        fold = await folded(session_id, log)
        hub = caught_up(
            hub or open_hub(services.store, services.clock, session_id, fold.last_seq), log
        )
        session = cls(_context(fold, services, scope, epoch, hub), log)
        await session._turn_queue.resume()
        await session._inbox.read()
        return session

    @classmethod
    async def _create(
        cls, session_id: str, services: HostServices, scope: Scope, opening: Opening
    ) -> Self:
        """Create a session. `AlreadyTakenError` if it exists."""
        fields = {name: getattr(opening, name) for name in opening.__struct_fields__}
        at = services.clock.wall()
        fact, body = ev.as_logged(ev.SessionOpened(session_id=session_id, seq=1, at=at, **fields))
        commit = Commit(session_id=session_id, epoch=0, events=(fact,), bodies=(body,))
        epoch = await services.store.create(commit)
        fold = Fold(session_id)
        fold.apply(fact)
        hub = open_hub(services.store, services.clock, session_id, fold.last_seq)
        session = cls(_context(fold, services, scope, epoch, hub), [fact])
        services.resume_guard.mark_resting(session_id)
        services.changed(session_id)
        return session

    # -- the public interface

    @property
    def session_id(self) -> str:
        return self._context.fold.session_id

    @property
    def fold(self) -> Fold:
        """The state, for reading."""
        return self._context.fold

    @property
    def hub(self) -> Hub[ev.Event]:
        return self._context.hub

    @property
    def broken(self) -> BaseException | None:
        """Why the log cannot be written any more; None if it can."""
        return self._context.log.broken

    @property
    def is_resting(self) -> bool:
        """Whether no turn runs and none waits."""
        return self._turn_queue.is_resting

    @property
    def is_idle(self) -> bool:
        """Whether all of it is in the store, so that it can be released and opened again."""
        context, fold = self._context, self._context.fold
        pending = fold.turn or fold.queue or fold.person_calls or fold.approvals or fold.questions
        running = len(context.group) or context.left_over or context.background.is_busy
        is_settled = context.log.is_settled and self._inbox.is_quiet
        return self.is_resting and is_settled and not (pending or running)

    async def wait_rested(self) -> None:
        """Return once no turn runs and none waits."""
        await self._turn_queue.wait_rested()

    async def view(self) -> SessionView:
        """Return the session as it is now; all that it shows is durable."""
        draft = await self._context.drafts.read()
        await self._context.log.wait_settled()
        return view_of(self._context.fold, draft)

    async def read_inbox(self) -> None:
        """Handle the commands that others entered into the store."""
        await self._inbox.read()

    def release(self) -> Coroutine[Any, Any, None]:
        """Stop owning an idle session at once; the returned coroutine frees all that it holds.

        Its readers stay, for when it is opened again.
        """
        self.is_released = True
        self._context.hub.set_snapshot(tuple)
        return self._close(None)

    async def close(self, error: BaseException | None = None) -> None:
        """Stop gracefully: a running turn is suspended and resumed at the next start.

        Readers end, or get the error if there is one.
        """
        await self._close(lambda: self._context.hub.close(error))

    async def _close(self, end_readers: Callable[[], None] | None) -> None:
        context = self._context
        context.scope.cancel("shutdown", by="close")
        async with AsyncExitStack() as stack:  # runs from the last to the first, whatever fails
            stack.callback(context.scope.close)
            if context.services.spending is not None:
                stack.callback(context.services.spending.close, context.fold)
            if end_readers is not None:
                stack.callback(end_readers)
            stack.push_async_callback(context.log.close)
            stack.push_async_callback(context.group.leave)
            stack.push_async_callback(self._wait_durable)
            if context.workers is not None:
                stack.push_async_callback(context.workers.close)
            stack.push_async_callback(context.background.close)
            stack.push_async_callback(context.resources.close)
            stack.push_async_callback(self._wait_stopped)

    async def _wait_stopped(self) -> None:
        """Wait for running work, which is being cancelled. Only a defect takes longer than this."""
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_PATIENCE):
                await self._turn_queue.wait_rested()
                await self._inbox.wait_calls_ended()

    async def _wait_durable(self) -> None:
        try:
            await self._context.log.wait_durable()
        except Exception:
            # A log that failed, whatever the cause, is read again when the session is next opened.
            if self._context.log.broken is None:
                raise


def _open_log(
    fold: Fold, services: HostServices, scope: Scope, epoch: int, hub: Hub[ev.Event]
) -> LogWriter:
    """Return the writer of the log. Readers get what it commits; its failure ends the session."""

    def show(facts: Sequence[ev.LoggedEvent], bodies: Sequence[bytes]) -> None:
        """Publish the facts of a commit."""
        hub.publish_facts(
            [
                (fact.seq, fact, EVENT_WEIGHT + len(body))
                for fact, body in zip(facts, bodies, strict=True)
            ]
        )
        if services.resume_guard.unproven:
            for fact in facts:
                services.resume_guard.note_fact(fact)
        if facts:
            services.changed(fold.session_id)

    def on_broken(error: BaseException) -> None:
        scope.cancel("shutdown", by=f"the log failed: {error}")
        hub.close(error)

    rows: OutboxRows | None = None
    if services.memory is not None:
        named_report = partial(report, fold.session_id)
        rows = OutboxRows(services.memory, lambda: services.redactor, named_report)
    return LogWriter(
        services.store,
        fold,
        show=show,
        epoch=epoch,
        clock=services.clock,
        on_broken=on_broken,
        outbox_row=None if rows is None else rows.row_of,
        on_outbox=None if rows is None else rows.wake,
        on_fact=None if services.spending is None else services.spending.note,
        noted=NOTED,
    )


def _context(
    fold: Fold, services: HostServices, scope: Scope, epoch: int, hub: Hub[ev.Event]
) -> SessionContext:
    """Create the parts of a session."""
    session_id = fold.session_id
    session_scope = scope.child(session_id)
    # A scope tree of its own: turns end by themselves when the session is cancelled. A failure in
    # it is a defect of ours: it is reported, and nothing else of the session ends with it.
    group = Group(
        Scope(f"work of {session_id}", clock=services.clock), on_error=partial(report, session_id)
    )
    log = _open_log(fold, services, session_scope, epoch, hub)
    background = Backgrounds(session_scope.child("background"))
    workers = None if services.workers is None else services.workers(session_scope.child("workers"))
    context = SessionContext(
        services,
        session_scope,
        group,
        fold,
        hub,
        log,
        SessionFiles(fold, log, services.store, services.files, services.attachments),
        Drafts(services.store, log, session_id),
        background,
        SessionResources(session_scope, partial(report, session_id)),
        workers,
    )
    hub.set_snapshot(context.snapshot)
    if services.spending is not None:
        services.spending.open(fold)
    return context
