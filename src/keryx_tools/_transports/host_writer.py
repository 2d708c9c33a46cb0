"""Writes a relay's calls to the host, in order, and no more at once than the host will hold.

It knows nothing of who made the calls.
"""

from __future__ import annotations

import os

from keryx_tools._transports import packets
from keryx_tools._transports.descriptors import OwnedDescriptor

# The host ends a connection that makes it hold too many bytes. Calls beyond this limit wait here
# until answers have come; a single call of any size is always sent.
MOST_UNANSWERED = 64 * 1024 * 1024


class HostWriter:
    """Writes to one descriptor, from one thread. Blocks while the host reads slowly."""

    def __init__(self, descriptor: OwnedDescriptor) -> None:
        self._descriptor = descriptor
        self._waiting: dict[int, bytes] = {}
        self._sizes: dict[int, int] = {}
        self._unanswered = 0

    def call(self, number: int, packet: bytes) -> None:
        """Send a call, now or later; its number is larger than those before it."""
        self._waiting[number] = packet
        self._send_waiting()

    def answered(self, number: int) -> None:
        """Note that the host has answered a call."""
        self._unanswered -= self._sizes.pop(number, 0)
        self._send_waiting()

    def give_up(self, number: int) -> None:
        """Cancel a call; a call that was not sent yet is not sent at all."""
        if self._waiting.pop(number, None) is None:
            self.send(packets.cancel(number))

    def send(self, packet: bytes) -> None:
        view = memoryview(packets.frame(packet))
        while view:
            self._descriptor.check()
            view = view[os.write(self._descriptor.number, view) :]

    def _send_waiting(self) -> None:
        while self._waiting:
            number, packet = next(iter(self._waiting.items()))
            if self._unanswered and self._unanswered + len(packet) > MOST_UNANSWERED:
                return
            del self._waiting[number]
            self._sizes[number] = len(packet)
            self._unanswered += len(packet)
            self.send(packet)
