"""Output that may be endless, in bounded memory: head and tail kept, the middle counted."""

from __future__ import annotations

from typing import Protocol


class OutputSink(Protocol):
    """Takes the output of a process or a tool as it comes."""

    def feed(self, stream: str, data: bytes) -> None: ...
