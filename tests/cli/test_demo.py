"""The demo, as a new user runs it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path


def test_the_demo_shows_all_three_acts_and_ends_well() -> None:
    command = [str(Path(sys.executable).with_name("keryx")), "demo"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout
    assert lines.count("10 of 10") == 2
    outcomes = re.findall(r"^   (.+?) {2,}(cancelled|unknown) +[\d.]+ ms$", lines, re.MULTILINE)
    assert [outcome for _, outcome in outcomes] == ["cancelled"] * 6 + ["unknown"] * 3 + [
        "cancelled"
    ]
    assert "0 of them acted after their outcome" in lines
    assert lines.count("completed    ") >= 4
