"""Escape attempts from a script: by itself, and through every nested tool that could carry them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from keryx import Keryx
from keryx import events as ev
from tests.app.scripting import Den, Waiting, call, execute, hosting, run_python
from tests.sandbox.confined_workspace import outside_world
from tests.sandbox.escape_attempts import ATTEMPTS, NEVER, script

pytestmark = pytest.mark.promise("tools.3")

# This Python may be read by every session, and its user could change this file.
READABLE = ("{readable}/file", "{readable}/pyvenv.cfg")

MORE = {
    "read the user's key": 'open(f"{outside}/.ssh/id_rsa").read()',
    "read the logs of the host": 'open(f"{outside}/keryx/keryx.db", "rb").read()',
    "read the secret of the host": 'open(f"{outside}/keryx/host.json").read()',
    "connect to the host": """
socket.socket(socket.AF_UNIX).connect(f"{outside}/keryx/host.sock")
""",
    "signal the host": 'os.kill(facts["host"], 0)',
    "look into the host": 'check(open(f"/proc/{facts[\'host\']}/environ", "rb").read())',
    "write by dots": 'open(f"{os.getcwd()}/../outside/new", "w").close()',
    "write by a symlink": """
os.symlink(f"{outside}/new", "link")
try: open("link", "w").close()
finally: os.unlink("link")
""",
    "write by a symlink to a folder": """
os.symlink(outside, "folder")
try: open("folder/new", "w").close()
finally: os.unlink("folder")
""",
    "write by a hard link": """
os.link(f"{outside}/named", "twin")
try: open("twin", "r+").close()
finally: os.unlink("twin")
""",
    "write by its own root": 'open(f"/proc/self/root{outside}/new", "w").close()',
    "write by the root of the host": """
open(f"/proc/{facts['host']}/root{outside}/new", "w").close()
""",
    "write by the root of another process": """
open(f"/proc/{victim}/root{outside}/new", "w").close()
""",
    "see the folder of another session": 'os.listdir(facts["private"])',
    "see it by its root": "check(os.listdir(f\"/proc/{facts['runner']}/root{facts['inside']}\"))",
    "read the secret of another run": """
check(b"KERYX_TOOLS_SECRET" in open(f"/proc/{facts['runner']}/environ", "rb").read())
""",
    "connect to another run": 'socket.socket(socket.AF_UNIX).connect(facts["socket"])',
}

PTRACE_SEIZE, MS_BIND = 0x4206, 4096
REFUSED = {
    "trace a process": f"check(libc.ptrace({PTRACE_SEIZE}, victim, None, None) == 0)",
    "trace the host": f"check(libc.ptrace({PTRACE_SEIZE}, facts['host'], None, None) == 0)",
    "write the memory of the host": 'open(f"/proc/{facts[\'host\']}/mem", "r+b").close()',
    "mount the outside": f"""
check(libc.mount(outside.encode(), os.getcwd().encode(), None, {MS_BIND}, None) == 0)
""",
    **NEVER,
}
"""What is not tried without walls: a machine may forbid it, or suffer from it."""

WALLED = {name: code.replace(*READABLE) for name, code in {**ATTEMPTS, **MORE}.items()}

Programs = dict[str, str]

CARRYING = """
import contextlib, io, json, runpy, shlex, subprocess, sys
import keryx_tools as tools
facts, programs = sys.argv[1], json.loads(sys.argv[2])

def argv(program):
    return [sys.executable, "-S", "-c", program, facts]

{carry}

found = []
for name, program in programs.items():
    found += json.loads(carry(program))
tools.finish(found)
"""

CARRIERS = {
    "the script itself": """
def carry(program):
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(program, {"__name__": "program"})
    return printed.getvalue()
""",
    "a process of the script": """
def carry(program):
    return subprocess.run(argv(program), stdout=subprocess.PIPE, check=True).stdout
""",
    "terminal": """
def carry(program):
    return tools.terminal(shlex.join(argv(program)))["output"]
""",
    "terminal on a pty": """
def carry(program):
    return tools.terminal(shlex.join(argv(program)), pty=True)["output"]
""",
    "terminal in the background": """
def carry(program):
    name = tools.terminal(shlex.join(argv(program)), background=True)["process"]
    tools.process("wait", name)
    return tools.process("read", name)["output"]
""",
    "process": """
def carry(program):
    name = tools.terminal("exec sh", background=True)["process"]
    tools.process("write", name, f"exec {shlex.join(argv(program))}\\n")
    tools.process("wait", name)
    return tools.process("read", name)["output"]
""",
    "a tool in a process of its own": """
def carry(program):
    return tools.run_python(program, facts)["output"]
""",
}
KEEPER = ("os.getppid()", 'facts["keeper"] or os.getppid()')
each_carrier = pytest.mark.parametrize("carrier", CARRIERS)


def program(attempts: dict[str, str]) -> str:
    return script(attempts).replace(*KEEPER)


@contextlib.asynccontextmanager
async def surroundings(den: Den, app: Keryx) -> AsyncGenerator[dict[str, Any]]:
    """Programs of the same user, this host, and a run of another session: all to be reached."""
    victim = await asyncio.create_subprocess_exec("sleep", "1000", env={**os.environ, "KEY": "x"})
    other = Waiting(await app.open(approvals="never"), den.workspace / "gate")
    try:
        await other.secret()
        with outside_world(den.outside) as facts:
            yield {
                **facts,
                "victim": victim.pid,
                "readable": sys.prefix,
                "host": os.getpid(),
                "private": str(other.private),
                "socket": str(other.socket),
                "runner": await other.pid(),
            }
    finally:
        victim.kill()
        await victim.wait()
        await other.let_go()


async def escapes(den: Den, carrier: str, programs: Programs, walls: str) -> set[str]:
    """Which attempts worked, each program in a call of its own."""
    code = CARRYING.replace("{carry}", CARRIERS[carrier])
    async with (
        hosting(den, run_python, confinement=walls) as app,
        surroundings(den, app) as facts,
    ):
        # Inside all walls the keeper is the first process, and the private folder is /tmp.
        inside = {"inside": facts["private"], "keeper": None}
        if walls == "required":
            inside = {"inside": "/tmp", "keeper": 1}
        handle = await app.open(approvals="never")
        words = (json.dumps({**facts, **inside}), json.dumps(programs))
        return set((await execute(handle, code, *words))["result"])


@each_carrier
async def test_no_attempt_gets_out(den: Den, carrier: str) -> None:
    before = den.snapshot()
    attempts = {**WALLED, **REFUSED}
    programs = {name: program({name: code}) for name, code in attempts.items()}
    assert await escapes(den, carrier, programs, "required") == set()
    assert den.snapshot() == before


@each_carrier
async def test_each_of_them_would_get_out_if_there_were_no_walls(den: Den, carrier: str) -> None:
    assert await escapes(den, carrier, {"all": program(WALLED)}, "off") == WALLED.keys()


# -- bombs


FORKING = """
import os, signal
if os.fork() == 0:
    for _ in range(9):
        try:
            os.fork()
        except OSError:
            pass
    signal.pause()
"""
BOMBS = {
    "the script itself": FORKING + "os.wait()",
    "terminal": f"""
import shlex, sys
from keryx_tools import terminal
print(terminal(shlex.join([sys.executable, "-S", "-c", {FORKING + "os.wait()"!r}])))
""",
    "a tool in a process of its own": f"""
from keryx_tools import run_python
print(run_python({FORKING + "os.wait()"!r}, ""))
""",
}


@pytest.mark.parametrize("carrier", BOMBS)
async def test_a_fork_bomb_is_ended_and_the_session_goes_on(den: Den, carrier: str) -> None:
    """As many processes as a session may have, and one more. They would wait for ever."""
    async with hosting(den, run_python) as app:
        handle = await app.open(approvals="never")
        ended = await call(handle, "execute_code", code=BOMBS[carrier], timeout=30)
        assert "more than 512 processes" in shown(ended)
        assert (await execute(handle, "print('fine')"))["output"] == "fine\n"


def shown(event: ev.Event) -> str:
    """All that anybody could see of it."""
    return ev.encode(event).decode()
