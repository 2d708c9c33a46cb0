"""`keryx serve` in a process that records which of our files run, in which order.

SIGUSR1 begins the record and SIGUSR1 again writes it to the file that the first argument names: a
JSON list with one file name per entered function. The other arguments are those of `keryx`.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import keryx
from keryx.cli.entry import main

SOURCES = str(Path(keryx.__file__).parent)
FIRST_INSTRUCTIONS = 12
"""Bytes of code that come before the first statement of any function."""
INDEX = str(Path(SOURCES, "store", "sqlite", "index"))


class Recorder:
    """Counts every function of ours that is entered, in all threads."""

    def __init__(self, output: Path) -> None:
        self._output = output
        self._is_on = False
        self._entered: list[str] = []

    def on_event(self, frame: FrameType, kind: str, _: Any) -> None:
        if not (self._is_on and kind == "call" and frame.f_code.co_filename.startswith(SOURCES)):
            return
        # A coroutine that goes on after an await is no new step for who follows the code.
        if frame.f_lasti < FIRST_INSTRUCTIONS and not _is_beside(frame):
            self._entered.append(frame.f_code.co_filename)

    def toggle(self, *_: object) -> None:
        if self._is_on:
            files = [str(Path(name).relative_to(SOURCES)) for name in self._entered]
            part = self._output.with_suffix(".part")
            part.write_text(json.dumps(files))
            part.rename(self._output)
        self._is_on = not self._is_on


def _is_beside(frame: FrameType | None) -> bool:
    """Whether this is done for the search index, which follows every commit in its own time."""
    while frame is not None:
        if frame.f_code.co_filename.startswith(INDEX):
            return True
        frame = frame.f_back
    return False


if __name__ == "__main__":
    recorder = Recorder(Path(sys.argv[1]))
    sys.argv = ["keryx", *sys.argv[2:]]
    signal.signal(signal.SIGUSR1, recorder.toggle)
    threading.setprofile(recorder.on_event)
    sys.setprofile(recorder.on_event)
    sys.exit(main())
