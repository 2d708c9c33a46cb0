"""A module whose import never ends, except in the tests' own process."""

from __future__ import annotations

import sys
import time

from keryx.ports.effects import NO_EFFECTS
from keryx.tools.function import tool

if "pytest" not in sys.modules:
    print("hanging")  # noqa: T201 (what a tool prints is its output)
    time.sleep(1000)


@tool(isolation="process", effects=NO_EFFECTS)
def hang_in_import() -> None:
    """Never come to this."""
