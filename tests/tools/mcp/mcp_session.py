"""MCP servers with everything around them that a session gives to their tools."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from keryx.aio.capture import OutputSink
from keryx.aio.clock import Clock
from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.app import Runtime
from keryx.engine.calls.call_hooks import CallView, NoHooks
from keryx.engine.steps.batch import Batch
from keryx.events import Purpose
from keryx.messages import CallOutcome, Image, ToolCall
from keryx.models.scripted import ScriptedModel, ScriptedReply
from keryx.ports.model import Model, ModelRequest
from keryx.ports.model_access import Endpoint
from keryx.ports.place import Process
from keryx.ports.store import blob_hash
from keryx.sandbox import Bounds, LocalPlace
from keryx.sandbox.scripts import ExecuteCode
from keryx.tools.files.file_access import FileAccess
from keryx.tools.mcp.server import McpServer, Surroundings
from keryx.tools.mcp.servers import McpServers, report_defect
from keryx.tools.mcp.settings import ServerList, ServerSettings
from keryx.tools.toolsets import built_in
from tests.tools.tool_session import keep

PATIENCE = 60.0  # the package is large, and the machine may be busy
ROOT = Path(__file__).parent.parent.parent.parent
RAW = str(Path(__file__).with_name("raw_server.py"))
ALL = ("tool_search",)


def raw(behaviour: str, argument: str = "", **settings: Any) -> ServerSettings:
    """A server that is spoken by hand."""
    args = ("-S", "-E", RAW, behaviour, argument)
    return ServerSettings(command=sys.executable, args=args, **settings)


def example(**settings: Any) -> ServerSettings:
    """A server that is made with the package."""
    args = ("-m", "tests.tools.mcp.example_server")
    return ServerSettings(command=sys.executable, args=args, cwd=str(ROOT), **settings)


class Person(NoHooks):
    """Answers questions, and watches the progress of calls."""

    def __init__(self) -> None:
        self.answers: deque[str | None] = deque()
        self.questions: list[tuple[str, tuple[str, ...]]] = []
        self.notes: list[tuple[float, float | None, str]] = []
        self._more = asyncio.Event()

    async def ask(self, call: CallView, text: str, choices: tuple[str, ...]) -> str | None:
        self.questions.append((text, choices))
        self._more.set()
        if not self.answers:
            await asyncio.Event().wait()
        return self.answers.popleft()

    def progress(self, call: CallView, done: float, total: float | None, note: str) -> None:
        self.notes.append((done, total, note))
        self._more.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self._more.clear()
                await self._more.wait()


class Models:
    """One model for all purposes; it says always the same."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str]] = []

    def endpoint(self, purpose: Purpose) -> Endpoint:
        raise AssertionError(f"nobody asks for {purpose}")

    def is_configured(self, purpose: Purpose) -> bool:
        return bool(purpose)

    def find(self, purpose: Purpose, name: str | None = None) -> Model:
        def script(request: ModelRequest) -> ScriptedReply:
            (message,) = request.history
            content = msgspec.json.decode(message)["content"]
            text = content if isinstance(content, str) else content[0]["text"]
            self.requests.append((purpose, text))
            return ScriptedReply(text="something")

        return ScriptedModel(script)

    def add_image(self, data: bytes, media_type: str, name: str = "") -> Image:
        return Image(blob_hash(data), media_type, name)


class McpSession:
    """The tools of some servers, as a session may use them."""

    def __init__(self, runtime: Runtime, servers: McpServers, person: Person, folder: Path) -> None:
        self.runtime = runtime
        self.servers = servers
        self.person = person
        self.loaded: list[str] = []
        self.models = Models()
        self.turn = runtime.scope.child("turn")
        self._folder = folder
        self._count = 0

    def server(self, name: str) -> McpServer:
        return next(server for server in self.servers.servers if server.name == name)

    async def connect(self) -> None:
        """Connect all servers, as their first use would."""
        async with asyncio.timeout(PATIENCE):
            for server in self.servers.servers:
                await server.list()

    async def run(self, name: str, /, **arguments: Any) -> CallOutcome:
        async with asyncio.timeout(PATIENCE):
            (outcome,) = await (await self.start(self.call(name, **arguments))).outcomes()
            return outcome

    def call(self, name: str, /, **arguments: Any) -> ToolCall:
        self._count += 1
        return ToolCall(f"c{self._count}", name, msgspec.json.encode(arguments).decode())

    async def start(self, *calls: ToolCall) -> Batch:
        sets = await self.runtime.bridge.to_thread(built_in)
        tools = [*(tool for tools in sets.values() for tool in tools), ExecuteCode()]
        environment = self.runtime.call_environment(
            "s",
            [*tools, *self.servers.granted(ALL)],
            workspace=self._folder,
            hooks=self.person,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin"},
            place=LocalPlace(
                self.runtime.warden,
                self.runtime.bridge,
                Bounds(mode="off"),
                workspace=self._folder,
                tmp=self._private,
            ),
        )
        environment.log_loaded = lambda names, _call_id: self.loaded.extend(names)
        environment.models = self.models
        environment.files = await self.runtime.bridge.to_thread(
            lambda: FileAccess(self._folder, keep=keep, changing=_no_change)
        )
        return self.runtime.executor.start(environment, calls, self.turn)

    def _private(self) -> Path:
        folder = self._folder.with_name(f"{self._folder.name}.private")
        folder.mkdir(exist_ok=True)
        return folder


async def until(condition: Callable[[], Any]) -> None:
    """Wait for something of another process, which no event tells."""
    async with asyncio.timeout(PATIENCE):
        while True:
            result = condition()
            if await result if isinstance(result, Awaitable) else result:
                return
            await asyncio.sleep(0.01)


async def _no_change(*_: object) -> None: ...


@asynccontextmanager
async def session(
    folder: Path, clock: Clock | None = None, /, **servers: ServerSettings
) -> AsyncGenerator[McpSession]:
    """Servers by name; none is connected yet. Nothing of them is left afterwards."""
    runtime = Runtime()
    group = Group(Scope("mcp", clock=runtime.scope.clock), on_error=report_defect)
    place = LocalPlace(runtime.warden, runtime.bridge, Bounds(mode="off"), workspace=folder)

    async def spawn(name: str, settings: ServerSettings, output: OutputSink) -> Process:
        assert settings.command is not None
        return await place.spawn(
            (settings.command, *settings.args),
            env={"PATH": "/usr/bin:/bin", **settings.env},
            cwd=settings.cwd or str(folder),
            output=output,
            stdin=True,
        )

    around = Surroundings(
        bridge=runtime.bridge,
        group=group,
        clock=clock or runtime.scope.clock,
        spawn=spawn,
        folder=folder / "mcp",
    )
    all_servers = McpServers(around)
    all_servers.configure(ServerList(servers))
    opened = McpSession(runtime, all_servers, Person(), folder)
    try:
        yield opened
    finally:
        await all_servers.close()
        opened.turn.close()
        await runtime.close()
