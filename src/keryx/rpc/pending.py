"""The calls that this side has made and that are not answered yet.

It knows nothing of how they are sent, and nothing of the calls of the other side.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from keryx.rpc import packets
from keryx.rpc.incoming_calls import CallError, PeerLostError

OnProgress = Callable[[bytes], None]


class _PendingCall(NamedTuple):
    answer: asyncio.Future[bytes]
    on_progress: OnProgress | None


class PendingCalls:
    """Matches answers by id, in whatever order they come."""

    def __init__(self) -> None:
        self._last = 0
        self._open: dict[int, _PendingCall] = {}

    def __len__(self) -> int:
        return len(self._open)

    @property
    def next_id(self) -> int:
        return self._last + 1

    def open(self, on_progress: OnProgress | None) -> asyncio.Future[bytes]:
        """Use the next id, and return a future for its answer."""
        self._last += 1
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._open[self._last] = _PendingCall(answer, on_progress)
        return answer

    def close(self, id_: int) -> None:
        """Forget a call: its caller has the answer, or gave it up."""
        self._open.pop(id_, None)

    def fail_all(self, error: PeerLostError) -> None:
        for pending in self._open.values():
            if not pending.answer.done():
                pending.answer.set_exception(PeerLostError(str(error)))

    def take_answer(self, id_: int, packet: packets.Packet) -> None:
        pending = self._open.get(id_)
        if pending is None or pending.answer.done():
            return  # it was given up
        if packet.error is None:
            pending.answer.set_result(packets.result_of(packet))
        else:
            fault = packet.error
            pending.answer.set_exception(CallError(fault.message, code=fault.code, name=fault.data))

    def take_progress(self, progress: packets.Progress) -> None:
        pending = self._open.get(progress.id)
        if pending is None or pending.on_progress is None:
            return
        try:
            pending.on_progress(bytes(progress.value))
        except Exception as error:  # noqa: BLE001 (the caller's own code; that caller gets the error)
            if not pending.answer.done():
                pending.answer.set_exception(error)
