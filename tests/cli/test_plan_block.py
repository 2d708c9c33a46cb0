"""The plan of a session at a terminal: a block when it changes, and nothing of it in JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from keryx.cli.screens.plan_block import MOST_LINES, plan_text
from keryx.ports.plan import Plan, PlanItem
from tests.cli.commands import keryx, model_server

pytestmark = pytest.mark.promise("kit.4")


def todo(**items: str) -> dict[str, Any]:
    steps = [{"text": text, "status": status} for text, status in items.items()]
    return {"calls": [{"tool": "todo", "arguments": {"items": steps}}]}


REPLIES = (
    todo(Read="doing", Write="open"),
    todo(Read="doing", Write="open"),
    todo(Read="done", Write="doing"),
    {"text": "Half of it is done."},
)


def test_a_plan_is_printed_when_it_changes(tmp_path: Path) -> None:
    with model_server(tmp_path, *REPLIES):
        result = keryx(tmp_path, "run", "Work by a plan")
    assert result.stdout.strip() == "Half of it is done."
    assert result.stderr.splitlines() == [
        *("[plan: 0 of 2 done]", "  ▶ Read", "  · Write"),
        *("[plan: 1 of 2 done]", "  ✓ Read", "  ▶ Write"),
    ]


def test_json_has_the_events_and_no_block(tmp_path: Path) -> None:
    with model_server(tmp_path, *REPLIES):
        result = keryx(tmp_path, "run", "--json", "Work by a plan")
    assert result.stderr == ""
    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert sum(event["type"] == "call.finished" for event in events) == 3


def test_a_long_plan_is_shown_around_what_is_done_now() -> None:
    items = [PlanItem(text=f"step {n}", status="done" if n < 40 else "open") for n in range(80)]
    lines = plan_text(Plan(items=tuple(items))).splitlines()
    assert lines[:4] == ["[plan: 40 of 80 done]", "  … 39 before", "  ✓ step 39", "  · step 40"]
    assert lines[-1] == f"  … {80 - 39 - MOST_LINES} more"


def test_a_terminal_does_not_obey_the_text_of_an_item() -> None:
    item = PlanItem(text="clear\x1b[2J\nthe screen\u202e", status="open")
    assert plan_text(Plan(items=(item,))).splitlines()[1:] == ["  · clear [2J the screen"]
