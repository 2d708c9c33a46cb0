"""The public names: just these, each from where it lives, loaded when first used."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import keryx

NAMES = {
    "EXCLUSIVE": "keryx.ports.effects",
    "IN_MEMORY": "keryx.config.schema",
    "NO_EFFECTS": "keryx.ports.effects",
    "CancellationToken": "keryx.aio.scope",
    "Complete": "keryx.ports.tool",
    "Effects": "keryx.ports.effects",
    "Keryx": "keryx.app",
    "KeryxError": "keryx.errors",
    "Risk": "keryx.ports.tool",
    "ToolCancelledError": "keryx.errors",
    "ToolContext": "keryx.ports.tool_context",
    "ToolFailedError": "keryx.errors",
    "get_token": "keryx.aio.scope",
    "is_interrupted": "keryx.aio.scope",
    "reads": "keryx.ports.effects",
    "tool": "keryx.tools.function",
    "uses": "keryx.ports.effects",
    "writes": "keryx.ports.effects",
}


def test_the_public_names_are_these() -> None:
    assert set(keryx.__all__) == set(NAMES)
    assert dir(keryx) == sorted(keryx.__all__)


@pytest.mark.parametrize("name", NAMES)
def test_each_name_is_the_one_where_it_lives(name: str) -> None:
    assert getattr(keryx, name) is getattr(importlib.import_module(NAMES[name]), name)


def test_an_unknown_name_is_refused_with_those_there_are() -> None:
    with pytest.raises(AttributeError, match=r"no name 'Agent'.*tool"):
        _ = keryx.Agent


def test_importing_the_package_imports_nothing_else_of_it() -> None:
    code = "import sys, keryx; print(*(m for m in sys.modules if m.startswith('keryx')))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == ["keryx"]
