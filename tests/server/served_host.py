"""What the tests of the server share: a host that serves on a real socket, and clients of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import aiohttp

from keryx import NO_EFFECTS, Keryx, tool
from keryx.aio.bridge import Bridge
from keryx.aio.scope import Scope
from keryx.app.host_client import HostClient
from keryx.messages import Text, UserMessage
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply, history_of
from keryx.ports.model import Model, ModelRequest
from keryx.ports.tool import Tool
from keryx.server.access.tokens import Tokens
from keryx.server.access.users import Users
from keryx.server.serve import Serving, Settings, serving

PATIENCE: Final = 20.0  # long enough for any machine; only reached by a test that fails

ROOT: Final = Path(__file__).parent.parent.parent

T = TypeVar("T")
Reply = Callable[[str], ScriptedReply]


def echo(text: str) -> ScriptedReply:
    return ScriptedReply(text=f"You said: {text}")


def asked_text(request: ModelRequest) -> str:
    """What the person said last; nothing if the last thing is a result."""
    last = history_of(request)[-1]
    if not isinstance(last, UserMessage):
        return ""
    texts = [part.text for part in last.content if isinstance(part, Text)]
    return texts[0].partition("\n")[2] or texts[0] if texts else ""


def scripted(reply: Reply = echo) -> ScriptedModel:
    return ScriptedModel(lambda request: reply(asked_text(request)))


class Gate:
    """A model or a tool waits at it until the test lets it go on."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.opened = asyncio.Event()

    async def wait(self) -> None:
        self.reached.set()
        await self.opened.wait()


def waiting_tool(gate: Gate) -> Tool:
    @tool(effects=NO_EFFECTS)
    async def linger() -> str:
        """Wait to be let go."""
        await gate.wait()
        return "let go"

    return linger


LINGER: Final = ScriptedCall("linger")


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw)

    def problem(self, status: int, kind: str) -> dict[str, Any]:
        """The document, which is as all of them are."""
        assert self.status == status, self.raw
        assert self.headers["content-type"] == "application/problem+json"
        document = self.body
        assert (document["status"], document["kind"]) == (status, kind)
        assert document["type"] == f"urn:keryx:{kind}"
        assert document["title"]
        assert document["detail"]
        assert document["hint"]
        return document


@dataclass(frozen=True, slots=True)
class StreamedEvent:
    """One event of a stream."""

    type: str
    data: dict[str, Any]
    id: int | None
    raw: bytes


class Client:
    """Talks to a server as a program does, with a token."""

    def __init__(self, url: str, http: aiohttp.ClientSession) -> None:
        self.url = url.rstrip("/")
        self.http = http

    async def ask(self, method: str, path: str, **options: Any) -> Answer:
        async with (
            asyncio.timeout(PATIENCE),
            self.http.request(method, self.url + path, allow_redirects=False, **options) as answer,
        ):
            headers = {name.lower(): value for name, value in answer.headers.items()}
            return Answer(answer.status, headers, await answer.read())

    async def get(self, path: str, **options: Any) -> Any:
        answer = await self.ask("GET", path, **options)
        assert answer.status == 200, answer
        return answer.body

    async def post(self, path: str, body: Any = None, *, status: int = 200, **options: Any) -> Any:
        answer = await self.ask("POST", path, json=body, **options)
        assert answer.status == status, answer
        return answer.body if answer.raw else None

    async def open(self, **body: Any) -> str:
        view = await self.post("/api/sessions", body, status=201)
        session_id: str = view["summary"]["session_id"]
        return session_id

    async def say(self, session_id: str, text: str, **body: Any) -> dict[str, Any]:
        path = f"/api/sessions/{session_id}/messages"
        sent: dict[str, Any] = await self.post(path, {"text": text, **body}, status=202)
        return sent

    @asynccontextmanager
    async def stream(
        self, path: str, **options: Any
    ) -> AsyncGenerator[AsyncIterator[StreamedEvent]]:
        async with asyncio.timeout(PATIENCE), self.http.get(self.url + path, **options) as answer:
            assert answer.status == 200, await answer.text()
            assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
            yield events_in(answer)

    def follow(
        self, session_id: str, after: int = 0, **options: Any
    ) -> AbstractAsyncContextManager[AsyncIterator[StreamedEvent]]:
        return self.stream(f"/api/sessions/{session_id}/events?after={after}", **options)

    async def until(
        self, session_id: str, kind: str, after: int = 0, **fields: Any
    ) -> list[StreamedEvent]:
        """All that is told until there is one of that kind with these fields."""
        seen: list[StreamedEvent] = []
        async with self.follow(session_id, after) as events:
            async for event in events:
                seen.append(event)
                if event.type == kind and fields.items() <= event.data.items():
                    return seen
        raise AssertionError(f"the stream ended without {kind} {fields}")

    async def finished(self, session_id: str, turn_id: str, after: int = 0) -> dict[str, Any]:
        events = await self.until(session_id, "turn.finished", after, turn_id=turn_id)
        return events[-1].data


async def events_in(answer: aiohttp.ClientResponse) -> AsyncIterator[StreamedEvent]:
    block = b""
    async for line in answer.content:
        block += line
        if line != b"\n":
            continue
        event = parsed(block)
        block = b""
        if event is not None:
            yield event


def parsed(block: bytes) -> StreamedEvent | None:
    fields: dict[str, str] = {}
    for line in block.decode().splitlines():
        name, _, value = line.partition(": ")
        fields[name] = value
    if "event" not in fields:
        return None
    number = int(fields["id"]) if "id" in fields else None
    return StreamedEvent(fields["event"], json.loads(fields["data"]), number, block)


@dataclass(slots=True)
class ServedHost:
    app: Keryx
    host_client: HostClient
    server: Serving
    client: Client
    token: str
    home: Path
    workspace: Path
    others: list[aiohttp.ClientSession] = field(default_factory=list[aiohttp.ClientSession])

    async def user(self, name: str, password: str = "correct horse") -> Client:
        """Add a named user; return a program that uses the server as this user."""
        await in_thread(Users(self.home).add, name, password)
        token = await in_thread(Tokens(self.home).make, f"of {name}", name)
        return self.browser(Authorization=f"Bearer {token}")

    def browser(self, **headers: str) -> Client:
        """Without a token; it keeps cookies."""
        jar = aiohttp.CookieJar(unsafe=True)
        http = aiohttp.ClientSession(cookie_jar=jar, headers=headers)
        self.others.append(http)
        return Client(self.server.url, http)


async def in_thread(work: Callable[..., T], *args: Any) -> T:
    scope = Scope("test")
    threads = Bridge(scope)
    try:
        return await threads.to_thread(work, *args)
    finally:
        await threads.close()
        scope.close()


@asynccontextmanager
async def served_host(
    path: Path,
    *,
    model: str | Model | None = None,
    tools: Sequence[Tool] | None = None,
    **settings: Any,
) -> AsyncGenerator[ServedHost]:
    """A host with that model, served on a free port, and a client that is let in."""
    home, workspace = path / "home", path / "workspace"
    workspace.mkdir(exist_ok=True)
    model = model or scripted()
    async with (
        Keryx(model=model, tools=tools, home=home, workspace=workspace) as app,
        serving(
            app.host_client, Settings(port=0, workspace=workspace, **settings), model
        ) as server,
    ):
        tokens = Tokens(home)
        await in_thread(tokens.revoke, "test")  # the home may have been served before
        token = await in_thread(tokens.make, "test")
        headers = {"Authorization": f"Bearer {token}"}
        async with aiohttp.ClientSession(headers=headers) as http:
            client = Client(server.url, http)
            running = ServedHost(app, app.host_client, server, client, token, home, workspace)
            try:
                yield running
            finally:
                for other in running.others:
                    await other.close()
