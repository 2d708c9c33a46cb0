"""The file tools keep the contract of a tool, and declare what they touch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from keryx.ports.tool import Tool
from keryx.testing.contracts import ToolContract
from keryx.tools.files import file_tools

GOOD: Mapping[str, Mapping[str, Any]] = {
    "read_file": {"path": "a.txt", "start": 2},
    "write_file": {"path": "a.txt", "content": "x"},
    "patch": {"patch": "*** Add File: a.txt\n+x"},
    "search_files": {"pattern": "x", "path": "a.txt"},
    "list_files": {"path": "a.txt"},
}
TOOLS = {tool.name: tool for tool in file_tools()}


class TestFileTool(ToolContract):
    name: str

    @pytest.fixture(params=list(GOOD))
    def subject(self, request: pytest.FixtureRequest) -> Tool:
        self.name = request.param
        return TOOLS[self.name]

    def good_arguments(self) -> Mapping[str, Any]:
        return GOOD[self.name]


@pytest.mark.parametrize("name", list(GOOD))
def test_each_declares_its_path_and_whether_it_may_run_again(name: str) -> None:
    tool = TOOLS[name]
    (access,) = tool.effects(tool.parse(GOOD[name])).accesses
    is_writer = name in ("write_file", "patch")
    assert (access.kind, access.name, access.writes) == ("path", "a.txt", is_writer)
    assert tool.replay == ("never" if is_writer else "safe")


@pytest.mark.parametrize("name", ["read_file", "write_file", "search_files", "list_files"])
def test_a_path_that_cannot_be_is_not_declared(name: str) -> None:
    tool = TOOLS[name]
    assert tool.effects(tool.parse({**GOOD[name], "path": "a\0b"})).accesses == ()
