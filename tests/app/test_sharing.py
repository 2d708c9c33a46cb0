"""A program with tools and a model of its own shares a home with a server and with its like."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from keryx import IN_MEMORY, NO_EFFECTS, Keryx, tool
from keryx import events as ev
from keryx.errors import UserMustActError
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply
from tests.app.program import GO, TOLD
from tests.cli.commands import COMMAND, environment
from tests.server.served_host import PATIENCE, ROOT, in_thread
from tests.server.server_process import served

pytestmark = pytest.mark.promise("mended.14")

RUN = [sys.executable, "-m", "tests.app.program"]
FORKING = """
import asyncio, os, sys
from pathlib import Path
from tests.app.program import program

async def work(number):
    async with program(Path(sys.argv[1]), Path(sys.argv[2])) as app:
        result = await (await (await app.open()).send("use quick")).result()
        # One write: those of `print` can stand between those of the other processes.
        os.write(1, f"{number} {result.outcome} {result.text}\\n".encode())

for number in range(3):
    if os.fork() == 0:
        asyncio.run(work(number))
        os._exit(0)
for _ in range(3):
    os.wait()
"""


LEAVING_A_CHILD = """
import asyncio, os, sys, time
from pathlib import Path
from tests.app.program import program

async def main():
    async with program(Path(sys.argv[1]), Path(sys.argv[2])):
        if (child := os.fork()) == 0:
            os.close(1)
            time.sleep(600)
        print(child, flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


@tool(effects=NO_EFFECTS)
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def adding() -> ScriptedModel:
    return ScriptedModel(
        [
            ScriptedReply(calls=[ScriptedCall("add", {"a": 2, "b": 3})]),
            ScriptedReply(text="It is 5."),
            ScriptedReply(text="Said on the page."),
        ],
        name="program:adding",
    )


class Program:
    """`tests.app.program` in a process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    async def ask(self, line: str = "") -> dict[str, Any]:
        assert self.process.stdin is not None
        if line:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        return await self.answer()

    async def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        answered: dict[str, Any] = json.loads(await in_thread(self.process.stdout.readline))
        return answered

    async def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        await in_thread(self.process.wait)

    async def end(self) -> None:
        """Gracefully, if it still runs."""
        await in_thread(lambda: self.process.communicate("leave\n", timeout=PATIENCE))


@asynccontextmanager
async def programs(home: Path, folder: Path, count: int = 1) -> AsyncGenerator[list[Program]]:
    """So many of them, started at once; they are killed in the end."""
    words = [*RUN, str(home), str(folder)]
    started = [
        subprocess.Popen(  # noqa: ASYNC220 (a moment, in a test)
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        for _ in range(count)
    ]
    several = [Program(process) for process in started]
    try:
        for program in several:
            assert (await program.answer())["ready"]
        yield several
    finally:
        for program in several:
            await program.end()


def log_lines(folder: Path) -> list[str]:
    file = folder / TOLD
    return file.read_text().splitlines() if file.exists() else []


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await in_thread(condition):  # noqa: ASYNC110 (another process, which says it in a file)
            await asyncio.sleep(0.01)


async def test_a_server_shows_and_steers_what_a_program_hosts(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with asyncio.timeout(2 * PATIENCE), served(tmp_path) as (client, _):
        theirs = await client.open()
        async with Keryx(model=adding(), tools=[add], home=home, workspace=tmp_path) as app:
            session = await app.open()
            result = await (await session.send("What is 2 + 3?")).result()
            assert (result.outcome, result.text) == ("completed", "It is 5.")
            rows = (await client.get("/api/sessions"))["sessions"]
            assert {row["session_id"] for row in rows} >= {session.session_id, theirs}
            sent = await client.say(session.session_id, "From the page")
            async for event in session.events():
                if isinstance(event, ev.TurnFinished) and event.turn_id == sent["turn_id"]:
                    break
            types = [event.type async for event in _until_finished(client, session.session_id)]
            assert types.count("turn.finished") == 2
            other = await app.open(theirs)
            assert (await (await other.send("Hi")).result()).text.startswith("word0 word1")
        answer = await client.ask(
            "POST", f"/api/sessions/{session.session_id}/messages", json={"text": "And now?"}
        )
        assert answer.status == 422, answer
        assert "only the program has" in answer.body["detail"]
        assert (await client.ask("GET", f"/api/sessions/{session.session_id}")).status == 200
        patched = await client.ask(
            "PATCH", f"/api/sessions/{session.session_id}", json={"title": "Kept"}
        )
        assert patched.status == 200, patched
        deleted = await client.ask("DELETE", f"/api/sessions/{session.session_id}")
        assert deleted.status in (200, 204)


async def _until_finished(client: Any, session_id: str) -> AsyncGenerator[Any]:
    finished = 0
    async with client.stream(f"/api/sessions/{session_id}/events?after=0") as events:
        async for event in events:
            yield event
            finished += event.type == "turn.finished"
            if finished == 2:
                return


async def test_the_example_of_the_readme_runs_beside_keryx_serve(tmp_path: Path) -> None:
    home = tmp_path / "home"
    words = [COMMAND, "serve", "--port", "0", "--home", str(home)]
    with subprocess.Popen(  # noqa: ASYNC220 (a moment, in a test)
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(home)
    ) as server:
        assert server.stdout is not None
        try:
            line = await in_thread(server.stdout.readline)
            while "http" not in line:
                line = await in_thread(server.stdout.readline)
            async with (
                asyncio.timeout(PATIENCE),
                Keryx(model=adding(), tools=[add], home=home, workspace=tmp_path) as app,
            ):
                session = await app.open()
                turn = await session.send("What is 2 + 3?")
                assert (await turn.result()).text == "It is 5."
        finally:
            server.terminate()


async def test_three_workers_share_a_home(tmp_path: Path) -> None:
    async with asyncio.timeout(3 * PATIENCE), programs(tmp_path / "home", tmp_path, 3) as workers:
        sessions = [(await worker.ask("open"))["session"] for worker in workers]
        for worker in workers:
            await worker.ask("send use quick")
        for worker in workers:
            assert (await worker.ask("result"))["outcome"] == "completed"
        # The first to leave may be the owner: the others go on, and one of them owns the home.
        for number, worker in enumerate(workers):
            assert (await worker.ask("leave"))["left"]
            for rest in workers[number + 1 :]:
                await rest.ask("send use quick")
                assert (await rest.ask("result"))["outcome"] == "completed"
    async with Keryx(home=tmp_path / "home") as app:
        assert {row.session_id for row in await app.store.sessions()} == set(sessions)


async def test_three_forked_workers_share_a_home(tmp_path: Path) -> None:
    words = [sys.executable, "-c", FORKING, str(tmp_path / "home"), str(tmp_path)]
    result = await in_thread(
        lambda: subprocess.run(
            words, capture_output=True, text=True, cwd=ROOT, check=False, timeout=3 * PATIENCE
        )
    )
    lines = sorted(result.stdout.splitlines())
    assert lines == [f"{number} completed Done." for number in range(3)], result.stderr


async def test_a_child_that_outlives_its_program_does_not_keep_the_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    words = [sys.executable, "-c", LEAVING_A_CHILD, str(home), str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:  # noqa: ASYNC220 (a moment, in a test)
        assert process.stdout is not None
        child = int(await in_thread(process.stdout.readline))
        process.kill()
        await in_thread(process.wait)
    try:
        async with asyncio.timeout(PATIENCE), Keryx(model="scripted:demo", home=home) as app:
            assert (await (await (await app.open()).send("Hi")).result()).outcome == "completed"
    finally:
        os.kill(child, signal.SIGKILL)


async def test_a_killed_program_goes_on_when_it_comes_back(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with asyncio.timeout(3 * PATIENCE), served(tmp_path) as (client, _):
        async with programs(home, tmp_path) as (program,):
            session_id = (await program.ask("open"))["session"]
            turn_id = (await program.ask("send use wait"))["turn"]
            await until(lambda: "began wait" in log_lines(tmp_path))
            await program.kill()
        refused = await client.ask(
            "POST", f"/api/sessions/{session_id}/messages", json={"text": "Hello?"}
        )
        assert refused.status == 422, refused
        assert "is not running" in refused.body["detail"]
        view = await client.get(f"/api/sessions/{session_id}")
        assert turn_id in json.dumps(view), "it can be looked at"
        async with (
            programs(home, tmp_path),
            client.stream(f"/api/sessions/{session_id}/events?after=0") as events,
        ):
            types: list[str] = []
            async for event in events:
                types.append(event.type)
                if event.type == "turn.finished":
                    assert event.data["outcome"] == "completed"
                    break
        assert types.count("turn.resumed") == 1
        assert log_lines(tmp_path) == ["began wait"], "a call that was started is not run again"
    async with Keryx(home=home):
        pass  # removes what the killed ones left


async def test_a_program_outlives_the_owner_of_its_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with asyncio.timeout(3 * PATIENCE):
        async with served(tmp_path) as (client, owner):
            theirs = await client.open()
            async with programs(home, tmp_path) as (program,):
                session_id = (await program.ask("open"))["session"]
                await program.ask("send use wait")
                await until(lambda: "began wait" in log_lines(tmp_path))
                owner.send_signal(signal.SIGKILL)
                await in_thread(owner.wait)
                (tmp_path / GO).touch()
                answer = await program.ask("result")
                assert (answer["outcome"], answer["text"]) == ("completed", "Done.")
                # The program owns the home now, and whoever comes finds all of it.
                async with Keryx(home=home) as app:
                    rows = {row.session_id for row in await app.store.sessions()}
                    assert rows == {session_id, theirs}
                    session = await app.open(session_id)
                    result = await (await session.send("use quick")).result()
                    assert result.outcome == "completed"
        assert log_lines(tmp_path) == ["began wait", "ended wait", "began quick", "ended quick"]


async def test_a_guest_finds_whoever_takes_the_home_over_from_a_frozen_owner(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    async with (
        asyncio.timeout(3 * PATIENCE),
        served(tmp_path) as (_, owner),
        Keryx(model=adding(), tools=[add], home=home) as guest,
    ):
        session = await guest.open()
        owner.send_signal(signal.SIGSTOP)
        async with Keryx(model="scripted:demo", home=home, take_over=True) as new:
            same_session = await new.open(session.session_id)
            assert (await (await same_session.send("2 + 3?")).result()).text == "It is 5."
            another = await guest.open()
            assert (await new.open(another.session_id)).session_id == another.session_id
            owner.send_signal(signal.SIGCONT)
            assert (await (await session.send("And?")).result()).outcome == "completed"


async def test_a_session_of_one_program_is_reached_from_another(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(2 * PATIENCE),
        Keryx(model="scripted:demo", home=tmp_path) as owner,
        Keryx(model=adding(), tools=[add], home=tmp_path) as first,
        Keryx(model=ScriptedModel([], name="program:other"), home=tmp_path) as second,
    ):
        session = await first.open()
        await (await session.send("What is 2 + 3?")).result()
        for app in (owner, second):
            same_session = await app.open(session.session_id)
            assert (await same_session.view()).seq == (await session.view()).seq
        same_session = await second.open(session.session_id)
        assert (await (await same_session.send("Hi")).result()).text == "Said on the page."
        fork = await session.fork()
        assert (await fork.view()).settings.tools == ("add",)
        await fork.change(title="A fork")
        plain = await first.open(tools=[])
        assert (await plain.view()).settings.tools == ()
        for app in (first, second, owner):
            hits = await app.store.search("page")
            assert {hit.session_id for hit in hits} == {session.session_id, fork.session_id}
        assert await first.delete(session.session_id)
        assert await owner.store.session(session.session_id) is None


async def test_a_program_that_owns_the_home_hosts_others_as_any_host_does(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('model = "scripted:plain"')
    async with Keryx(home=tmp_path) as app:
        before = (await app.open()).session_id
    async with (
        asyncio.timeout(PATIENCE),
        Keryx(model=adding(), tools=[add], home=tmp_path) as program,
        Keryx(home=tmp_path) as other,
    ):
        session = await other.open()
        settings = (await session.view()).settings
        assert settings.model == "scripted:plain"
        assert {"read_file", "terminal"} < set(settings.tools)
        assert "add" not in settings.tools
        for handle in (session, await other.open(before)):
            events = [event async for event in handle.run("list_files")]
            assert isinstance(events[-1], ev.CallFinished)
            assert events[-1].outcome == "completed"
        own = await program.open()
        assert (await own.view()).settings.tools == ("add",)


async def test_a_session_whose_program_is_gone_can_be_given_to_others(tmp_path: Path) -> None:
    async with Keryx(model=adding(), tools=[add], home=tmp_path) as app:
        session_id = (await app.open()).session_id
    async with Keryx(model="scripted:demo", home=tmp_path) as app:
        session = await app.open(session_id)
        with pytest.raises(UserMustActError, match=r"model program:adding.*tool add"):
            await session.send("Hi")
        await session.change(model="scripted:demo", tools=())
        assert (await (await session.send("Hi")).result()).outcome == "completed"


async def test_a_home_in_memory_is_nobody_else_s(tmp_path: Path) -> None:
    before = set(os.listdir(tmp_path))  # noqa: PTH208 (names alone)
    async with (
        Keryx(model=adding(), tools=[add], home=IN_MEMORY, workspace=tmp_path) as first,
        Keryx(model="scripted:demo", home=":memory:", workspace=tmp_path) as second,
    ):
        session = await first.open()
        result = await (await session.send("What is 2 + 3?")).result()
        assert result.text == "It is 5."
        assert [row.session_id for row in await first.store.sessions()] == [session.session_id]
        assert await second.store.sessions() == []
        folder = first.host_client.config.home
        assert not (folder / "keryx.db").exists()
    assert not folder.exists()
    assert set(os.listdir(tmp_path)) == before  # noqa: PTH208 (names alone)
