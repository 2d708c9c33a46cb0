"""One call in a worker, as the host sees it: what comes by two ways, put together.

Answers come in frames on one stream, whatever the tool prints on the other; a mark among the
prints says where those of this call end.
"""

from __future__ import annotations

import asyncio
import secrets
import signal
from typing import Final

import msgspec

from keryx.aio.capture import OutputSink
from keryx.aio.scope import Scope
from keryx.errors import KeryxError, ToolCancelledError, ToolFailedError
from keryx.messages import Json, Part
from keryx.ports.place import Exit
from keryx.ports.workers import Returned
from keryx.sandbox.worker_protocol import Answer, Wired

_decode_content: Final = msgspec.msgpack.Decoder(Wired).decode

End = Answer | Exit | KeryxError
"""How a call went, or how its process ended before that was told."""


class WorkerCall:
    """What a call prints, and how it went."""

    def __init__(self, output: OutputSink) -> None:
        # What a tool cannot print by chance.
        self.mark: bytes = b"\0" + secrets.token_hex(16).encode()
        self.over: asyncio.Future[End] = asyncio.get_running_loop().create_future()
        self._output = output
        self._held: bytes = b""  # the end of what came, if the mark may begin there
        self._marked: bool = False
        self._answer: Answer | None = None

    def printed(self, data: bytes) -> None:
        if self._marked:
            return
        data = self._held + data
        at = data.find(self.mark)
        self._marked = at >= 0
        if not self._marked:
            at = len(data) - _begun(data, self.mark)
        self._held = data[at:]
        if at:
            self._output.feed("stdout", data[:at])
        self._check_over()

    def answered(self, answer: Answer) -> None:
        self._answer = answer
        self._check_over()

    def ended(self, end: Exit | KeryxError) -> None:
        """The process is gone, and all that it printed was read."""
        if self._held and not self._marked:
            self._output.feed("stdout", self._held)
        if not self.over.done():
            self.over.set_result(self._answer or end)

    def _check_over(self) -> None:
        # They come by different ways: the call is over once both are here.
        answer = self._answer
        if answer is not None and (self._marked or not answer.marked) and not self.over.done():
            self.over.set_result(answer)


def _begun(data: bytes, mark: bytes) -> int:
    """How many bytes at the end may be the beginning of the mark."""
    at = data.rfind(mark[:1], max(0, len(data) - len(mark) + 1))
    return len(data) - at if at >= 0 and mark.startswith(data[at:]) else 0


def returned_of(end: End, scope: Scope) -> Returned:
    """What the tool returned; raises what the call failed with, or why it was cancelled."""
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
                    raise ToolFailedError("the tool's process was told to end by someone else")
    if scope.reason is not None:
        raise ToolCancelledError(scope.reason)
    assert not isinstance(end, Answer)
    raise ToolFailedError(f"the tool's process died: {_cause(end)}")


def _cause(end: Exit) -> str:
    """How it ended, in words; the warden knows if it was killed for passing a limit."""
    if end.cause:
        return end.cause
    if end.signal is None:
        return f"it ended by itself with exit code {end.code}"
    try:
        name = f" ({signal.Signals(end.signal).name})"
    except ValueError:
        name = ""
    return f"killed by signal {end.signal}{name}"
