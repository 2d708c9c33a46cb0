"""A relay sends the host no more than it will hold; other calls wait in the relay."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from keryx_tools._transports import host_writer, packets
from keryx_tools._transports.descriptors import OwnedDescriptor
from keryx_tools._transports.host_writer import HostWriter


class Host:
    """What a host would read."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._frames = packets.Assembler()

    def heard(self) -> list[bytes]:
        try:
            return list(self._frames.feed(os.read(self._descriptor, 1 << 16)))
        except BlockingIOError:
            return []


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[HostWriter, Host]]:
    monkeypatch.setattr(host_writer, "MOST_UNANSWERED", 10)
    incoming, outgoing = os.pipe()
    os.set_blocking(incoming, False)
    yield HostWriter(OwnedDescriptor(outgoing)), Host(incoming)
    os.close(incoming)
    os.close(outgoing)


def test_what_is_too_much_at_once_waits_for_answers(ends: tuple[HostWriter, Host]) -> None:
    link, host = ends
    for number, packet in enumerate([b"aaaa", b"bbbb", b"cccc", b"dd"], 1):
        link.call(number, packet)
    assert host.heard() == [b"aaaa", b"bbbb"], "and none overtakes another"
    link.answered(2)
    assert host.heard() == [b"cccc", b"dd"]


def test_one_call_of_any_size_goes(ends: tuple[HostWriter, Host]) -> None:
    link, host = ends
    link.call(1, b"x" * 100)
    link.call(2, b"y")
    assert host.heard() == [b"x" * 100]
    link.answered(1)
    assert host.heard() == [b"y"]


def test_a_call_that_is_given_up_while_it_waits_is_never_sent(
    ends: tuple[HostWriter, Host],
) -> None:
    link, host = ends
    link.call(1, b"a" * 10)
    link.call(2, b"b")
    link.give_up(2)
    link.give_up(1)
    assert host.heard() == [b"a" * 10, packets.cancel(1)]
    link.answered(1)
    assert host.heard() == []
