"""What can go wrong with a model of this machine: each fault is one clear error of one turn."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from keryx import Keryx
from keryx import events as ev
from keryx.aio.clock import FakeClock
from keryx.app.runtime import Runtime
from keryx.messages import Text, UserMessage
from keryx.models.embedded.model import EmbeddedModel
from keryx.models.embedded.model_file import ModelFile
from keryx.models.embedded.workers import LONGEST_IDLE, Workers
from keryx.models.http import Clients
from keryx.ports.model import ModelRequest
from tests.cli.commands import COMMAND, environment
from tests.models.embedded.smollm2 import (
    GGUF,
    NAME,
    PATIENCE,
    SEA,
    home_with_model,
    text_pieces,
)

pytestmark = pytest.mark.promise("model.4")

PROGRAM = str(Path(__file__).with_name("offline_program.py"))


async def failed(model: str, folder: Path) -> ev.TurnError:
    """Ask this model, and return why there is no answer."""
    home = folder / "home"
    async with asyncio.timeout(PATIENCE), Keryx(model=model, home=home, workspace=folder) as app:
        result = await (await (await app.open()).send("Hi")).result()
    assert result.outcome == "failed"
    assert result.error is not None
    return result.error


async def test_a_killed_worker_is_one_failed_turn_and_the_next_one_works(tmp_path: Path) -> None:
    home = home_with_model(tmp_path)
    async with asyncio.timeout(PATIENCE), Keryx(model=NAME, home=home, workspace=tmp_path) as app:
        session = await app.open()
        turn = await session.send(SEA)
        workers = app.host_client.models.local.workers
        await text_pieces(turn, 1)
        (first,) = workers.running
        os.kill(first.pid, signal.SIGKILL)
        result = await turn.result()
        again = await session.send("Hello!")
        await text_pieces(again, 2)
        (second,) = workers.running
        await again.cancel()
    assert result.outcome == "failed"
    assert result.error is not None
    assert "ended while it answered (signal 9)" in result.error.message
    assert "ask again" in (result.error.hint or "")
    assert second.pid != first.pid


async def test_files_that_are_no_model_are_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "text.gguf").write_text("This is a text.")
    (tmp_path / "cut.gguf").write_bytes(GGUF.read_bytes()[:2_000_000])
    (tmp_path / "noise.gguf").write_bytes(b"GGUF" + bytes(range(256)) * 100)
    os.mkfifo(tmp_path / "pipe.gguf")
    expected = {
        "missing.gguf": "there is no file",
        "": "it is not a file",
        "pipe.gguf": "it is not a file",
        "text.gguf": "it is not a GGUF file",
        "cut.gguf": "cannot be loaded",
        "noise.gguf": "cannot be loaded",
    }
    for name, cause in expected.items():
        error = await failed(f"local:{tmp_path}/{name}", tmp_path)
        assert (error.kind, cause in error.message) == ("model_not_found", True), error
        assert error.hint


@pytest.mark.parametrize("name", ["local:", "local:other", "local:./a.gguf", "local:a.gguf"])
async def test_a_name_that_is_no_whole_path_is_refused(name: str, tmp_path: Path) -> None:
    error = await failed(name, tmp_path)
    assert error.kind == "not_configured"
    assert "write local:smollm2, or local: and the whole path of a GGUF file" in (error.hint or "")


async def test_a_model_that_was_never_pulled_says_how_to_pull_it(tmp_path: Path) -> None:
    error = await failed(NAME, tmp_path)
    assert (error.kind, error.hint) == ("not_configured", "run: keryx models pull smollm2")


async def test_without_the_library_the_error_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home_with_model(tmp_path)
    monkeypatch.setitem(sys.modules, "xllamacpp", None)  # Python's own way to say: not here
    error = await failed(NAME, tmp_path)
    assert (error.kind, error.hint) == (
        "not_configured",
        "run: python -m pip install 'keryx[local]'",
    )


def test_the_doctor_says_whether_it_can_be_used(tmp_path: Path) -> None:
    def said(home: Path) -> str:
        env = {**environment(home), "KERYX_MODEL": NAME}
        done = subprocess.run([COMMAND, "doctor"], env=env, stdout=subprocess.PIPE, check=False)
        return done.stdout.decode()

    without, with_model = said(tmp_path / "empty"), said(home_with_model(tmp_path))
    assert "run: keryx models pull smollm2" in without
    assert "run: keryx models pull smollm2" not in with_model
    assert NAME in with_model


def test_a_worker_never_outlives_its_host(tmp_path: Path) -> None:
    home_with_model(tmp_path)
    command = [sys.executable, PROGRAM, str(tmp_path), SEA, "hang"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as host:
        assert host.stdout is not None
        worker = os.pidfd_open(int(host.stdout.readline()))
        host.kill()
        readable, _, _ = select.select([worker], [], [], PATIENCE)
        os.close(worker)
    assert readable, "the worker still runs"


async def one_reply(model: EmbeddedModel, tokens: int = 2) -> None:
    history = (model.encode(UserMessage((Text("Hi"),))),)
    request = ModelRequest(system="", history=history, max_tokens=tokens)
    async for _ in model.stream(request):
        pass


async def test_only_the_host_can_use_a_worker_and_an_idle_one_ends(
    clients: Clients, clock: FakeClock
) -> None:
    async with asyncio.timeout(PATIENCE), Runtime(clock=clock) as runtime:
        workers = Workers(runtime.warden, runtime.bridge, runtime.scope)
        model = EmbeddedModel("local:test", ModelFile(GGUF, None, 1, 512), workers, clients)
        try:
            await one_reply(model)
            (first,) = workers.running
            assert first.address.startswith("http://127.0.0.1:")
            for secret_place in ("cmdline", "environ"):
                content = await runtime.bridge.to_thread(
                    Path(f"/proc/{first.pid}/{secret_place}").read_bytes
                )
                assert first.key.encode() not in content
            async with (
                aiohttp.ClientSession() as stranger,
                stranger.post(f"{first.address}/v1/chat/completions", json={}) as answer,
            ):
                assert answer.status == 401
            clock.advance(LONGEST_IDLE - 1)
            await one_reply(model)
            clock.advance(LONGEST_IDLE - 1)
            assert workers.running == (first,)
            clock.advance(1)
            assert await first.wait_ended() == "signal 9"
            await one_reply(model)
            (second,) = workers.running
            assert second.pid != first.pid
        finally:
            await workers.close()
