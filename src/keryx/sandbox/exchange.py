"""One call in a worker, as the host sees it: what comes by two ways, put together.

Answers come in frames on one stream, whatever the tool prints on the other; a mark among the
prints says where those of this call end.
"""

from __future__ import annotations

import asyncio
import secrets

from keryx.aio.capture import OutputSink
from keryx.errors import KeryxError
from keryx.ports.place import Exit
from keryx.sandbox.orders import Answer

End = Answer | Exit | KeryxError
"""How a call went, or how its process ended before that was told."""


class Exchange:
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
