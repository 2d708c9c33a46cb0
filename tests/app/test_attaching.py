"""Two processes on one home: the second attaches, sees everything live, and outlives the first."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from keryx import Keryx
from keryx import events as ev
from keryx.aio.bridge import Bridge
from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.app.host import remote_host
from keryx.app.host.homes.home import ADDRESS_FILE, HomeTakenError
from keryx.app.host.homes.host_address import LONGEST_SOCKET_PATH, HostAddress
from keryx.app.host.socket_protocol import VERSION
from keryx.errors import DeveloperMustActError, KeyReusedError, UserMustActError
from keryx.models.scripted import ScriptedModel, ScriptedReply
from keryx.rpc import CallError, connect
from keryx.testing.modelserver import ModelServer, Reply

pytestmark = pytest.mark.promise("sessions.2")

PATIENCE = 20.0


def configure(home: Path, server: ModelServer) -> None:
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(
        f'model = "openai:test-model"\n[providers.openai]\nbase_url = "{server.url}"\n'
    )


@asynccontextmanager
async def patience() -> AsyncGenerator[None]:
    async with asyncio.timeout(PATIENCE):
        yield


async def test_the_second_sees_and_steers_what_the_first_runs(tmp_path: Path) -> None:
    gate = asyncio.Event()
    model = ScriptedModel(
        [ScriptedReply(text="Once upon a time", hold=gate.wait), ScriptedReply(text="In Greek.")]
    )
    async with patience(), Keryx(model=model, home=tmp_path) as first, Keryx(home=tmp_path) as two:
        session = await first.open()
        turn = await session.send("Tell")
        same_session = await two.open(session.session_id)
        events: list[ev.Event] = []
        async for event in same_session.events():
            events.append(event)
            if isinstance(event, ev.TextDelta | ev.StepSnapshot) and "time" in event.text:
                await same_session.steer("in Greek, please")
            if isinstance(event, ev.TurnFinished):
                break
        assert (await turn.result()).text == "In Greek."
        log = await first.store.events(session.session_id)
        assert [event for event in events if hasattr(event, "seq")] == log
        assert await two.store.events(session.session_id) == log


async def test_a_turn_that_the_second_starts_runs_at_the_first(tmp_path: Path) -> None:
    async with (
        patience(),
        Keryx(model="scripted:demo", home=tmp_path) as first,
        Keryx(home=tmp_path) as second,
    ):
        session = await second.open()
        result = await (await session.send("Hi")).result()
        assert result.outcome == "completed"
        assert [row.session_id for row in await first.store.sessions()] == [session.session_id]


@pytest.mark.promise("server.7")
async def test_who_is_attached_finds_what_was_said_a_moment_ago(tmp_path: Path) -> None:
    words = ["caduceus", "kerykeion", "trident"]
    model = ScriptedModel([ScriptedReply(text=word) for word in words])
    async with patience(), Keryx(model=model, home=tmp_path) as first, Keryx(home=tmp_path) as two:
        session = await first.open()
        for word in words:
            await (await session.send("What does a herald carry?")).result()
            assert [hit.session_id for hit in await two.store.search(word)] == [session.session_id]
            assert (await two.store.covered()).is_whole


async def test_errors_of_the_host_arrive_as_what_they_are(tmp_path: Path) -> None:
    async with patience(), Keryx(model="scripted:demo", home=tmp_path), Keryx(home=tmp_path) as two:
        session = await two.open()
        await (await session.send("Hi", key="k")).result()
        with pytest.raises(KeyReusedError, match="another command"):
            await session.send("Ho", key="k")
        with pytest.raises(DeveloperMustActError, match="there is no session 'nobody'"):
            await two.open("nobody")


async def test_a_deleted_session_ends_the_streams_of_those_who_watch_it(tmp_path: Path) -> None:
    async with (
        patience(),
        Keryx(model="scripted:demo", home=tmp_path) as first,
        Keryx(home=tmp_path) as second,
    ):
        session = await second.open()
        await (await session.send("Hi")).result()
        stream = session.events()
        await anext(stream)
        assert await first.delete(session.session_id) is True
        with pytest.raises(DeveloperMustActError, match="was deleted"):
            async for _ in stream:
                pass
        assert await second.delete(session.session_id) is False


async def test_a_home_with_a_very_long_path_is_reached_too(tmp_path: Path) -> None:
    home = tmp_path / ("long" * 20) / ("path" * 20)
    assert len(str(home)) > LONGEST_SOCKET_PATH
    async with patience(), Keryx(model="scripted:demo", home=home), Keryx(home=home) as second:
        result = await (await (await second.open()).send("Hi")).result()
        assert result.outcome == "completed"


async def test_who_does_not_know_the_secret_gets_nothing(tmp_path: Path) -> None:
    scope = Scope("stranger")
    async with patience(), Keryx(home=tmp_path):
        address = await read_address(tmp_path)
        assert (tmp_path / ADDRESS_FILE).stat().st_mode & 0o777 == 0o600
        stranger = await connect(address.socket, scope)
        with pytest.raises(CallError, match="say hello"):
            await stranger.call("open", b'{"session_id":"s"}')
        hello = json.dumps({"secret": "guess", "version": VERSION}).encode()
        with pytest.raises(CallError, match="not the secret"):
            await stranger.call("hello", hello)
        with pytest.raises(CallError, match="say hello"):
            await stranger.call("tell", b"{}")
        stranger.close()
        await stranger.wait_ended()
    scope.close()


async def read_address(home: Path) -> HostAddress:
    scope = Scope("reader")
    bridge = Bridge(scope)
    raw = await bridge.to_thread((home / ADDRESS_FILE).read_bytes)
    await bridge.close()
    return HostAddress(**json.loads(raw))


async def test_when_the_host_ends_the_next_one_goes_on_with_its_turns(tmp_path: Path) -> None:
    replies = [Reply(text="Half of", fault="hang mid-stream"), Reply(text="The whole answer.")]
    async with patience(), ModelServer(replies) as server:
        configure(tmp_path, server)
        first, second = Keryx(home=tmp_path), Keryx(home=tmp_path)
        await first.__aenter__()
        async with second:
            session = await second.open()
            turn = await session.send("Tell")
            group = Group(Scope("waiting"))
            result = group.start(turn.result(), name="result")
            await (await server.wait_asked(1)).hanging.wait()
            await first.__aexit__(None, None, None)
            assert (await result).text == "The whole answer."
            facts = [ev.type_of(event) for event in await second.store.events(session.session_id)]
            assert facts.count("turn.finished") == 1
            await group.leave()


async def test_a_command_that_was_lost_with_its_host_is_told_to_the_next(tmp_path: Path) -> None:
    first, second = Keryx(home=tmp_path, model="scripted:demo"), Keryx(home=tmp_path)
    async with patience():
        await first.__aenter__()
        async with second:
            session = await second.open()
            await first.__aexit__(None, None, None)
            # Nobody told this one that the host is gone: it finds out by asking.
            result = await (await session.send("Hi")).result()
            assert result.outcome in ("completed", "failed")
            assert (await second.store.sessions())[0].session_id == session.session_id


HOST = """
import asyncio, sys
from keryx import Keryx
async def main():
    async with Keryx(home=sys.argv[1]) as app:
        print("up", flush=True)
        await asyncio.Event().wait()
asyncio.run(main())
"""


def start_host(home: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", HOST, str(home)]
    host = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert host.stdout is not None
    assert host.stdout.readline() == b"up\n"
    return host


def end(host: subprocess.Popen[bytes]) -> None:
    host.kill()
    assert host.stdout is not None
    host.stdout.close()
    host.wait()


async def in_thread(scope: Scope, work: Any, *args: Any) -> Any:
    bridge = Bridge(scope)
    result = await bridge.to_thread(work, *args)
    await bridge.close()
    return result


async def test_when_the_host_is_killed_who_is_attached_takes_over(tmp_path: Path) -> None:
    replies = [Reply(text="Half of", fault="hang mid-stream"), Reply(text="The whole answer.")]
    scope = Scope("test")
    async with patience(), ModelServer(replies) as server:
        configure(tmp_path, server)
        host = await in_thread(scope, start_host, tmp_path)
        try:
            async with Keryx(home=tmp_path) as app:
                session = await app.open()
                turn = await session.send("Tell")
                group = Group(Scope("waiting"))
                result = group.start(turn.result(), name="result")
                await (await server.wait_asked(1)).hanging.wait()
                host.send_signal(signal.SIGKILL)
                assert (await result).text == "The whole answer."
                types = [ev.type_of(event) for event in await app.store.events(session.session_id)]
                assert types.count("turn.resumed") == 1
                await group.leave()
        finally:
            await in_thread(scope, end, host)
    scope.close()


async def test_a_host_that_does_not_answer_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = Scope("test")
    host = await in_thread(scope, start_host, tmp_path)
    try:
        host.send_signal(signal.SIGSTOP)
        monkeypatch.setattr(remote_host, "HELLO_TIMEOUT", 0.2)
        with pytest.raises(HomeTakenError, match=f"process {host.pid}.* does not answer"):
            await Keryx(home=tmp_path).__aenter__()
    finally:
        await in_thread(scope, end, host)
    scope.close()


async def test_a_false_address_is_an_error_not_a_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Someone else listens where the host is said to be."""
    scope = Scope("test")
    async with Keryx(home=tmp_path):
        address = await read_address(tmp_path)
        impostor = socket.socket(socket.AF_UNIX)
        where = str(tmp_path / "other.sock")
        impostor.bind(where)
        impostor.listen()
        lie = json.dumps({"pid": address.pid, "socket": where, "secret": "x"})
        await in_thread(scope, (tmp_path / ADDRESS_FILE).write_text, lie)
        monkeypatch.setattr(remote_host, "HELLO_TIMEOUT", 0.2)
        with pytest.raises(UserMustActError, match="does not answer"):
            await Keryx(home=tmp_path).__aenter__()
        impostor.close()
    scope.close()
