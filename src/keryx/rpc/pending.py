"""The calls that one side makes, until they are answered.

It knows nothing of how they are carried, and nothing of the calls of the other side.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from keryx.rpc import packets
from keryx.rpc.incoming_calls import CallError, PeerLostError

OnProgress = Callable[[bytes], None]


class _Open(NamedTuple):
    answer: asyncio.Future[bytes]
    on_progress: OnProgress | None


class PendingCalls:
    """Matches answers by id, in whatever order they come."""

    def __init__(self) -> None:
        self._last = 0
        self._open: dict[int, _Open] = {}

    def __len__(self) -> int:
        return len(self._open)

    @property
    def next_id(self) -> int:
        return self._last + 1

    def open(self, on_progress: OnProgress | None) -> asyncio.Future[bytes]:
        """Take the next id, and await the answer to it."""
        self._last += 1
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._open[self._last] = _Open(answer, on_progress)
        return answer

    def close(self, id_: int) -> None:
        """Its caller has the answer, or gave it up."""
        self._open.pop(id_, None)

    def fail_all(self, error: PeerLostError) -> None:
        for asked in self._open.values():
            if not asked.answer.done():
                asked.answer.set_exception(PeerLostError(str(error)))

    def take_answer(self, id_: int, packet: packets.Packet) -> None:
        asked = self._open.get(id_)
        if asked is None or asked.answer.done():
            return  # it was given up
        if packet.error is None:
            asked.answer.set_result(packets.result_of(packet))
        else:
            fault = packet.error
            asked.answer.set_exception(CallError(fault.message, code=fault.code, name=fault.data))

    def take_progress(self, progress: packets.Progress) -> None:
        asked = self._open.get(progress.id)
        if asked is None or asked.on_progress is None:
            return
        try:
            asked.on_progress(bytes(progress.value))
        except Exception as error:  # noqa: BLE001 (a caller's own code; that caller hears of it)
            if not asked.answer.done():
                asked.answer.set_exception(error)
