"""The library for programs without an event loop: the same names, blocking, from any thread."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from keryx import app
from keryx import events as ev
from keryx.aio.loops import LoopThread
from keryx.messages import Reason
from keryx.ports.model import Model
from keryx.ports.tool import Tool


class Keryx:
    """A host in this process, with a loop in a thread of its own."""

    def __init__(
        self,
        *,
        model: str | Model | None = None,
        tools: Sequence[Tool] | None = None,
        workspace: str | Path = ".",
        home: str | Path | None = None,
    ) -> None:
        self._app = app.Keryx(model=model, tools=tools, workspace=workspace, home=home)
        self._thread: LoopThread | None = None

    def __enter__(self) -> Self:
        thread = LoopThread()
        try:
            thread.call(self._app.__aenter__)
        except BaseException:
            thread.close()
            raise
        self._thread = thread
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            try:
                thread.call(self._app.__aexit__, kind, error, traceback)
            finally:
                thread.close()

    def open(self, session_id: str | None = None) -> Session:
        """A new session, or an old one by its id."""
        assert self._thread is not None, "use it inside `with Keryx(...) as app:`"
        return Session(self._thread, self._thread.call(self._app.open, session_id))


class Session:
    """One session, blocking."""

    def __init__(self, thread: LoopThread, handle: app.SessionHandle) -> None:
        self._thread = thread
        self._handle = handle

    @property
    def session_id(self) -> str:
        return self._handle.session_id

    def send(self, text: str, *, key: str | None = None) -> Turn:
        """Say something; returns once the message is durable."""
        return Turn(self._thread, self._thread.call(lambda: self._handle.send(text, key=key)))

    def steer(self, text: str, *, wait: bool = False) -> Turn:
        """Guide the running turn: now, or at the next boundary with `wait`."""
        return Turn(self._thread, self._thread.call(lambda: self._handle.steer(text, wait=wait)))

    def events(self, after: int = 0) -> Iterator[ev.Event]:
        """The log after that fact, then whatever comes."""
        return _iterate(self._thread, self._handle.events(after))


class Turn:
    """One turn, blocking."""

    def __init__(self, thread: LoopThread, handle: app.TurnHandle) -> None:
        self._thread = thread
        self._handle = handle

    @property
    def turn_id(self) -> str:
        return self._handle.turn_id

    def events(self) -> Iterator[ev.Event]:
        """Everything that the turn says, until its one terminal fact."""
        return _iterate(self._thread, self._handle.events())

    def result(self, *, timeout: float | None = None) -> app.TurnResult:
        """How it ended, once it has; `DeadlineError` if that takes longer than the timeout."""
        return self._thread.call(self._handle.result, timeout=timeout)

    def cancel(
        self, *, call: str | None = None, reason: Reason = "interrupt"
    ) -> app.TurnResult | bool:
        """End the turn, or one call of it."""
        if call is None:
            return self._thread.call(lambda: self._handle.cancel(reason=reason))
        return self._thread.call(lambda: self._handle.cancel(call=call, reason=reason))


def _iterate(thread: LoopThread, events: AsyncIterator[ev.Event]) -> Iterator[ev.Event]:
    """Pull an async stream from a blocking program; it is closed when the program leaves it."""

    async def pull() -> ev.Event | None:
        return await anext(events, None)

    async def close() -> None:
        aclose = getattr(events, "aclose", None)
        if aclose is not None:
            await aclose()

    try:
        while (event := thread.call(pull)) is not None:
            yield event
    finally:
        thread.call(close)
