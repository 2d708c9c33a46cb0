"""A defect at any port of a turn: one end for the turn, and the session goes on.

A scenario passes every port of a session. A run without a fault finds the points; then each of them
fails once, in a run of its own. The ports are the fields of `Surroundings`: a new one that no
scenario passes fails the first test.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from keryx import NO_EFFECTS, tool
from keryx import commands as cm
from keryx import events as ev
from keryx.aio.scope import CancellationToken
from keryx.app import Runtime
from keryx.app.host.dispatch import EventHub, LocalDispatch
from keryx.app.services.diffs import open_files, revert_files
from keryx.engine.approvals import Approvals
from keryx.engine.calls.call_environment import CallEnvironment
from keryx.engine.calls.call_hooks import CallHooks
from keryx.engine.limits import Limits
from keryx.engine.log.resume_guard import ResumeGuard
from keryx.engine.log.state import Settings
from keryx.engine.money.spending import Spending
from keryx.engine.redaction import Redactor
from keryx.engine.session import Opening, Session
from keryx.engine.session_context import HostServices, PromptParts, all_tools
from keryx.engine.session_files import LogChanges, StoreBlob
from keryx.ids import new_id
from keryx.messages import File, Image, Text, ToolMessage, UserMessage
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply, history_of
from keryx.ports.agents import ChildResult, ChildTask
from keryx.ports.dispatch import Sent
from keryx.ports.files import Files
from keryx.ports.memory import MemoryScope, TurnMemory
from keryx.ports.memory_access import MemoryNote, Recall
from keryx.ports.model import Model, ModelRequest
from keryx.ports.model_access import Endpoint
from keryx.ports.store import OutboxRow, blob_hash
from keryx.ports.tool import Tool
from keryx.ports.tool_context import ToolContext
from keryx.sandbox.workers import Workers
from keryx.store.memory import MemoryStore
from keryx.tools.agents.delegate import delegate
from keryx.tools.clarify import clarify
from keryx.tools.files import file_tools
from tests.app.hosts import check_log
from tests.engine.faulty import Faults, InjectedError, Point

PATIENCE: Final = 5.0  # long enough for any machine; only reached by a test that fails
NO_CALLS: Final = {"clock", "limits", "tool_specs", "prepare_calls", "spending"}
"""Fields that are values, or that nothing in a session can do without; what only calls of people
and resumed turns pass (see test_person_calls.py); and the spending, whose port is the store."""
SPENT: Final = ev.Usage(input_tokens=900, output_tokens=10)


def script(request: ModelRequest) -> ScriptedReply:
    last = history_of(request)[-1]
    if isinstance(last, ToolMessage):
        return ScriptedReply(text="It is done.")
    assert isinstance(last, UserMessage)
    said = "".join(part.text for part in last.content if isinstance(part, Text))
    if "toil" in said:
        calls = [
            ScriptedCall("write_file", {"path": "a.txt", "content": "text"}),
            ScriptedCall("clarify", {"question": "Sure?"}),
            ScriptedCall("print_secret"),
            ScriptedCall("ask_another"),
            ScriptedCall("remember"),
            ScriptedCall("delegate", {"tasks": [{"task": "Help"}]}),
        ]
        return ScriptedReply(text="I work.", calls=calls)
    if "hang" in said:
        return ScriptedReply(text="I hang", hold=asyncio.Event().wait)
    return ScriptedReply(text="Hello.", usage=SPENT)


@tool(effects=NO_EFFECTS)
async def print_secret() -> str:
    """Print a secret."""
    return "the secret is hunter2-hunter2"


@tool(effects=NO_EFFECTS)
async def ask_another(context: ToolContext) -> str:
    """Ask another model."""
    return await context.ask_model("search", "Anything else?")


class QuickAgents:
    """Child agents that end at once."""

    async def run(
        self,
        call_id: str,
        task: ChildTask,
        token: CancellationToken,
        progress: Callable[[str], None],
    ) -> ChildResult:
        del token
        progress(f"{call_id}: {task.text}")
        return ChildResult(
            session_id="child",
            outcome="completed",
            text="Helped.",
            model="m",
            usage=ev.Usage(),
            cost=None,
            steps=1,
            calls=0,
        )


@tool(effects=NO_EFFECTS)
async def remember(context: ToolContext) -> str:
    """Remember something, and recall it."""
    await context.memory.remember([MemoryNote(text="The user drinks tea.")])
    return f"{await context.memory.recall('tea', 1)}"


class QuickMemory:
    """A memory that takes and gives at once."""

    def turn_row(self, turn: TurnMemory) -> OutboxRow:
        return OutboxRow(turn.id, "memory", b"")

    def undone_row(self, event: ev.TurnUndone) -> OutboxRow:
        return OutboxRow(f"undo/{event.session_id}/{event.seq}", "memory", b"")

    def restored_row(self, event: ev.TurnRestored, turn: TurnMemory | None) -> OutboxRow:
        del turn
        return OutboxRow(f"restore/{event.session_id}/{event.seq}", "memory", b"")

    def changed_row(self, event: ev.MemoryChanged) -> OutboxRow:
        return OutboxRow(event.memory_id, "memory", b"")

    def wake(self) -> None: ...

    async def context(self, session_id: str, scope: MemoryScope, words: str) -> Recall:
        del session_id, scope, words
        memory = ev.RecalledMemory(memory_id="mem_1", text="Tea.", trust="person", provider="p")
        return Recall(memories=(memory,))

    async def recall(self, scope: MemoryScope, words: str, limit: int) -> Recall:
        del scope, words, limit
        return Recall()


class OneModel:
    """Gives tools always the same model."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def find(self, purpose: ev.Purpose, name: str | None = None) -> Model:
        del purpose, name
        return self._model

    def endpoint(self, purpose: ev.Purpose) -> Endpoint:
        raise AssertionError(f"nobody asks for {purpose}")

    def is_configured(self, purpose: ev.Purpose) -> bool:
        return bool(purpose)

    def add_image(self, data: bytes, media_type: str, name: str = "") -> Image:
        return Image(blob_hash(data), media_type, name)


class KeepsUploads:
    """Attachments that are there."""

    async def uploaded(self, hash_: str) -> bytes | None:
        return b"attached" if hash_ == blob_hash(b"attached") else None

    async def prepare(self, session_id: str, parts: Sequence[Image | File]) -> None:
        assert [part.blob for part in parts] == [blob_hash(b"attached")] * len(parts)


async def prompt_parts(settings: Settings, workspace: str) -> PromptParts:
    return PromptParts({"agents": "Be kind."}, ("a warning",))


def gives(value: Any) -> Callable[..., Any]:
    """A function that always returns this."""

    def give(*args: Any) -> Any:
        return value

    return give


class Faulty:
    """A host of one session whose ports can fail."""

    def __init__(self, folder: Path, faults: Faults) -> None:
        self.folder = folder
        self.faults = faults
        self.runtime = Runtime()
        self.store = MemoryStore()
        tools = [*file_tools(), clarify, print_secret, ask_another, remember, delegate]
        self.tools = {tested_tool.name: faults.wrap("tool", tested_tool) for tested_tool in tools}
        self.redactor = faults.wrap("redactor", Redactor({"SECRET": "hunter2-hunter2"}))
        self.model = faults.wrap("model", ScriptedModel(script, window=1_000))
        title = faults.wrap("titles", ScriptedModel(_always("A title"), name="scripted:title"))
        summary = faults.wrap("summaries", ScriptedModel(_always("So far."), name="scripted:sum"))
        side = ScriptedModel(_always("No."), name="scripted:side")
        side_models = faults.wrap("models_for_tools", OneModel(side))
        self.services = HostServices(
            store=faults.wrap("store", self.store),
            executor=faults.wrap("executor", self.runtime.executor),
            clock=self.runtime.scope.clock,
            model=faults.wrap("model", gives(self.model)),
            tools=faults.wrap("tools", self._granted),
            described=faults.wrap("described", partial(all_tools)),
            environment=faults.wrap("environment", self._environment),
            prompt_parts=faults.wrap("prompt_parts", prompt_parts),
            files=faults.wrap("files", self._files),
            attachments=faults.wrap("attachments", KeepsUploads()),
            workers=faults.wrap("workers", partial(Workers)),
            revert=faults.wrap("revert", partial(revert_files, self.runtime.bridge)),
            judge=faults.wrap("judge", Approvals(mode="ask")),
            remember=faults.wrap("remember", gives(None)),
            titles=faults.wrap("titles", gives(title)),
            summaries=faults.wrap("summaries", gives(summary)),
            agents=faults.wrap("agents", gives(QuickAgents())),
            models_for_tools=faults.wrap("models_for_tools", gives(side_models)),
            memory=faults.wrap("memory", QuickMemory()),
            compact_at=faults.wrap("compact_at", gives(0.8)),
            rested=faults.wrap("rested", self._rested),
            changed=faults.wrap("changed", gives(None)),
            redactor=self.redactor,
            resume_guard=faults.wrap("resume_guard", ResumeGuard()),
            limits=Limits(),
            spending=self._spending(faults),
        )
        self.dispatch = LocalDispatch(self.runtime.scope, self.store, self._open)

    def _spending(self, faults: Faults) -> Spending:
        limits = Limits(tokens_per_session=1_000_000_000, tokens_per_day=1_000_000_000)
        store = faults.wrap("store", self.store)
        return Spending(store, self.runtime.scope.clock, limits)

    def _rested(self, session_id: str) -> None:
        self.dispatch.rested(session_id)

    def _granted(self, settings: Settings) -> list[Tool]:
        return [self.tools[name] for name in settings.tools]

    def _environment(
        self, session_id: str, settings: Settings, workspace: Path, hooks: CallHooks
    ) -> CallEnvironment:
        return self.runtime.call_environment(
            session_id,
            self._granted(settings),
            workspace=workspace,
            hooks=hooks,
            redactor=self.redactor,
        )

    def _files(
        self, session_id: str, workspace: str, keep: StoreBlob, changing: LogChanges
    ) -> Files:
        return open_files(workspace, keep, changing)

    async def _open(
        self, session_id: str, opening: Opening | None, hub: EventHub | None
    ) -> Session:
        opening = Opening(model="m", workspace=str(self.folder), tools=tuple(self.tools))
        scope = self.runtime.scope
        return await Session.open(session_id, self.services, scope, opening, hub=hub)

    async def tell(self, kind: type[cm.Command], **fields: Any) -> Any:
        command = kind(command_id=new_id("c"), session_id="s", by="tester", **fields)
        return await self.dispatch.tell(command)

    async def log(self) -> list[ev.LoggedEvent]:
        return await self.store.events("s")


def _always(text: str) -> list[ScriptedReply]:
    return [ScriptedReply(text=text)] * 20


@asynccontextmanager
async def answering(host: Faulty) -> AsyncGenerator[None]:
    """A person who says yes to all that is asked, over any number of failures."""

    async def answer() -> None:
        while True:
            with suppress(Exception):
                reader = await host.dispatch.watch("s", after=0)
                async with reader, aclosing(aiter(reader)) as events:
                    async for event in events:
                        await say_yes(event)

    async def say_yes(event: ev.Event) -> None:
        for _ in range(2):  # one of them may meet the fault
            with suppress(Exception):
                if isinstance(event, ev.ApprovalAsked):
                    fields = {"approval_id": event.approval_id, "decision": "always"}
                    await host.tell(cm.AnswerApproval, where="test", **fields)
                elif isinstance(event, ev.QuestionAsked):
                    fields = {"question_id": event.question_id, "answer": "yes"}
                    await host.tell(cm.AnswerQuestion, where="test", **fields)
                return

    task = asyncio.create_task(answer())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until_over(host: Faulty, turn_id: str) -> ev.TurnFinished:
    """Wait by event for the end of a turn, over any number of failures of its session."""
    while True:
        with suppress(InjectedError):
            reader = await host.dispatch.watch("s", after=0)
            async with reader, aclosing(aiter(reader)) as events:
                async for event in events:
                    if isinstance(event, ev.TurnFinished) and event.turn_id == turn_id:
                        return event


async def send(host: Faulty, text: str, **fields: Any) -> ev.TurnFinished:
    answer = await host.tell(cm.SendMessage, text=text, **fields)
    assert isinstance(answer, Sent)
    return await until_over(host, answer.turn_id)


async def scenario(host: Faulty) -> None:
    """Every port of a session is passed; what fails is the caller's to judge."""
    attached = File(blob_hash(b"attached"), "text/plain", "a.txt")
    with suppress(InjectedError):
        await send(host, "hello, hunter2-hunter2", attachments=(attached,))
    with suppress(InjectedError):
        over = await send(host, "toil")  # with a summary first, an approval and a question
        await host.tell(cm.UndoTurn, turn_id=over.turn_id)


async def goes_on(host: Faulty) -> None:
    """The session takes the next message, answers it, and can be cancelled."""
    finished = await send(host, "are you there?")
    assert finished.outcome == "completed"
    answer = await host.tell(cm.SendMessage, text="hang")
    await host.tell(cm.CancelTurn, turn_id=answer.turn_id)
    assert (await until_over(host, answer.turn_id)).outcome == "cancelled"


async def close(host: Faulty) -> None:
    await host.dispatch.close()
    await host.runtime.close()


async def run(folder: Path, target: Point | None) -> Faults:
    faults = Faults(target)
    host = Faulty(folder, faults)
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    try:
        async with asyncio.timeout(PATIENCE), answering(host):
            await scenario(host)
            faults.is_armed = False
            await goes_on(host)
    finally:
        async with asyncio.timeout(PATIENCE):
            await close(host)
    log = await host.log()
    check_log(log)
    ends = Counter(event.turn_id for event in log if isinstance(event, ev.TurnFinished))
    assert set(ends.values()) == {1}, "a turn has one end"
    for event in log:
        if isinstance(event, ev.TurnFinished) and event.outcome == "failed":
            assert event.error is not None
            assert event.error.hint
    return faults


async def points(folder: Path) -> list[Point]:
    passed = (await run(folder, None)).passed
    return list(dict.fromkeys(passed))


@pytest.mark.promise("mended.1")
async def test_the_scenario_passes_every_port(tmp_path: Path) -> None:
    passed = {point.port for point in await points(tmp_path)}
    assert passed == {*HostServices.__struct_fields__, "tool"} - NO_CALLS


@pytest.mark.promise("mended.1")
@pytest.mark.parametrize("port", sorted({*HostServices.__struct_fields__, "tool"} - NO_CALLS))
async def test_a_fault_at_any_call_of_a_port_ends_one_turn_and_nothing_else(
    port: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    here = [point for point in await points(tmp_path) if point.port == port]
    struck = 0
    for number, point in enumerate(here):
        folder = tmp_path / str(number)
        folder.mkdir()
        try:
            struck += (await run(folder, point)).struck
        except (AssertionError, TimeoutError) as error:
            raise AssertionError(f"a fault {point}: {error!r}") from error
    assert struck >= len(here) // 2  # what runs side by side may come in another order
    record_property(f"faults at {port}", struck)
