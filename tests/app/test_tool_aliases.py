"""A tool is reached by its aliases, from everywhere, and models are told its name alone."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from keryx import NO_EFFECTS, Keryx, tool
from keryx import events as ev
from keryx.app.own_tools import load_now, names_in_use
from keryx.app.tools import Tools
from keryx.config import load
from keryx.errors import InvalidToolError
from keryx.messages import Text
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply, history_of
from keryx.ports.model import ModelRequest
from keryx.tools import toolsets
from tests.app.hosts import PATIENCE, result_of
from tests.cli.commands import COMMAND, environment, keryx
from tests.tools.media.media_server import serving
from tests.tools.media.media_session import MediaHome

pytestmark = pytest.mark.promise("kit.3")


DRAWING = '''
__all__ = ["image_gen"]

def image_gen() -> str:
    """Draw."""
    return ""
'''
COUNTING = '''
from keryx import tool

@tool(aliases=["one"])
def two() -> str:
    """Count to two."""
    return "2"

@tool
def one() -> str:
    """Count to one."""
    return "1"
'''


@tool(effects=NO_EFFECTS, aliases=["hello", "hi"])
async def greet(name: str) -> str:
    """Greet somebody."""
    return f"Hello, {name}!"


def named(name: str, *aliases: str) -> Any:
    """Return a tool of this name and with these aliases."""

    async def function() -> str:
        """Do nothing."""
        return ""

    return tool(effects=NO_EFFECTS, name=name, aliases=aliases)(function)


async def test_a_model_that_uses_an_alias_reaches_the_tool_and_is_told_its_name(
    tmp_path: Path,
) -> None:
    offered: set[str] = set()

    def script(request: ModelRequest) -> ScriptedReply:
        offered.update(spec.name for spec in request.tools)
        if len(history_of(request)) > 1:
            return ScriptedReply(text="Greeted.")
        return ScriptedReply(calls=[ScriptedCall("hello", {"name": "Iris"})])

    model = ScriptedModel(script)
    async with asyncio.timeout(PATIENCE), Keryx(model=model, home=tmp_path, tools=[greet]) as app:
        session = await app.open()
        await result_of(await session.send("Greet Iris"))
        log = await app.store.events(session.session_id)
    (ended,) = [fact for fact in log if isinstance(fact, ev.CallFinished)]
    assert (ended.tool, ended.outcome) == ("greet", "completed")
    assert ended.result == (Text("Hello, Iris!"),)
    assert offered == {"greet"}


async def test_a_script_imports_a_tool_by_its_alias(tmp_path: Path) -> None:
    async with serving() as server:
        home = MediaHome(tmp_path, server)
        result = await home.script(
            "import keryx_tools\n"
            "from keryx_tools import finish, image_gen, image_generate, tts\n"
            "from keryx_tools.aio import tts as async_tts\n"
            "assert image_gen is image_generate\n"
            "names = [image_gen('A cat')['images'][0]['path'], tts('Hear!')['path']]\n"
            "finish([*names, async_tts.__name__])\n"
        )
    assert result == ["images/image-1.png", "speech/speech-1.mp3", "text_to_speech"]


async def test_the_command_line_calls_a_tool_by_its_alias(tmp_path: Path) -> None:
    async with serving() as server:
        home = MediaHome(tmp_path, server)
        call = await asyncio.create_subprocess_exec(
            *(COMMAND, "tools", "call", "image_gen", '{"prompt": "A cat"}'),
            *("--workspace", str(home.workspace)),
            env=environment(home.home),
            stdout=subprocess.PIPE,
        )
        output, _ = await call.communicate()
    assert call.returncode == 0
    assert b"saved as images/image-1.png" in output
    listed = keryx(home.home, "tools", "list").stdout
    assert "image_generate" in listed
    assert "image_gen " not in listed


def test_an_alias_chooses_the_tool_of_a_session() -> None:
    assert Tools.of_program([greet, named("other")]).chosen(["hi"]) == ("greet",)


@pytest.mark.parametrize(
    ("tools", "problem"),
    [
        ([greet, named("hello")], "two tools are called 'hello'"),
        ([named("hello"), greet], "two tools are called 'hello'"),
        ([greet, named("other", "hi")], "two tools are called 'hi'"),
    ],
)
def test_an_alias_that_another_tool_has_is_refused(tools: list[Any], problem: str) -> None:
    with pytest.raises(InvalidToolError, match=problem):
        Tools.of_program(tools)


def test_an_alias_with_the_name_of_a_toolset_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sets = {**toolsets.built_in(), "more": [named("other", "files")]}

    def built_in(*_: Any, **__: Any) -> Any:
        return sets

    monkeypatch.setattr(toolsets, "built_in", built_in)
    with pytest.raises(InvalidToolError, match="name of a toolset"):
        Tools.built_in(load(tmp_path, {}))


@pytest.mark.parametrize("aliases", [("with space",), ("",), "hello"])
def test_an_alias_that_no_call_could_use_is_refused(aliases: Any) -> None:
    with pytest.raises(InvalidToolError, match="is not a list of names"):
        tool(aliases=aliases)(greet.__wrapped__)


def test_a_tool_of_ones_own_cannot_take_an_alias(tmp_path: Path) -> None:
    home = MediaHome(tmp_path).home
    (home / "tools").mkdir(mode=0o700)
    for file, source in (("drawing.py", DRAWING), ("counting.py", COUNTING)):
        (home / "tools" / file).write_text(source)
        (home / "tools" / file).chmod(0o600)
    tools, warnings = load_now(home, names_in_use(Tools.built_in(load(home, {"PATH": "/bin"}))))
    assert tools == {}
    counting, drawing = warnings
    assert "the name 'one' is used by the same file too" in counting
    assert "the name 'image_gen' is used by Keryx itself too" in drawing


@pytest.mark.parametrize("rule", ["tts", "text_to_speech"])
async def test_a_rule_may_name_a_tool_by_its_alias(tmp_path: Path, rule: str) -> None:
    async with serving() as server:
        home = MediaHome(tmp_path, server, more=f'[approvals]\ndeny = ["{rule}"]')
        for name in ("tts", "text_to_speech"):
            ended = await home.call(name, text="Hear!")
            assert (ended.outcome, ended.event.tool) == ("denied", "text_to_speech")
        assert server.received == []


async def test_a_child_agent_gets_a_tool_by_its_alias(tmp_path: Path) -> None:
    offered: list[set[str]] = []

    def script(request: ModelRequest) -> ScriptedReply:
        offered.append({spec.name for spec in request.tools})
        if len(offered) > 1:
            return ScriptedReply(text="Done.")
        tasks = [{"task": "Draw", "tools": ["image_gen"]}]
        return ScriptedReply(calls=[ScriptedCall("delegate", {"tasks": tasks})])

    home = MediaHome(tmp_path)
    async with (
        asyncio.timeout(PATIENCE),
        Keryx(model=ScriptedModel(script), home=home.home, workspace=home.workspace) as app,
    ):
        session = await app.open()
        await result_of(await session.send("Let somebody draw"))
    assert offered[1] == {"image_generate"}, json.dumps([*map(sorted, offered)])
