"""A tool whose module can be imported only in the tests' own process."""

from __future__ import annotations

import sys

from keryx.ports.effects import NO_EFFECTS
from keryx.tools.function import tool

if "pytest" not in sys.modules:
    raise RuntimeError("only in the tests")


@tool(isolation="process", effects=NO_EFFECTS)
def unloadable() -> None:
    """Cannot be loaded in a process of its own."""
