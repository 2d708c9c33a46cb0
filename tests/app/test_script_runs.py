"""A run keeps to itself: its folder, in which others are at work, and its socket and secret."""

from __future__ import annotations

import asyncio
import contextlib
import json
import struct
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.app.scripting import Den, Waiting, call, execute, hosting

pytestmark = pytest.mark.promise("tools.3")

# How often a race is run that nobody may win.
PLANTS = 40


# -- the folder of a run, which the host writes to and the session can too


PLANTING = """
import os, sys
outside, tmp, seen = sys.argv[1], os.environ["TMPDIR"], set()

def plant(folder):
    for file in ("script.py", "granted.json", "s", "keryx_tools/_errors.py"):
        try:
            os.symlink(f"{outside}/named", f"{folder}/{file}")
        except OSError:
            pass

def replace(folder):
    for _ in range(100_000):
        if os.path.exists(f"{folder}/granted.json"):
            os.rename(folder, f"{folder}-moved")
            os.symlink(outside, folder)
            return

print("planting", flush=True)
while not os.path.exists("over"):
    for name in os.listdir(tmp):
        if name.startswith("run-") and "moved" not in name and name not in seen:
            seen.add(name)
            try:
                (plant, replace)[len(seen) % 2](f"{tmp}/{name}")
            except OSError:
                pass
"""


async def test_links_planted_in_the_folder_of_a_new_run_lead_the_host_nowhere(den: Den) -> None:
    """A process of the same session sees the folder as soon as it is there."""
    before = den.snapshot()
    (den.workspace / "plant.py").write_text(PLANTING)
    async with hosting(den) as app:
        handle = await app.open(approvals="never")
        begun = asyncio.Event()
        command = f"exec {sys.executable} -S -u plant.py {den.outside}"
        async with asyncio.TaskGroup() as group:
            planting = call(handle, "terminal", printed=lambda _: begun.set(), command=command)
            group.create_task(planting)
            await begun.wait()
            for _ in range(PLANTS):
                await call(handle, "execute_code", code="print('written by the host')")
            (den.workspace / "over").touch()
    assert den.snapshot() == before


LEAVING = {
    "removes it": "shutil.rmtree(own)",
    "moves it away": "os.rename(own, own + '-moved')",
    "puts a link in its place": "os.rename(own, own + '-moved'); os.symlink(sys.argv[1], own)",
    "puts a file in its place": "os.rename(own, own + '-moved'); open(own, 'w').close()",
    "closes it to all": "os.mkdir(own + '/closed'); os.mkdir(own + '/closed/a'); "
    "os.chmod(own + '/closed', 0); os.chmod(own, 0)",
}


@pytest.mark.parametrize("way", LEAVING)
async def test_a_script_that_spoils_its_own_folder_spoils_nothing_else(den: Den, way: str) -> None:
    before = den.snapshot()
    code = f"import os, shutil, sys\nown = os.path.dirname(__file__)\n{LEAVING[way]}\nprint('done')"
    async with hosting(den) as app:
        handle = await app.open(approvals="never")
        assert (await execute(handle, code, str(den.outside)))["output"] == "done\n"
        assert (await execute(handle, "print('again')"))["output"] == "again\n"
    assert den.snapshot() == before


# -- another run


async def ask(path: Path, *packets: dict[str, Any] | bytes) -> list[dict[str, Any]]:
    """Say this on a connection of one's own, and hear the answers until it is closed."""
    answers: list[dict[str, Any]] = []
    reader, writer = await asyncio.open_unix_connection(path)
    for number, said in enumerate(packets, 1):
        data = said
        if isinstance(data, dict):
            data = json.dumps({"jsonrpc": "2.0", "id": number, **data}).encode()
        writer.write(struct.pack(">I", len(data)) + data)
        with contextlib.suppress(asyncio.IncompleteReadError):
            (length,) = struct.unpack(">I", await reader.readexactly(4))
            answers.append(json.loads(await reader.readexactly(length)))
    writer.close()
    await writer.wait_closed()
    return answers


STEAL = {"tool": "terminal", "arguments": {"command": "touch stolen"}}


@pytest.mark.parametrize(
    "packets",
    [
        [{"method": "call", "params": STEAL}],
        [{"method": "call", "params": {"tool": "nothing"}}],
        [{"method": "nothing", "params": {}}],
        [
            {"method": "hello", "params": {"secret": "", "version": 1}},
            {"method": "call", "params": STEAL},
        ],
        [
            {"method": "hello", "params": {"secret": "0" * 64, "version": 1}},
            {"method": "hello", "params": {"secret": "é" * 64, "version": 1}},
            {"method": "call", "params": STEAL},
        ],
        [{"method": "hello", "params": {}}, {"method": "call", "params": STEAL}],
        [b"{}"],
        [b"garbage"],
    ],
    ids=[
        "calls a tool",
        "calls no tool",
        "calls no method",
        "knows none",
        "guesses twice",
        "gives none",
        "says nothing",
        "says garbage",
    ],
)
async def test_who_does_not_know_the_secret_of_a_run_is_told_nothing(
    den: Den, packets: list[dict[str, Any] | bytes]
) -> None:
    async with hosting(den) as app:
        run = Waiting(await app.open(approvals="never"), den.workspace / "gate")
        secret = await run.secret()
        answers = await ask(run.socket, *packets)
        ended = await run.let_go()
    assert all("result" not in answer and "error" in answer for answer in answers)
    answer_text = json.dumps(answers)
    assert secret not in answer_text
    assert not [
        tested_tool.name
        for tested_tool in den.tools
        if tested_tool.name in answer_text and tested_tool.name != "terminal"
    ]
    assert "calls" not in ended, "nothing was called"
    assert not (den.workspace / "stolen").exists()


async def test_the_secret_of_one_run_opens_no_other(den: Den) -> None:
    async with hosting(den) as app:
        one = Waiting(await app.open(approvals="never"), den.workspace / "one")
        other = Waiting(await app.open(approvals="never"), den.workspace / "other")
        wrong = {"method": "hello", "params": {"secret": await one.secret(), "version": 1}}
        await other.secret()
        steal = {"method": "call", "params": STEAL}
        refused = await ask(other.socket, wrong, steal)
        accepted = await ask(one.socket, wrong)
        assert "calls" not in await one.let_go()
        assert "calls" not in await other.let_go()
    assert [reply["error"]["data"] for reply in refused] == ["ToolDeniedError"] * 2
    assert accepted[0]["result"] == {"version": 1}
    assert not (den.workspace / "stolen").exists()
