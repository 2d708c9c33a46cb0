"""The host's side of one call in a worker: it joins the answer and the printed output.

The answer comes in a frame on one stream, the tool's printed output on the other; a mark in the
output says where the output of this call ends.
"""

from __future__ import annotations

import asyncio
import secrets
import signal
from typing import Final

import msgspec

from keryx.aio.capture import OutputSink
from keryx.aio.scope import Scope
from keryx.decoding import msgpack_decoder
from keryx.errors import KeryxError, ToolCancelledError, ToolFailedError
from keryx.messages import Json, Part
from keryx.ports.place import Exit
from keryx.ports.workers import Returned
from keryx.sandbox.worker_protocol import Answer, Wired

_decode_content: Final = msgpack_decoder(Wired).decode

End = Answer | Exit | KeryxError
"""A call's answer, or how its process ended before it answered."""


class WorkerCall:
    """Collects the output and the answer of one call."""

    def __init__(self, output: OutputSink) -> None:
        # Random, so that a tool does not print it by chance.
        self.mark: bytes = b"\0" + secrets.token_hex(16).encode()
        self.end: asyncio.Future[End] = asyncio.get_running_loop().create_future()
        self._output = output
        self._possible_mark: bytes = b""  # the end of the output, if the mark may begin there
        self._marked: bool = False
        self._answer: Answer | None = None

    def printed(self, data: bytes) -> None:
        if self._marked:
            return
        data = self._possible_mark + data
        at = data.find(self.mark)
        self._marked = at >= 0
        if not self._marked:
            at = len(data) - _mark_start_length(data, self.mark)
        self._possible_mark = data[at:]
        if at:
            self._output.feed("stdout", data[:at])
        self._check_end()

    def answered(self, answer: Answer) -> None:
        self._answer = answer
        self._check_end()

    def ended(self, end: Exit | KeryxError) -> None:
        """Note that the process has ended and all its output was read."""
        if self._possible_mark and not self._marked:
            self._output.feed("stdout", self._possible_mark)
        if not self.end.done():
            self.end.set_result(self._answer or end)

    def _check_end(self) -> None:
        # Answer and mark come on different streams: the call ends once both are here.
        answer = self._answer
        if answer is not None and (self._marked or not answer.marked) and not self.end.done():
            self.end.set_result(answer)


def _mark_start_length(data: bytes, mark: bytes) -> int:
    """Return how many bytes at the end may be the beginning of the mark."""
    at = data.rfind(mark[:1], max(0, len(data) - len(mark) + 1))
    return len(data) - at if at >= 0 and mark.startswith(data[at:]) else 0


def result_of(end: End, scope: Scope) -> Returned:
    """Return what the tool returned; raise if the call failed or was cancelled."""
    if isinstance(end, KeryxError):
        raise end
    if isinstance(end, Answer):
        match end.how:
            case "returned":
                content: tuple[Part, ...] = tuple(
                    Json(msgspec.Raw(part)) if isinstance(part, bytes) else part
                    for part in _decode_content(end.content)
                )
                return Returned(content, end.complete)
            case "failed":
                raise ToolFailedError(end.error)
            case "interrupted":
                if scope.reason is None:
                    raise ToolFailedError("another program sent SIGTERM to the tool's process")
    if scope.reason is not None:
        raise ToolCancelledError(scope.reason)
    assert not isinstance(end, Answer)
    raise ToolFailedError(f"the tool's process died: {_cause(end)}")


def _cause(end: Exit) -> str:
    """Return in words how the process ended; the warden names a limit that it passed."""
    if end.cause:
        return end.cause
    if end.signal is None:
        return f"it ended by itself with exit code {end.code}"
    try:
        name = f" ({signal.Signals(end.signal).name})"
    except ValueError:
        name = ""
    return f"killed by signal {end.signal}{name}"
