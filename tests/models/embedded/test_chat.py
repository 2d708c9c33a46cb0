"""SmolLM2 for real: it answers with no network, streams, is cancelled, and is shared fairly."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import msgspec
import pytest

from keryx import Keryx
from keryx.app.runtime import Runtime
from keryx.messages import AssistantMessage, Message, Text, ToolCall, ToolMessage, UserMessage
from keryx.models.embedded.model import EmbeddedModel
from keryx.models.embedded.model_file import ModelFile
from keryx.models.embedded.workers import Workers
from keryx.models.http import Clients
from keryx.ports.model import Finished, ModelRequest, TextPiece, ToolSpec
from tests.models.embedded.smollm2 import (
    GGUF,
    NAME,
    PATIENCE,
    SEA,
    WorkerProbe,
    home_with_model,
    let_computing_wait,
    text_pieces,
    wait_until_read,
)

pytestmark = pytest.mark.promise("model.4")

PROGRAM = str(Path(__file__).with_name("offline_program.py"))
ENDLESS = {"ignore_eos": True}
"""The model may not end its reply by itself."""


def test_a_chat_is_answered_where_there_is_no_network(tmp_path: Path) -> None:
    home_with_model(tmp_path)
    # A namespace with its own, empty network; the program needs no right of root for that.
    command = ["unshare", "--map-root-user", "--net", sys.executable, PROGRAM]
    done = subprocess.run(
        [*command, str(tmp_path), "What is the capital of France?"],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["outside"] == "Network is unreachable"
    assert said["outcome"] == "completed"
    # A busy host reads all of a short reply at once; the next test waits for pieces of a long one.
    assert "".join(said["pieces"]) == said["text"] != ""


async def test_a_cancel_stops_it_within_one_token(tmp_path: Path) -> None:
    home = home_with_model(tmp_path)
    async with (
        asyncio.timeout(PATIENCE),
        Keryx(model=NAME, home=home, workspace=tmp_path) as app,
        aiohttp.ClientSession() as http,
    ):
        session = await app.open()
        turn = await session.send(SEA)
        await text_pieces(turn, 5)
        (worker,) = app.host_client.models.local.workers.running
        let_computing_wait(worker.pid)
        # The process stands still at some instant between two tokens. What it has sent until then
        # is read; then comes the cancel; then it goes on.
        os.kill(worker.pid, signal.SIGSTOP)
        try:
            await app.host_client.to_thread(lambda: wait_until_read(worker.address))
            for _ in range(100):  # what was read reaches the session
                await asyncio.sleep(0)
            result = await turn.cancel()
        finally:
            os.kill(worker.pid, signal.SIGCONT)
        probe = WorkerProbe(worker, http)
        generated, received = await probe.generated(), await probe.tokens(result.text)
    assert result.outcome == "cancelled"
    assert received > 0
    # One token was being computed, and one may have been computed and not sent.
    assert generated - received <= 2, result.text


async def test_a_model_without_tools_gets_none_and_a_short_prompt(tmp_path: Path) -> None:
    home = home_with_model(tmp_path)
    (tmp_path / "AGENTS.md").write_text("Always use the tool terminal. " * 200)
    async with asyncio.timeout(PATIENCE), Keryx(model=NAME, home=home, workspace=tmp_path) as app:
        session = await app.open()
        assert "terminal" in (await session.view()).settings.tools
        result = await (await session.send("Say hello.")).result()
    assert result.outcome == "completed", result.error
    assert result.calls == ()
    assert result.usage.input_tokens < 100


async def test_more_sessions_than_slots_are_all_answered(tmp_path: Path) -> None:
    home = home_with_model(tmp_path)
    async with asyncio.timeout(PATIENCE), Keryx(model=NAME, home=home, workspace=tmp_path) as app:
        turns = [await (await app.open()).send(f"What is {n} plus {n}?") for n in range(6)]
        results = [await turn.result() for turn in turns]
        (worker,) = app.host_client.models.local.workers.running
    assert worker.file.slots < len(turns)
    assert [result.outcome for result in results] == ["completed"] * len(turns)
    assert all(result.text for result in results)


# -- the model itself, where a test can say how long a reply is


@asynccontextmanager
async def running_model(clients: Clients, slots: int) -> AsyncGenerator[EmbeddedModel]:
    async with Runtime() as runtime:
        workers = Workers(runtime.warden, runtime.bridge, runtime.scope)
        try:
            yield EmbeddedModel("local:test", ModelFile(GGUF, None, slots, 1024), workers, clients)
        finally:
            await workers.close()


def request(model: EmbeddedModel, tokens: int, *messages: Message) -> ModelRequest:
    history = messages or (UserMessage((Text(SEA),)),)
    return ModelRequest(
        system="",
        history=tuple(map(model.encode, history)),
        max_tokens=tokens,
        extra=ENDLESS,
    )


async def test_a_long_reply_does_not_hold_up_a_short_one(clients: Clients) -> None:
    ended: list[str] = []
    async with asyncio.timeout(PATIENCE), running_model(clients, 2) as model:
        long_has_begun = asyncio.Event()

        async def long() -> None:
            async for _ in model.stream(request(model, 120)):
                long_has_begun.set()
            ended.append("long")

        async def short() -> None:
            await long_has_begun.wait()
            async for _ in model.stream(request(model, 3)):
                pass
            ended.append("short")

        async with asyncio.TaskGroup() as group:
            group.create_task(long())
            group.create_task(short())
    assert ended == ["short", "long"]


async def test_those_who_wait_come_in_the_order_in_which_they_asked(clients: Clients) -> None:
    ended: list[int] = []
    async with asyncio.timeout(PATIENCE), running_model(clients, 1) as model:

        async def ask(number: int) -> None:
            async for _ in model.stream(request(model, 12 - number)):
                pass
            ended.append(number)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(ask(number)) for number in range(6)]
            await asyncio.sleep(0)
            tasks[3].cancel()  # who gives up while waiting holds up nobody
    assert ended == [0, 1, 2, 4, 5]


async def test_a_history_with_tools_is_told_as_plain_texts(clients: Clients) -> None:
    call = ToolCall("c1", "terminal", '{"command": "date"}')
    history = (
        UserMessage((Text("[memory: notes]"), Text("[workspace: /w]\nWhat day is it?"))),
        AssistantMessage((), (call,)),
        ToolMessage("c1", (Text("Tuesday"),)),
        UserMessage((Text("[workspace: /w]\nThank you."),)),
    )
    tool = ToolSpec("terminal", "Run a command.", {"type": "object", "properties": {}})
    async with asyncio.timeout(PATIENCE), running_model(clients, 1) as model:
        model_request = msgspec.structs.replace(request(model, 5, *history), tools=(tool,))
        pieces = [piece async for piece in model.stream(model_request)]
        assert model.window == 1024
    assert isinstance(pieces[-1], Finished)
    assert pieces[-1].cost == 0, "nobody is paid for it"
    assert any(isinstance(piece, TextPiece) for piece in pieces)
