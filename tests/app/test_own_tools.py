"""Tools that a person wrote: files in the home, and entry points of packages."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Final

import pytest

from keryx import NO_EFFECTS, Keryx, tool
from keryx import events as ev
from keryx.app import SessionHandle, own_tools
from keryx.errors import UserMustActError
from keryx.messages import UserMessage
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply, history_of
from keryx.ports.model import ModelRequest
from tests.app.hosts import PATIENCE, closing, first, result_of
from tests.cli.commands import COMMAND, environment, keryx
from tests.server.served_host import served_host

pytestmark = pytest.mark.promise("kit.7")

GREET: Final = '''
from keryx import tool

@tool
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Hello, {name}!"
'''
ADD: Final = '''
__all__ = ["add"]

def add(a: int, b: int) -> int:
    """Add two numbers."""
    return _sum(a, b)

def _sum(a: int, b: int) -> int:
    return a + b
'''


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    (folder / "tools").mkdir(parents=True, mode=0o700)
    return folder


def write(home: Path, name: str, text: str) -> Path:
    path = home / "tools" / name
    path.write_text(text)
    path.chmod(0o600)
    return path


def calling(name: str, arguments: dict[str, object]) -> ScriptedModel:
    """Calls that tool in every turn, if it is offered."""

    def reply(request: ModelRequest) -> ScriptedReply:
        offered = {schema.name for schema in request.tools}
        if isinstance(history_of(request)[-1], UserMessage) and name in offered:
            return ScriptedReply(text="", calls=[ScriptedCall(name, arguments)])
        return ScriptedReply(text="Done.")

    return ScriptedModel(reply)


async def results(session: SessionHandle) -> list[str]:
    """The results of all calls of one more turn."""
    result = await result_of(await session.send("go"))
    assert result.outcome == "completed"
    return [ev.encode(call).decode() for call in result.calls]


async def warnings(app: Keryx, session: SessionHandle) -> str:
    """The warnings of the session's last turn."""
    log = await app.store.events(session.session_id)
    return "\n".join([event for event in log if isinstance(event, ev.TurnStarted)][-1].warnings)


async def test_a_file_in_the_home_is_a_tool_and_a_change_holds_from_the_next_turn(
    home: Path,
) -> None:
    write(home, "greet.py", GREET)
    model = calling("greet", {"name": "Ada"})
    async with Keryx(model=model, home=home, workspace=home.parent) as app:
        session = await app.open()
        (result,) = await results(session)
        assert "Hello, Ada!" in result
        write(home, "greet.py", GREET.replace("Hello", "Welcome"))
        (result,) = await results(session)
        assert "Welcome, Ada!" in result
        assert await warnings(app, session) == ""
        (home / "tools" / "greet.py").unlink()
        assert await results(session) == []
        write(home, "greet.py", GREET)
        (result,) = await results(session)
        assert "Hello, Ada!" in result


async def test_a_new_session_has_new_tools_by_name_and_as_the_set_own(home: Path) -> None:
    async with Keryx(model=calling("add", {"a": 2, "b": 3}), home=home, workspace=home) as app:
        with pytest.raises(UserMustActError, match="no tool or toolset 'own'"):
            await app.open(tools=["own"])
        write(home, "plain.py", ADD)
        for names in (["own"], ["add"], None):
            (result,) = await results(await app.open(tools=names))
            assert '"value":5' in result
        assert await results(await app.open(tools=["read_file"])) == []


BROKEN: Final = (
    ("import keryx\n\nraise ValueError('no luck')", "ValueError in line 3: no luck"),
    ("def (", "SyntaxError: invalid syntax"),
    ("raise SystemExit(3)", "SystemExit in line 1: 3"),
    ("raise KeyboardInterrupt", "KeyboardInterrupt in line 1"),
    ("import asyncio\nraise asyncio.CancelledError", "CancelledError in line 2"),
    ("import not_installed_anywhere", "ModuleNotFoundError in line 1"),
    ("__all__ = ['gone']", "AttributeError"),
    ("__all__ = 3", "TypeError"),
    ("__all__ = ['x']\nx = 3", "x is 3, which is not a tool"),
    ("from keryx.tools.clarify import clarify", "it has no tools; write @tool"),
    (GREET.replace('"""Greet somebody."""', ""), "it has no description"),
    (GREET.replace("@tool", "@tool(isolation='process')"), 'isolation="process"'),
    ("\0", "null bytes"),
)


@pytest.mark.parametrize(("text", "fault"), BROKEN)
@pytest.mark.promise("kit.12")
async def test_a_broken_file_is_reported_and_the_rest_works(
    home: Path, text: str, fault: str
) -> None:
    broken = write(home, "broken.py", text)
    write(home, "plain.py", ADD)
    model = calling("add", {"a": 2, "b": 3})
    async with Keryx(model=model, home=home, workspace=home.parent) as app:
        session = await app.open()
        assert len(await results(session)) == 1
        (line,) = (await warnings(app, session)).splitlines()
        assert line.startswith(f"{broken}: ")
        assert fault in line
        assert line.endswith("correct it, its tools are left out")
        write(home, "broken.py", GREET)
        assert len(await results(session)) == 1
        assert await warnings(app, session) == ""


@pytest.mark.promise("kit.12")
async def test_an_import_that_never_ends_is_reported_and_the_rest_works(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_tools, "LONGEST_LOAD", 0.3)
    pipe = home / "pipe"
    os.mkfifo(pipe)
    write(home, "hanging.py", f"with open({str(pipe)!r}) as file: file.read()")
    write(home, "plain.py", ADD)
    try:
        async with Keryx(model=calling("add", {"a": 2, "b": 3}), home=home, workspace=home) as app:
            session = await app.open()
            assert len(await results(session)) == 1
            assert "the import has not ended" in await warnings(app, session)
    finally:
        # The thread that waits ends.
        os.close(os.open(pipe, os.O_RDWR | os.O_NONBLOCK))


async def test_two_tools_of_one_name_are_an_error_that_names_both(home: Path) -> None:
    first = write(home, "a.py", ADD)
    second = write(home, "b.py", ADD)
    own = write(home, "c.py", GREET.replace("greet", "read_file"))
    own_set = write(home, "d.py", GREET.replace("greet", "own"))
    other = GREET.replace("@tool", "@tool(name='greet')").replace("def greet", "def other")
    twice = write(home, "e.py", GREET + other)
    async with Keryx(model=calling("add", {"a": 2, "b": 3}), home=home, workspace=home) as app:
        session = await app.open()
        assert len(await results(session)) == 1
        lines = (await warnings(app, session)).splitlines()
    advice = "rename the tool; correct it, its tools are left out"
    assert lines == [
        f"{second}: the name 'add' is used by {first} too; {advice}",
        f"{own}: the name 'read_file' is used by Keryx itself too; {advice}",
        f"{own_set}: the name 'own' is used by Keryx itself too; {advice}",
        f"{twice}: the name 'greet' is used by the same file too; {advice}",
    ]


async def test_code_that_others_could_change_is_not_loaded(home: Path) -> None:
    path = write(home, "greet.py", GREET)
    path.chmod(0o606)
    linked = home / "tools" / "linked.py"
    (home / "elsewhere.py").write_text(ADD)
    linked.symlink_to(home / "elsewhere.py")
    async with Keryx(
        model=calling("greet", {"name": "Ada"}), home=home, workspace=home.parent
    ) as app:
        session = await app.open()
        assert await results(session) == []
        greet, link = (await warnings(app, session)).splitlines()
        assert f"{path}: can be changed by other users; run `chmod go-w {path}`" in greet
        assert f"{linked}: it is a link" in link
        linked.unlink()
        path.chmod(0o600)
        session = await app.open()
        assert len(await results(session)) == 1
        path.parent.chmod(0o777)
        assert await results(session) == []
        assert f"run `chmod go-w {path.parent}`" in await warnings(app, session)


async def test_a_pipe_in_the_folder_holds_up_no_turn(home: Path) -> None:
    os.mkfifo(home / "tools" / "pipe.py", 0o600)
    async with Keryx(model=calling("add", {}), home=home, workspace=home) as app:
        session = await app.open()
        assert await results(session) == []
        assert "pipe.py: it is not a file" in await warnings(app, session)


async def test_an_entry_point_is_a_tool_a_list_of_tools_or_a_function(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "site" / "kit_of_a_test-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: kit-of-a-test\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[keryx.tools]\nbroken = kit_of_a_test:gone\nfunction = kit_of_a_test:add\n"
        "list = kit_of_a_test:both\n"
    )
    (tmp_path / "site" / "kit_of_a_test.py").write_text(
        GREET + ADD + "both = [greet, tool(name='sum_up')(add)]\n"
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *sys.path])
    clash = write(home, "greet.py", GREET)
    async with Keryx(model=calling("sum_up", {"a": 2, "b": 3}), home=home, workspace=home) as app:
        session = await app.open(tools=["add", "greet", "sum_up"])
        (result,) = await results(session)
        assert '"value":5' in result
        broken, named = (await warnings(app, session)).splitlines()
    assert broken.startswith("the entry point 'broken' of kit-of-a-test: AttributeError")
    point = "the entry point 'list' of kit-of-a-test"
    assert named.startswith(f"{clash}: the name 'greet' is used by {point} too")


async def test_a_program_with_its_own_tools_does_not_execute_the_files(home: Path) -> None:
    write(home, "trap.py", f"open({str(home / 'executed')!r}, 'w')")

    @tool(effects=NO_EFFECTS)
    async def one() -> int:
        """Return one."""
        return 1

    async with Keryx(model=calling("one", {}), tools=[one], home=home, workspace=home) as app:
        session = await app.open()
        assert len(await results(session)) == 1
        assert await warnings(app, session) == ""
        await results(await app.open(tools=[]))
    assert not (home / "executed").exists()


WAIT: Final = """
import asyncio
from pathlib import Path
from keryx import tool

READY = Path(FILE).exists()

@tool(replay="safe")
async def wait() -> str:
    \"\"\"Wait for a file.\"\"\"
    if not READY:
        await asyncio.Event().wait()
    return "It is there."
"""


async def test_a_turn_that_the_next_host_resumes_finds_its_tools(home: Path) -> None:
    def reply(request: ModelRequest) -> ScriptedReply:
        offered = {schema.name for schema in request.tools}
        if "wait" not in offered or "It is there." in str(history_of(request)[-1]):
            return ScriptedReply(text="Done.")
        return ScriptedReply(text="", calls=[ScriptedCall("wait", {})])

    go = home / "go"
    write(home, "wait.py", WAIT.replace("FILE", repr(str(go))))
    async with Keryx(model=ScriptedModel(reply), home=home, workspace=home.parent) as app:
        session = await app.open()
        await first(await session.send("go"), ev.CallStarted)
    go.touch()
    outcomes = list[str]()
    async with Keryx(model=ScriptedModel(reply), home=home, workspace=home.parent) as app:
        events = (await app.open(session.session_id)).events()
        async with asyncio.timeout(PATIENCE), closing(events) as stream:
            async for event in stream:
                if isinstance(event, ev.CallFinished):
                    outcomes.append(event.outcome)
                if isinstance(event, ev.TurnFinished):
                    break
    assert outcomes == ["cancelled", "completed"]


BARE: Final = """
from keryx import NO_EFFECTS
from keryx.ports.tool import Risk

class Bare:
    name, description, parameters = "bare", "", {"type": "object"}
    isolation, replay, container, timeout = "loop", "never", False, None

    def parse(self, arguments): return {}
    def effects(self, args): return NO_EFFECTS
    def risk(self, args, workspace): return Risk("none")
    def preview(self, args): return ""
    async def invoke(self, args, context): return "done"

bare = Bare()
"""


def test_a_tool_without_a_description_is_listed(home: Path) -> None:
    write(home, "bare.py", BARE)
    write(home, "cancelled.py", "import asyncio\nraise asyncio.CancelledError")
    listed = keryx(home, "tools", "list")
    assert listed.returncode == 0, listed.stderr
    assert "own\n  bare\n" in listed.stdout
    assert "cancelled.py: CancelledError" in listed.stderr


def test_the_command_lists_calls_and_runs_them(home: Path) -> None:
    write(home, "greet.py", GREET)
    write(home, "broken.py", "def (")
    listed = keryx(home, "tools", "list")
    assert "own\n  greet          Greet somebody." in listed.stdout
    assert "broken.py: SyntaxError" in listed.stderr
    called = keryx(home, "tools", "call", "greet", '{"name": "Ada"}')
    assert called.stdout == "Hello, Ada!\n"
    ran = keryx(home, "run", "--model", "scripted:demo", "Hi")
    assert ran.returncode == 0
    assert "broken.py: SyntaxError" in ran.stderr


async def test_a_host_with_tools_of_its_program_has_the_own_ones_for_others(home: Path) -> None:
    write(home, "greet.py", GREET)

    @tool(effects=NO_EFFECTS)
    async def one() -> int:
        """Return one."""
        return 1

    async with Keryx(model=calling("one", {}), tools=[one], home=home, workspace=home) as app:
        words = ("tools", "call", "greet", '{"name": "Ada"}')
        process = await asyncio.create_subprocess_exec(
            COMMAND, *words, env=environment(home), stdout=asyncio.subprocess.PIPE
        )
        output, _ = await process.communicate()
        assert output == b"Hello, Ada!\n"
        assert len(await results(await app.open())) == 1


async def test_the_server_lists_them_and_a_session_may_choose_them(tmp_path: Path) -> None:
    model = calling("greet", {"name": "Ada"})
    async with served_host(tmp_path, model=model) as here:
        before = await here.client.open()
        (here.home / "tools").mkdir(mode=0o700)
        write(here.home, "greet.py", GREET)
        tools = await here.client.get("/api/tools")
        assert "own" in tools["toolsets"]
        assert [row["name"] for row in tools["tools"] if row["toolset"] == "own"] == ["greet"]
        body = {"tools": ["own"]}
        changed = await here.client.ask("PATCH", f"/api/sessions/{before}", json=body)
        assert changed.status == 200
        for session_id in (before, await here.client.open(**body)):
            (result,) = await results(await here.app.open(session_id))
            assert "Hello, Ada!" in result
