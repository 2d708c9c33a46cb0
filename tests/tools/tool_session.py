"""A session's tools with everything around them: files, processes, people who never answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Never

import msgspec

from keryx.aio.scope import CancellationToken
from keryx.app import Runtime
from keryx.engine.calls.background import Backgrounds
from keryx.engine.calls.call_hooks import CallView, Consent, NoHooks
from keryx.engine.calls.session_resources import SessionResources
from keryx.engine.steps.batch import Batch
from keryx.events import Purpose
from keryx.messages import NO_NEEDS, CallOutcome, Image, ToolCall
from keryx.models.http import model_clients
from keryx.models.openai import OpenAIEndpoint
from keryx.models.scripted import ScriptedModel, ScriptedReply
from keryx.ports.agents import ChildResult, ChildTask
from keryx.ports.files import FileChange
from keryx.ports.memory_access import MemoryNote, Recall
from keryx.ports.model import Model
from keryx.ports.search import SessionMatch
from keryx.ports.store import blob_hash
from keryx.sandbox import Bounds, LocalPlace
from keryx.sandbox.local import Mode
from keryx.sandbox.scripts import ExecuteCode
from keryx.tools.files.file_access import FileAccess
from keryx.tools.media.settings import MediaSettings
from keryx.tools.toolsets import built_in
from keryx.tools.web.settings import NO_SETTINGS, WebSettings

PATIENCE = 40.0
MEDIA = MediaSettings(image=True, speech=True, transcription=True)
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin"}


class Watch(NoHooks):
    """Waits for what calls print; nobody answers its questions."""

    def __init__(self) -> None:
        self.granted = NO_NEEDS
        """What every call is granted beyond the confinement."""
        self.printed: dict[str, str] = {}
        self.question_asked = asyncio.Event()
        self.progressed = asyncio.Event()
        """A nested call has reported its progress."""
        self._started: set[str] = set()
        self._more = asyncio.Event()

    def output(self, call: CallView, stream: str, text: str) -> None:
        self.printed[call.call_id] = self.printed.get(call.call_id, "") + text
        self._more.set()

    def progress(self, call: CallView, done: float, total: float | None, note: str) -> None:
        if call.parent is not None:
            self.progressed.set()

    async def approve(self, call: CallView) -> Consent:
        return Consent(needs=self.granted)

    async def starting(self, call: CallView) -> None:
        self._started.add(call.call_id)
        self._more.set()

    async def until_started(self, call_id: str) -> None:
        while call_id not in self._started:
            self._more.clear()
            await self._more.wait()

    async def ask(self, call: CallView, text: str, choices: tuple[str, ...]) -> str | None:
        self.question_asked.set()
        await asyncio.Event().wait()
        return None

    async def until(self, call_id: str, text: str) -> None:
        while text not in self.printed.get(call_id, ""):
            self._more.clear()
            await self._more.wait()


async def keep(data: bytes) -> str:
    return blob_hash(data)


def _report(name: str, error: BaseException) -> None:
    raise AssertionError(name) from error


class StalledAgents:
    """Child agents whose model never answers."""

    async def run(
        self,
        call_id: str,
        task: ChildTask,
        token: CancellationToken,
        progress: Callable[[str], None],
    ) -> ChildResult:
        del token
        progress("asks its model")
        await asyncio.Event().wait()
        raise AssertionError(f"{call_id} of {task.text!r} was answered")


class StalledModels:
    """Models that take a request and never answer."""

    def __init__(self) -> None:
        self.requested = asyncio.Event()
        self.base_url = ""
        """The server of models that make and read media."""
        self.configured = frozenset[str](("search", "image", "speech", "transcription"))
        self._clients = model_clients()

    def endpoint(self, purpose: Purpose) -> OpenAIEndpoint:
        return OpenAIEndpoint(
            name=f"here:{purpose}",
            model=purpose,
            base_url=self.base_url,
            api_key=None,
            clients=self._clients.get,
        )

    async def close(self) -> None:
        await self._clients.close()

    def find(self, purpose: Purpose, name: str | None = None) -> Model:
        del purpose, name
        return ScriptedModel(lambda _request: ScriptedReply(hold=self._hold), sees_images=True)

    async def _hold(self) -> None:
        self.requested.set()
        await asyncio.Event().wait()

    def is_configured(self, purpose: Purpose) -> bool:
        return purpose in self.configured

    def add_image(self, data: bytes, media_type: str, name: str = "") -> Image:
        return Image(blob_hash(data), media_type, name)


class StalledMemory:
    """A memory whose provider never answers, and whose log takes nothing in."""

    def __init__(self) -> None:
        self.requested = asyncio.Event()

    async def _hold(self) -> Never:
        self.requested.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def change(self, call_id: str, notes: Sequence[MemoryNote]) -> list[str]:
        del call_id, notes
        await self._hold()

    async def remove(self, call_id: str, memory_id: str) -> None:
        del call_id, memory_id
        await self._hold()

    async def recall(self, call_id: str, words: str, limit: int) -> Recall:
        del call_id, words, limit
        await self._hold()


async def find_one(words: str, limit: int) -> list[SessionMatch]:
    """Search in sessions: one match, whatever is searched."""
    assert limit > 0
    return [SessionMatch(session_id="s_1", title="Tea", at=0.0, kind="message", text=words)]


class ToolSession:
    """All built-in tools in one workspace. Open it, use it, close it."""

    def __init__(
        self,
        workspace: Path,
        environment: dict[str, str] | None = None,
        *,
        web: WebSettings = NO_SETTINGS,
        confinement: Mode = "off",
    ) -> None:
        self.workspace = workspace
        self.late = False
        """Whether the change of an early call takes longer to be known than that of a later one."""
        self._environment = environment or ENVIRONMENT
        self._web = web
        self._confinement: Mode = confinement
        self._count = 0

    async def open(self) -> None:
        self.runtime = Runtime()
        self.watch = Watch()
        self.turn = self.runtime.scope.child("turn")
        self.background = Backgrounds(self.runtime.scope.child("background"))
        self.resources = SessionResources(self.runtime.scope, _report)
        bridge = self.runtime.bridge
        sets = await bridge.to_thread(lambda: built_in(web=self._web, media=MEDIA, memory=True))
        self.tools = [*(tool for tools in sets.values() for tool in tools), ExecuteCode()]
        self.place = LocalPlace(
            self.runtime.warden,
            bridge,
            Bounds(mode=self._confinement),
            workspace=self.workspace,
            tmp=self._private,
        )
        self.environment = self.runtime.call_environment(
            "s",
            self.tools,
            workspace=self.workspace,
            hooks=self.watch,
            env=self._environment,
            place=self.place,
        )
        self.environment.background = self.background
        self.environment.resources = self.resources
        self.environment.agents = StalledAgents()
        self.models = self.environment.models = StalledModels()
        self.memory = self.environment.memory = StalledMemory()
        self.environment.search = find_one
        self.environment.files = await bridge.to_thread(
            lambda: FileAccess(self.workspace, keep=keep, changing=self._changing)
        )

    def _private(self) -> Path:
        folder = self.workspace.with_name(f"{self.workspace.name}.private")
        folder.mkdir(exist_ok=True)
        return folder

    async def _changing(self, changes: Sequence[FileChange], call_id: str | None) -> None:
        if self.late and call_id is not None:
            for _ in range(max(0, 40 - int(call_id[1:])) * 50):
                await asyncio.sleep(0)

    async def close(self) -> None:
        await self.models.close()
        await self.resources.close()
        await self.background.close()
        self.turn.close()
        await self.runtime.close()

    def call(self, name: str, /, **arguments: Any) -> ToolCall:
        self._count += 1
        return ToolCall(f"c{self._count}", name, msgspec.json.encode(arguments).decode())

    def start(self, *calls: ToolCall) -> Batch:
        return self.runtime.executor.start(self.environment, calls, self.turn)

    async def run(self, *calls: ToolCall) -> list[CallOutcome]:
        async with asyncio.timeout(PATIENCE):
            return await self.start(*calls).outcomes()
