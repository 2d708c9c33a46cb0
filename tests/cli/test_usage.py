"""`keryx usage`: groups, times, CSV, JSON, and bars in a terminal of any width."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import subprocess
import time
from pathlib import Path

import pytest

from keryx import NO_EFFECTS, Keryx, ToolContext, tool
from keryx import events as ev
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply
from keryx.ports.model import ModelRequest
from tests.app.hosts import COMMAND

pytestmark = pytest.mark.promise("model.5")

USAGE = ev.Usage(input_tokens=900, output_tokens=100, cached_tokens=30, reasoning_tokens=7)


@tool(effects=NO_EFFECTS)
async def think(context: ToolContext) -> str:
    """Ask a model."""
    return await context.ask_model("extraction", "And?")


@tool(effects=NO_EFFECTS)
def break_down() -> str:
    """Fail."""
    raise ValueError("it broke")


def script(request: ModelRequest) -> ScriptedReply:
    calls = (ScriptedCall("think"), ScriptedCall("break_down"))
    is_first = bool(request.tools) and len(request.history) == 1
    return ScriptedReply(text="Hm.", calls=calls if is_first else (), usage=USAGE, cost=0.5)


async def used(home: Path) -> str:
    """A home with one turn: two steps, two calls, one request of a call."""
    model = ScriptedModel(script, name="scripted:a")
    async with Keryx(model=model, tools=[think, break_down], home=home, workspace=home) as app:
        session = await app.open()
        await (await session.send("Go")).result()
        return session.session_id


def usage(home: Path, *words: str) -> str:
    done = subprocess.run(
        [COMMAND, "usage", "--home", str(home), *words], capture_output=True, text=True, check=True
    )
    return done.stdout


def in_terminal(home: Path, columns: int, *words: str) -> list[str]:
    """The lines that a terminal of this width gets."""
    leader, follower = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "NO_COLOR": "1"}
    child = subprocess.Popen(
        [COMMAND, "usage", "--home", str(home), *words],
        stdout=follower,
        stdin=subprocess.DEVNULL,
        env=environment,
    )
    os.close(follower)
    data = b""
    try:
        while piece := os.read(leader, 65536):
            data += piece
    except OSError:
        pass  # the other side is closed
    os.close(leader)
    assert child.wait() == 0
    return data.decode().splitlines()


async def test_usage_is_grouped_by_day_model_purpose_session_and_tool(tmp_path: Path) -> None:
    session_id = await used(tmp_path)
    today = time.strftime("%Y-%m-%d")

    def groups(*words: str) -> dict[str, dict[str, object]]:
        return {group["name"]: group for group in json.loads(usage(tmp_path, "--json", *words))}

    for by, name in (("day", today), ("model", "scripted:a"), ("session", session_id)):
        (group,) = groups("--by", by).values()
        assert (group["name"], group["requests"], group["cost"]) == (name, 3, 1.5)
    for by in ("day", "session"):
        (group,) = groups("--by", by).values()
        assert (group["turns"], group["failed_turns"]) == (1, 0)
        head, row = usage(tmp_path, "--by", by).splitlines()
        assert head.split()[-3:-1] == ["turns", "failed"]
        assert row.split()[-3:-1] == ["1", "0"]
    assert "turns" not in usage(tmp_path)
    purposes = groups("--by", "purpose")
    assert {name: group["requests"] for name, group in purposes.items()} == {
        "turn": 2,
        "extraction": 1,
    }
    tools = groups("--by", "tool")
    assert {name: (group["calls"], group["failed"]) for name, group in tools.items()} == {
        "think": (1, 0),
        "break_down": (1, 1),
    }


async def test_usage_is_cut_to_days(tmp_path: Path) -> None:
    await used(tmp_path)
    today = time.strftime("%Y-%m-%d")
    assert json.loads(usage(tmp_path, "--json", "--since", today, "--until", today))
    assert json.loads(usage(tmp_path, "--json", "--until", "2020-01-01")) == []
    assert json.loads(usage(tmp_path, "--json", "--since", "2999-01-01")) == []


async def test_csv_can_be_read_and_runs_nothing_in_a_spreadsheet(tmp_path: Path) -> None:
    await used(tmp_path)
    model = ScriptedModel(
        lambda _: ScriptedReply(text="Yes.", usage=USAGE), name='=HYPERLINK("x"),"y"'
    )
    async with Keryx(model=model, home=tmp_path, workspace=tmp_path) as app:
        await (await (await app.open()).send("Go")).result()
    formula, plain = csv.DictReader(io.StringIO(usage(tmp_path, "--csv")))
    assert (plain["model"], plain["input_tokens"], plain["cost"]) == ("scripted:a", "2700", "1.5")
    assert formula["model"] == '\'=HYPERLINK("x"),"y"'
    assert formula["cost"] == "", "an unknown cost is nothing that could be added up"


async def test_a_terminal_of_any_width_gets_lines_that_fit(tmp_path: Path) -> None:
    await used(tmp_path)
    for columns, by in ((40, "session"), (60, "purpose"), (80, "tool"), (200, "day")):
        lines = in_terminal(tmp_path, columns, "--by", by)
        assert len(lines) >= 2
        assert all(len(line) < columns for line in lines), lines
        assert "\x1b" not in "".join(lines)
        if columns >= 80:
            assert "█" in "".join(lines), lines
