"""The documents of the tools say what the tools themselves say."""

from __future__ import annotations

import pytest
from docs import tool_pages

from keryx.tools import toolsets

pytestmark = pytest.mark.promise("kit.8")

NAMES = [tool.name for tools in tool_pages.families().values() for tool in tools]


def test_the_pages_are_what_the_tools_say_now() -> None:
    for file, text in tool_pages.pages().items():
        assert file.read_text() == text, f"{file} is not what the tools say now: run `make docs`"


def test_every_family_of_this_machine_has_a_page() -> None:
    assert {*toolsets.built_in(web=tool_pages.SETTINGS), "code"} <= {*tool_pages.families()}


@pytest.mark.parametrize("name", NAMES)
def test_every_tool_is_described_and_its_stopping_was_measured(name: str) -> None:
    pages = {file.name: text for file, text in tool_pages.pages().items()}
    assert sum(f"### `{name}`\n" in text for text in pages.values()) == 1
    long_running, how, time, outcome = tool_pages.measurements()[name]
    assert how
    assert outcome.startswith("`cancelled`")
    assert (long_running == "yes") == time.endswith(" ms")
    assert f"| `{name}` |" in pages["README.md"]
    assert f"| {long_running} | {how} | {time} | {outcome} |" in pages["README.md"]


def test_what_is_written_by_hand_stays() -> None:
    file = tool_pages.FOLDER / "agents.md"
    before, _, rest = file.read_text().partition(tool_pages.BEGIN)
    after = rest.partition(tool_pages.END)[2]
    text = tool_pages.pages()[file]
    assert text.startswith(before)
    assert text.endswith(after)
    assert "## `delegate`" in before
