"""Servers that are dead, that lie, or that hang: others work, and calls say what happened."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from keryx.aio.clock import FakeClock
from keryx.engine.tool_context.call_context import LONGEST_NOTE
from keryx.messages import Reason
from keryx.tools.mcp.search import tool_search
from keryx.tools.mcp.settings import ServerSettings, parse_servers, read_servers
from keryx.tools.mcp.wire import stdio
from tests.tools.mcp.mcp_session import ALL, PATIENCE, raw, session, until

pytestmark = pytest.mark.promise("kit.6")

REASONS: tuple[Reason, ...] = ("interrupt", "steer", "timeout", "shutdown", "parent")


@pytest.mark.parametrize("behaviour", ["hangs", "stops reading"])
@pytest.mark.parametrize("reason", REASONS)
async def test_a_hanging_call_gives_control_back_at_once(
    tmp_path: Path, behaviour: str, reason: Reason
) -> None:
    marker = tmp_path / "told"
    async with session(tmp_path, one=raw(behaviour, str(marker))) as mcp:
        await mcp.connect()
        call = mcp.call("mcp_one_echo", text="x")
        batch = await mcp.start(call)
        await mcp.person.until(lambda: any(note == "hanging" for _, _, note in mcp.person.notes))
        batch.cancel(call.call_id, reason, by="tester")
        (outcome,) = await batch.outcomes()
        assert (outcome.outcome, outcome.reason) == ("unknown", reason), "servers do not say"
        assert "was told to stop" in outcome.text
        assert outcome.left_over == ()
        if behaviour == "hangs":  # it is told; one that reads nothing cannot be
            await until(lambda: mcp.runtime.bridge.to_thread(marker.exists))


@pytest.mark.promise("kit.12")
async def test_a_server_that_dies_in_a_call_is_named_with_its_last_words(tmp_path: Path) -> None:
    async with session(tmp_path, one=raw("dies"), two=raw("plain")) as mcp:
        await mcp.connect()
        outcome = await mcp.run("mcp_one_echo", text="x")
        assert outcome.outcome == "failed"
        assert "exit code 3" in outcome.text
        assert "my last words" in outcome.text
        assert "check that before you call it again" in outcome.text
        assert (await mcp.run("mcp_two_echo", text="y")).text == "echo: y"


async def test_a_broken_server_is_tried_again_after_a_delay_that_grows(tmp_path: Path) -> None:
    clock = FakeClock()
    async with session(tmp_path, clock, one=raw("dies")) as mcp:
        await mcp.connect()
        assert "exit code 3" in (await mcp.run("mcp_one_echo", text="x")).text
        # The first failure may be chance: it is started again at once.
        assert "exit code 3" in (await mcp.run("mcp_one_echo", text="x")).text
        refused = await mcp.run("mcp_one_echo", text="x")
        assert refused.outcome == "failed"
        assert "tried again in 1 s" in refused.text
        clock.advance(1)
        assert "exit code 3" in (await mcp.run("mcp_one_echo", text="x")).text
        assert "tried again in 2 s" in (await mcp.run("mcp_one_echo", text="x")).text


@pytest.mark.promise("kit.12")
async def test_a_server_that_cannot_start_is_missing_and_the_model_is_told(tmp_path: Path) -> None:
    servers = {"gone": ServerSettings(command="/nonexistent"), "dead": raw("dies at once")}
    async with session(tmp_path, **servers, fine=raw("plain")) as mcp:
        async with asyncio.timeout(PATIENCE):
            notes = await mcp.servers.prepare(ALL)
        while any(server.state == "connecting" for server in mcp.servers.servers):
            await mcp.connect()
        notes = await mcp.servers.prepare(ALL)
        assert "gone: cannot start '/nonexistent'" in notes.text
        assert "dead: its program ended (exit code 7); it wrote: I cannot start" in notes.text
        assert "fine" not in notes.text
        assert len(notes.warnings) == 2
        assert [tool.name for tool in mcp.servers.granted(ALL)] == ["mcp_fine_echo"]


async def test_what_is_no_message_is_skipped(tmp_path: Path) -> None:
    async with session(tmp_path, one=raw("garbage")) as mcp:
        await mcp.connect()
        assert (await mcp.run("mcp_one_echo", text="x")).text == "echo: x"


async def test_answers_to_questions_that_nobody_asked_are_dropped(tmp_path: Path) -> None:
    async with session(tmp_path, one=raw("wrong ids")) as mcp:
        await mcp.connect()
        for number in range(3):
            assert (await mcp.run("mcp_one_echo", text=str(number))).text == f"echo: {number}"


@pytest.mark.parametrize(
    ("behaviour", "fault"),
    [
        ("huge line", "a line of more than"),
        ("only garbage", "lines that are no MCP messages"),
        ("wrong result", "cannot be used"),
    ],
)
@pytest.mark.promise("kit.12")
async def test_a_server_that_lies_fails_its_call(
    tmp_path: Path, behaviour: str, fault: str
) -> None:
    async with session(tmp_path, one=raw(behaviour)) as mcp:
        await mcp.connect()
        outcome = await mcp.run("mcp_one_echo", text="x")
        assert outcome.outcome == "failed"
        assert fault in outcome.text


async def test_a_flood_of_changes_is_one_listing_at_a_time(tmp_path: Path) -> None:
    async with session(tmp_path, one=raw("always changes")) as mcp:
        await mcp.connect()
        (first,) = mcp.servers.granted(ALL)
        assert first.description == "[one] Listed 1 times."
        # The server reads nothing while it sends 500 changes. One listing is under way then.
        await mcp.run("mcp_one_echo", text="x")
        await until(lambda: mcp.servers.granted(ALL) != [first])
        await mcp.run("mcp_one_echo", text="x")
        (last,) = mcp.servers.granted(ALL)
        assert int(last.description.split()[2]) <= 5


@pytest.mark.parametrize(
    "properties",
    [
        {"a": {"type": "string", "enum": [str(number) for number in range(10_000)]}},
        {"a": {"type": "string", "oneOf": [{"const": "x" * 100_000}]}},
        {str(number): {"type": "string"} for number in range(1_000)},
    ],
    ids=["many choices", "a long choice", "many fields"],
)
async def test_a_form_that_nobody_can_fill_in_is_declined(
    tmp_path: Path, properties: dict[str, object]
) -> None:
    schema = {"type": "object", "properties": properties}
    params = {"message": "Choose.", "requestedSchema": schema}
    question = json.dumps({"method": "elicitation/create", "params": params})
    async with session(tmp_path, one=raw("asks")) as mcp:
        await mcp.connect()
        assert '"decline"' in (await mcp.run("mcp_one_echo", text=question)).text
        assert mcp.person.questions == []


async def test_a_long_note_about_the_progress_is_cut(tmp_path: Path) -> None:
    async with session(tmp_path, one=raw("long note")) as mcp:
        await mcp.connect()
        await mcp.run("mcp_one_echo", text="x")
        await mcp.person.until(lambda: bool(mcp.person.notes))
        (note,) = [note for _, _, note in mcp.person.notes]
        assert 0 < len(note) <= LONGEST_NOTE


async def test_a_server_that_reads_nothing_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdio, "WRITE_PATIENCE", 0.2)
    async with session(tmp_path, one=raw("stops reading")) as mcp:
        await mcp.connect()
        first = await mcp.start(mcp.call("mcp_one_echo", text="x"))
        await mcp.person.until(lambda: bool(mcp.person.notes))
        second = await mcp.start(mcp.call("mcp_one_echo", text="y" * 2_000_000))
        async with asyncio.timeout(PATIENCE):
            outcomes = [*await first.outcomes(), *await second.outcomes()]
        assert {outcome.outcome for outcome in outcomes} == {"failed"}
        assert "it has read nothing" in outcomes[1].text


@pytest.mark.promise("kit.12")
async def test_invalid_schemas_are_reported_and_the_other_tools_work(tmp_path: Path) -> None:
    async with session(tmp_path, one=raw("bad schemas")) as mcp:
        await mcp.connect()
        assert [tool.name for tool in mcp.servers.granted(ALL)] == ["mcp_one_good"]
        problems = (await mcp.servers.prepare(ALL)).warnings
        assert len(problems) == 5
        assert all("left out" in problem for problem in problems)
        assert (await mcp.run("mcp_one_good", text="x")).text == "echo: x"


@pytest.mark.promise("kit.12")
async def test_a_schema_that_takes_ages_to_check_holds_up_nobody(tmp_path: Path) -> None:
    async with session(tmp_path, one=raw("doubled references")) as mcp:
        await mcp.connect()
        assert (await mcp.run("mcp_one_echo", text="x")).text == "echo: x"


@pytest.mark.promise("kit.12")
async def test_a_pattern_for_results_that_never_ends_holds_up_nobody(tmp_path: Path) -> None:
    async with session(tmp_path, one=raw("endless pattern"), two=raw("other structure")) as mcp:
        await mcp.connect()
        assert (await mcp.run("mcp_one_echo", text="a" * 60 + "!")).outcome == "completed"
        outcome = await mcp.run("mcp_two_echo", text="x")
        assert outcome.outcome == "failed"
        assert "echo returned what it does not promise" in outcome.text


async def test_two_tools_of_one_name_are_told_apart_or_reported(tmp_path: Path) -> None:
    async with session(tmp_path, one=raw("same names")) as mcp:
        await mcp.connect()
        names = [tool.name for tool in mcp.servers.granted(ALL)]
        assert names[0] == "mcp_one_a_b"
        assert len(names) == 2
        assert len(names[1]) == 64
        (problem,) = mcp.server("one").problems
        assert "'a/b' is left out" in problem


@pytest.mark.promise("kit.12")
async def test_a_server_that_never_answers_does_not_hold_a_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keryx.tools.mcp.servers.LISTING_PATIENCE", 0.1)
    async with session(tmp_path, one=raw("never initializes")) as mcp:
        async with asyncio.timeout(PATIENCE):
            notes = await mcp.servers.prepare(ALL)
        assert "one: it is still starting" in notes.text
        assert mcp.server("one").state == "connecting"


async def test_searching_loads_the_tools_that_match(tmp_path: Path) -> None:
    async with session(tmp_path, big=raw("many", "100")) as mcp:
        await mcp.connect()
        outcome = await mcp.run("tool_search", query="create invoices", limit=4)
        assert outcome.outcome == "completed"
        assert all("create_invoice" in name for name in mcp.loaded)
        assert len(mcp.loaded) == 4
        nothing = await mcp.run("tool_search", query="zebra")
        assert "none of the 100 tools" in nothing.text
        assert tool_search.name not in mcp.loaded


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"command": "x", "url": "http://h/"}, "either `command`"),
        ({}, "either `command`"),
        ({"url": "ftp://h/"}, "http:// or https://"),
        ({"command": "x", "argz": []}, 'did you mean "args"?'),
        ({"command": "x", "timeout": -1}, "timeout"),
        ({"command": "x", "env": {"A": "${NOT_SET}"}}, "NOT_SET is not set"),
        ({"url": "http://h/", "type": "sse"}, "outdated"),
        ("text", "must be an object"),
    ],
)
def test_a_wrong_entry_is_reported_and_the_others_work(entry: object, problem: str) -> None:
    servers = parse_servers({"bad": entry, "good": {"command": "x"}}, "mcp.json", {})
    assert list(servers.servers) == ["good"]
    (text,) = servers.problems
    assert problem in text
    assert "'bad'" in text


def test_the_common_form_is_read_with_what_other_programs_write_into_it(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    assert read_servers(path, {}).servers == {}
    path.write_text(
        '{"mcpServers": {"a": {"type": "stdio", "command": "${HOME}/a", "disabled": true},'
        '"b": {"type": "http", "url": "https://h/${PATH_OF:-mcp}", "headers": {"X-Key": "k"}}}}'
    )
    servers = read_servers(path, {"HOME": "/h"})
    assert servers.problems == ()
    assert servers.servers["a"].command == "/h/a"
    assert servers.servers["a"].enabled is False
    assert servers.servers["b"].url == "https://h/mcp"
    for text in ("", "[]", '{"mcpServers": []}', "{" * 5000, '{"mcpServers": {"": {}}}'):
        path.write_text(text)
        assert read_servers(path, {}).problems
