"""The demo, as a new user runs it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = [str(Path(sys.executable).with_name("keryx")), "demo"]


def test_the_demo_shows_all_its_acts_and_ends_well() -> None:
    result = subprocess.run(COMMAND, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout
    assert lines.count("10 of 10") == 2
    outcomes = re.findall(r"^   (.+?) {2,}(cancelled|unknown) +[\d.]+ ms$", lines, re.MULTILINE)
    assert [outcome for _, outcome in outcomes] == ["cancelled"] * 6 + ["unknown"] * 3 + [
        "cancelled"
    ]
    assert "0 of them acted after their outcome" in lines
    assert lines.count("completed    ") >= 4
    assert lines.count("✓ look") == 3
    assert lines.count("cancelled: steer") == 3
    assert "Fine: the door is closed." in lines


def stop(demo: subprocess.Popen[str], number: signal.Signals) -> tuple[int, str]:
    """Send the signal in the middle; how it ended and what it said, once all of it has ended."""
    assert demo.stdout is not None
    assert demo.stderr is not None
    for line in demo.stdout:
        if "Tools that hang in every way" in line:
            break
    else:
        pytest.fail(demo.stderr.read())
    demo.send_signal(number)
    # The pipe ends only when nobody holds it any more, children included.
    demo.stdout.read()
    said = demo.stderr.read()
    return demo.wait(), said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_when_it_is_stopped_in_the_middle(number: signal.Signals) -> None:
    with subprocess.Popen(
        COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as demo:
        try:
            code, said = stop(demo, number)
        finally:
            demo.kill()  # a demo that hangs shall fail the test, not hang it
    if number == signal.SIGINT:
        assert (code, said) == (130, "interrupted\n")
    else:
        assert code == -signal.SIGKILL


def test_a_reader_that_leaves_is_no_error() -> None:
    reading, writing = os.pipe()
    with subprocess.Popen(COMMAND, stdout=writing, stderr=subprocess.PIPE, text=True) as demo:
        os.close(writing)
        os.close(reading)
        assert demo.stderr is not None
        try:
            assert demo.stderr.read() == ""
            assert demo.wait() == 141
        finally:
            demo.kill()
