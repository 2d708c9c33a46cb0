"""Real servers: what they offer, what they return, and what they ask while a call runs."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from keryx.messages import Image, Json, Text
from keryx.ports.tool import Risk
from tests.tools.mcp.mcp_session import ALL, PATIENCE, example, raw, session, until

pytestmark = pytest.mark.promise("kit.6")


async def test_a_program_is_connected_when_it_is_first_used_and_its_tools_work(
    tmp_path: Path,
) -> None:
    async with session(tmp_path, ex=example(env={"EXAMPLE": "hello"})) as mcp:
        assert mcp.server("ex").state == "idle"
        await mcp.connect()
        assert mcp.server("ex").state == "ready"
        added = await mcp.run("mcp_ex_add", a=1, b=2)
        assert (added.outcome, "3" in added.text) == ("completed", True)
        # Its environment is built from an allow-list and its own settings.
        shown = await mcp.run("mcp_ex_whoami")
        assert shown.text.split()[1:] == ["hello", "-"]
        failed = await mcp.run("mcp_ex_fail", why="because")
        assert failed.outcome == "failed"
        (pixel,) = (await mcp.run("mcp_ex_picture")).content
        assert isinstance(pixel, Image)
        assert pixel.media_type == "image/png"
        wrong = await mcp.run("mcp_ex_add", a="x")
        assert wrong.outcome == "failed"
        assert "'x' is not of type 'integer'" in wrong.text
        counted = await mcp.run("mcp_ex_count", to=3)
        assert counted.text == "counted"
        assert mcp.person.notes == [(at, 3.0, f"number {at:g}") for at in (1.0, 2.0, 3.0)]


async def test_what_a_server_says_of_a_tool_decides_its_effects_and_its_risk(
    tmp_path: Path,
) -> None:
    async with session(tmp_path, ex=example()) as mcp:
        await mcp.connect()
        tools = {tool.name: tool for tool in mcp.servers.granted(ALL)}
        levels = {
            name: tools[f"mcp_ex_{name}"].risk({}, tmp_path).level
            for name in ("add", "whoami", "wipe")
        }
        assert levels == {"add": "low", "whoami": "none", "wipe": "high"}
        risk = tools["mcp_ex_whoami"].risk({}, tmp_path)
        assert isinstance(risk, Risk)
        assert risk.changes is False
        writes = {name: tools[f"mcp_ex_{name}"].effects({}).accesses[0].writes for name in levels}
        assert writes == {"add": True, "whoami": False, "wipe": True}
        assert {tool.replay for tool in tools.values()} == {"never"}


async def test_a_script_gets_the_whole_result_as_fields(tmp_path: Path) -> None:
    code = (
        "import keryx_tools as t\n"
        "result = t.mcp_ex_add(a=20, b=22)\n"
        "print(result['structured'], t.tool_search('add numbers')['tools'][0]['name'])\n"
    )
    async with session(tmp_path, ex=example()) as mcp:
        await mcp.connect()
        outcome = await mcp.run("execute_code", code=code)
        assert outcome.outcome == "completed", outcome.text
        assert "{'total': 42} mcp_ex_add" in outcome.text


async def test_a_server_asks_the_person_of_the_call_that_runs(tmp_path: Path) -> None:
    async with session(tmp_path, ex=example()) as mcp:
        await mcp.connect()
        mcp.person.answers.extend(["Rex", "many", "7"])
        outcome = await mcp.run("mcp_ex_ask_pet")
        assert outcome.text == "Rex is 7", outcome.text
        texts = [text for text, _ in mcp.person.questions]
        assert "Which pet?" in texts[0]
        assert "number" in texts[2]  # "many" is none, so it asks again
        mcp.person.answers.append(None)
        assert (await mcp.run("mcp_ex_ask_pet")).text == "the person said: cancel"


async def test_a_server_asks_a_model_only_with_consent(tmp_path: Path) -> None:
    async with session(tmp_path, ex=example()) as mcp:
        await mcp.connect()
        mcp.person.answers.append("deny")
        refused = await mcp.run("mcp_ex_ask_model")
        assert refused.outcome == "failed"
        assert "did not allow" in refused.text
        mcp.person.answers.append("allow once")
        allowed = await mcp.run("mcp_ex_ask_model")
        assert allowed.text == "the model said: something"
        assert mcp.models.requests == [("sampling", "Say something")]


FORM = {
    "method": "elicitation/create",
    "params": {
        "message": "Sure?",
        "requestedSchema": {
            "type": "object",
            "properties": {
                "sure": {"type": "boolean"},
                "color": {"type": "string", "enum": ["red", "blue"]},
            },
        },
    },
}
SAMPLE = {
    "method": "sampling/createMessage",
    "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": "Hello"}}],
        "maxTokens": 9,
    },
}


async def test_an_old_server_asks_in_the_middle_of_a_call(tmp_path: Path) -> None:
    async with session(tmp_path, old=raw("asks")) as mcp:
        await mcp.connect()
        mcp.person.answers.extend(["yes", "green", "blue"])
        outcome = await mcp.run("mcp_old_echo", text=json.dumps(FORM))
        content = {"sure": True, "color": "blue"}
        assert json.loads(outcome.text.removeprefix("answer: ")) == {
            "action": "accept",
            "content": content,
        }
        mcp.person.answers.append("allow once")
        outcome = await mcp.run("mcp_old_echo", text=json.dumps(SAMPLE))
        assert "something" in outcome.text


async def test_if_it_is_not_clear_which_call_asks_nobody_is_asked(tmp_path: Path) -> None:
    async with session(tmp_path, old=raw("asks later")) as mcp:
        await mcp.connect()
        # Each has effects of its own, like calls of two sessions: one does not wait for the other.
        batches = [
            await mcp.start(mcp.call("mcp_old_echo", text=json.dumps(FORM))) for _ in range(2)
        ]
        async with asyncio.timeout(PATIENCE):
            outcomes = [(await batch.outcomes())[0] for batch in batches]
        assert ["decline" in outcome.text for outcome in outcomes] == [True, True]
        assert mcp.person.questions == []


async def test_a_cancelled_call_takes_its_question_with_it(tmp_path: Path) -> None:
    async with session(tmp_path, ex=example()) as mcp:
        await mcp.connect()
        call = mcp.call("mcp_ex_ask_pet")
        batch = await mcp.start(call)
        await mcp.person.until(lambda: bool(mcp.person.questions))
        batch.cancel(call.call_id, "interrupt")
        (outcome,) = await batch.outcomes()
        assert (outcome.outcome, outcome.left_over) == ("unknown", ())
        assert (await mcp.run("mcp_ex_add", a=1, b=1)).outcome == "completed"


async def test_a_killed_server_is_connected_again_with_the_next_call(tmp_path: Path) -> None:
    async with session(tmp_path, ex=example()) as mcp:
        await mcp.connect()
        first = (await mcp.run("mcp_ex_whoami")).text.split()[0]
        os.kill(int(first), signal.SIGKILL)
        await until(lambda: mcp.server("ex").state != "ready")
        assert "signal 9" in mcp.server("ex").fault
        second = (await mcp.run("mcp_ex_whoami")).text.split()[0]
        assert second != first


async def test_a_listing_is_stored_so_that_tools_are_known_before_the_server_runs(
    tmp_path: Path,
) -> None:
    async with session(tmp_path, one=raw("plain")) as mcp:
        await mcp.connect()
    async with session(tmp_path, one=raw("plain")) as mcp:
        await mcp.servers.load()
        assert [tool.name for tool in mcp.servers.granted(ALL)] == ["mcp_one_echo"]
        assert mcp.server("one").state == "idle"
        outcome = await mcp.run("mcp_one_echo", text="hi")
        assert outcome.content == (Text("echo: hi"),)
        assert mcp.server("one").state == "ready"
    # Another program may have other tools: its listing is not that of the first.
    async with session(tmp_path, one=raw("many", "2")) as mcp:
        await mcp.servers.load()
        assert mcp.servers.granted(ALL) == []


async def test_a_server_that_gets_another_tool_is_listed_again(tmp_path: Path) -> None:
    async with session(tmp_path, ex=example()) as mcp:
        await mcp.connect()
        assert (await mcp.run("mcp_ex_grow")).outcome == "completed"
        await until(lambda: "mcp_ex_grown" in {tool.name for tool in mcp.servers.granted(ALL)})
        assert (await mcp.run("mcp_ex_grown")).text == "grown"


async def test_a_grant_names_all_servers_one_server_or_one_tool(tmp_path: Path) -> None:
    async with session(tmp_path, one=raw("plain"), two=raw("many", "3")) as mcp:
        await mcp.connect()
        assert len(mcp.servers.granted(("tool_search",))) == 4
        assert [tool.name for tool in mcp.servers.granted(("mcp_one",))] == ["mcp_one_echo"]
        name = mcp.servers.granted(("mcp_two",))[1].name
        assert [tool.name for tool in mcp.servers.granted((name,))] == [name]
        assert mcp.servers.granted(("read_file",)) == []
        assert not isinstance(mcp.servers.granted(ALL)[0], Json)
