"""A model server that costs next to nothing, so that what is measured is the client.

It speaks just enough HTTP/1.1 and four wire formats to be asked by any client, and it checks
nothing. The name of the model says what it answers, and the number behind the name how much:

- `answer-5`: five tokens, in one write;
- `steps-100`: a call of the tool `add`, until there are a hundred results, then as `answer-5`;
- `pace-400`: four hundred tokens, one every 10 ms, each a write of its own;
- `stamp-200`: two hundred tokens, one every 50 ms, each the time at which it was sent;
- `flood-300`: three hundred tokens as fast as they are read, each a write of its own.

`GET` of anything tells how many CPU seconds it has used.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import resource
import signal
import sys
import time
from collections import deque
from typing import Final, cast

import uvloop
from wire_formats import FORMATS, TEXTS, WireFormat

PERIOD: Final = 0.01
SLOTS: Final = 10
"""Streams do not send at the same time: a tick serves one slot, each slot once a period."""
SHORT: Final = 5
STAMPED: Final = 5
"""Periods between two tokens of a stamped answer: a person reads no faster."""

# In the body, or in the path of one format.
_MODEL: Final = re.compile(rb'(?:"model":\s*"|/models/)(answer|steps|pace|stamp|flood)-(\d+)')
_LENGTH: Final = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)
_HEAD: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)


class Answers:
    """What is sent in one wire format, ready to be written."""

    def __init__(self, wire: WireFormat) -> None:
        self.wire = wire
        self.begin = _HEAD + wire.begin
        self.tokens = tuple(map(wire.text, TEXTS))

    def end(self, tokens: int) -> bytes:
        return self.wire.end(tokens) + b"0\r\n\r\n"

    def whole(self, tokens: int) -> bytes:
        sent = b"".join(self.tokens[number % len(self.tokens)] for number in range(tokens))
        return self.begin + sent + self.end(tokens)

    def call(self, number: int) -> bytes:
        return _HEAD + self.wire.call(number) + b"0\r\n\r\n"


_ANSWERS: Final = tuple(map(Answers, FORMATS))


def _answers_at(head: bytes) -> Answers:
    """Return what is sent for a request with this head: the path tells the format."""
    path = head.partition(b"\r\n")[0]
    return next((answers for answers in _ANSWERS if answers.wire.path in path), _ANSWERS[0])


class Streams:
    """All running answers that are sent in several writes."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._slots: tuple[set[Connection], ...] = tuple(set() for _ in range(SLOTS))
        self._began = self._loop.time()
        self._ticks = 0
        self._next_slot = 0
        self._flood: deque[Connection] = deque()
        self._is_pumping = False
        self._tick()

    def pace(self, connection: Connection) -> None:
        self._slots[self._next_slot % SLOTS].add(connection)
        self._next_slot += 1

    def flood(self, connection: Connection) -> None:
        self._flood.append(connection)
        if not self._is_pumping:
            self._is_pumping = True
            self._loop.call_soon(self._pump)

    def _tick(self) -> None:
        """Serve the slots that are due, including missed ones."""
        due = int((self._loop.time() - self._began) * SLOTS / PERIOD)
        while self._ticks < due:
            self._ticks += 1
            slot = self._slots[self._ticks % SLOTS]
            slot.difference_update(
                [connection for connection in slot if not connection.send_next()]
            )
        self._loop.call_later(PERIOD / SLOTS, self._tick)

    def _pump(self) -> None:
        """Send one token on each connection; the loop sends them before the next round."""
        for _ in range(len(self._flood)):
            connection = self._flood.popleft()
            if not connection.is_paused and connection.send_next():
                self._flood.append(connection)
        self._is_pumping = bool(self._flood)
        if self._is_pumping:
            self._loop.call_soon(self._pump)


class Connection(asyncio.Protocol):
    """One connection, with at most one running answer."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._transport: asyncio.Transport | None = None
        self._received = b""
        self._answers = _ANSWERS[0]
        self._tokens = 0
        self._sent = 0
        self._is_flood = False
        self._every = 1
        self._ticks = 0
        self.is_paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None

    def pause_writing(self) -> None:
        self.is_paused = True

    def resume_writing(self) -> None:
        self.is_paused = False
        if self._is_flood and self._sent <= self._tokens:
            self._streams.flood(self)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, mark, body = self._received.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if mark and len(body) >= (0 if length is None else int(length[1])):
            self._received = b""
            self._reply(head, body)

    def _reply(self, head: bytes, body: bytes) -> None:
        assert self._transport is not None
        model = _MODEL.search(body) or _MODEL.search(head)
        if model is None:
            used = b"%f" % time.process_time()
            self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(used))
            self._transport.write(used)
            return
        kind, number = model[1], int(model[2])
        self._answers = answers = _answers_at(head)
        if kind == b"answer":
            self._transport.write(answers.whole(number))
        elif kind == b"steps":
            results = len(answers.wire.result.findall(body))
            reply = answers.call(results) if results < number else answers.whole(SHORT)
            self._transport.write(reply)
        else:
            self._transport.write(answers.begin)
            self._tokens, self._sent = number, 0
            self._is_flood = kind == b"flood"
            self._every = STAMPED if kind == b"stamp" else 1
            (self._streams.flood if self._is_flood else self._streams.pace)(self)

    def send_next(self) -> bool:
        """Send the next token, or the end. Return False if the answer is complete."""
        if self._transport is None:
            return False
        self._ticks += 1
        if self._ticks % self._every:
            return True
        if self._sent == self._tokens:
            self._sent += 1
            self._transport.write(self._answers.end(self._tokens))
            return False
        if self._every == STAMPED:
            self._transport.write(self._answers.wire.text(f" {time.monotonic_ns()}"))
        else:
            tokens = self._answers.tokens
            self._transport.write(tokens[self._sent % len(tokens)])
        self._sent += 1
        return True


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    streams = Streams()
    server = await loop.create_server(lambda: Connection(streams), "127.0.0.1", 0, backlog=4096)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await ended.wait()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--core", type=int, default=None, help="the one core to run on")
    options = parser.parse_args()
    if options.core is not None:
        os.sched_setaffinity(0, {options.core})
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve())
    return 0


if __name__ == "__main__":
    sys.exit(main())
