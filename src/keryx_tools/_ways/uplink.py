"""What a relay writes to the host: calls, in order, and no more of them than the host will hold.

It refuses to know who made the calls.
"""

from __future__ import annotations

import os

from keryx_tools._ways import packets
from keryx_tools._ways.descriptors import Held

# The host ends a connection that makes it hold too much. What would be more than this waits here,
# until answers have come; one call, of whatever size, always goes.
MOST_UNANSWERED = 64 * 1024 * 1024


class Uplink:
    """One descriptor, written to by one thread. Blocks while the host does not keep up."""

    def __init__(self, held: Held) -> None:
        self._held = held
        self._waiting: dict[int, bytes] = {}
        self._sizes: dict[int, int] = {}
        self._unanswered = 0

    def call(self, number: int, packet: bytes) -> None:
        """Pass on a call; its number is larger than those before it."""
        self._waiting[number] = packet
        self._send_waiting()

    def answered(self, number: int) -> None:
        """The host is done with it."""
        self._unanswered -= self._sizes.pop(number, 0)
        self._send_waiting()

    def give_up(self, number: int) -> None:
        """Nobody waits for its answer; one that was not sent yet is not sent at all."""
        if self._waiting.pop(number, None) is None:
            self.send(packets.cancel(number))

    def send(self, packet: bytes) -> None:
        view = memoryview(packets.frame(packet))
        while view:
            self._held.check()
            view = view[os.write(self._held.number, view) :]

    def _send_waiting(self) -> None:
        while self._waiting:
            number, packet = next(iter(self._waiting.items()))
            if self._unanswered and self._unanswered + len(packet) > MOST_UNANSWERED:
                return
            del self._waiting[number]
            self._sizes[number] = len(packet)
            self._unanswered += len(packet)
            self.send(packet)
