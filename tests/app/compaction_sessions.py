"""Sessions for tests of compaction: a model server with a small window that records requests."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from keryx import Keryx
from keryx import events as ev
from keryx.app import SessionHandle
from keryx.testing.modelserver import ModelServer, ReceivedRequest, Reply
from tests.app.hosts import add, result_of

MODELS = ("small", "cheap", "any")
WINDOW = 1_000
ENOUGH = 800
FULL = ev.Usage(input_tokens=850, output_tokens=10)
LITTLE = ev.Usage(input_tokens=100, output_tokens=10)
SUMMARY = "The person likes tea; the garden was measured: 12 m."
TOO_LONG = Reply(status=400, code="context_length_exceeded", message="maximum context length")


class SummaryScript:
    """Answers requests for summaries by themselves, and all others in order."""

    def __init__(self, *replies: Reply, summary: Reply | None = None) -> None:
        self.replies = list(replies)
        self.summary = summary or Reply(text=SUMMARY, usage=LITTLE)
        self.summed: list[ReceivedRequest] = []
        self.requests: list[ReceivedRequest] = []

    def __call__(self, request: ReceivedRequest) -> Reply:
        if is_summing(request):
            self.summed.append(request)
            return self.summary
        self.requests.append(request)
        return self.replies.pop(0) if self.replies else Reply(text="Fine.", usage=LITTLE)

    def last(self) -> list[dict[str, Any]]:
        return self.requests[-1].body["messages"]


def is_summing(request: ReceivedRequest) -> bool:
    return str(request.body["messages"][0]["content"]).startswith("Sum up")


@asynccontextmanager
async def compacting_session(
    home: Path, answers: Callable[[ReceivedRequest], Reply], *, rest: str = ""
) -> AsyncGenerator[tuple[Keryx, SessionHandle, ModelServer]]:
    """A host with one session whose model has a small window."""
    async with ModelServer(answers, models=MODELS) as server:
        write(home, server, rest)
        async with Keryx(model="here:small", tools=[add], workspace=home, home=home) as app:
            yield app, await app.open(), server


def write(home: Path, server: ModelServer, rest: str = "") -> None:
    home.mkdir(exist_ok=True)
    provider = f'base_url = "{server.url}"\napi_key = "k"\nwindows = {{ "small" = {WINDOW} }}\n'
    (home / "config.toml").write_text(f"{rest}\n[providers.here]\n{provider}")


async def say(session: SessionHandle, text: str, outcome: str = "completed") -> str:
    turn = await session.send(text)
    result = await result_of(turn)
    assert result.outcome == outcome, result
    return turn.turn_id


async def log_of(app: Keryx, session: SessionHandle) -> list[ev.LoggedEvent]:
    return await app.store.events(session.session_id)


async def compacted(app: Keryx, session: SessionHandle) -> list[ev.ContextCompacted]:
    return [e for e in await log_of(app, session) if isinstance(e, ev.ContextCompacted)]


def texts(messages: list[dict[str, Any]]) -> str:
    return str(messages)
