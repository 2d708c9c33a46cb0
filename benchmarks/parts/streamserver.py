"""A model server that costs next to nothing, so that what is measured is the client.

It speaks just enough HTTP/1.1 and Chat Completions to be asked by any client, and it checks
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
from collections.abc import Mapping
from typing import Final, cast

import msgspec
import uvloop

PERIOD: Final = 0.01
SLOTS: Final = 10
"""Streams do not send at the same time: a tick serves one slot, each slot once a period."""
TEXTS: Final = (" arma", " viru", " cano", " Troi", " qui ", " prim", " ab o", " ris ")
"""All of one length, so that the number of characters gives the number of tokens."""
SHORT: Final = 5
STAMPED: Final = 5
"""Periods between two tokens of a stamped answer: a person reads no faster."""

_MODEL: Final = re.compile(rb'"model":\s*"(answer|steps|pace|stamp|flood)-(\d+)"')
_LENGTH: Final = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)
_RESULT: Final = re.compile(rb'"role":\s*"tool"')
_HEAD: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)


def _event(data: bytes) -> bytes:
    """One server-sent event as one chunk of HTTP."""
    event = b"data: %b\n\n" % data
    return b"%x\r\n%b\r\n" % (len(event), event)


def _chunk(delta: Mapping[str, object], finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return _event(msgspec.json.encode(_part(choices=[choice], usage=None)))


def _part(**fields: object) -> dict[str, object]:
    return {
        "id": "chatcmpl-0123456789abcdefghijklmnopqrs",
        "object": "chat.completion.chunk",
        "created": 1_760_000_000,
        "model": "test-model",
        "service_tier": "default",
        "system_fingerprint": "fp_0123456789",
        **fields,
    }


def _end(finish_reason: str, tokens: int) -> bytes:
    usage = {"prompt_tokens": 9, "completion_tokens": tokens, "total_tokens": tokens + 9}
    counted = _event(msgspec.json.encode(_part(choices=[], usage=usage)))
    return _chunk({}, finish_reason) + counted + _event(b"[DONE]") + b"0\r\n\r\n"


_BEGIN: Final = _chunk({"role": "assistant", "content": "", "refusal": None})
_TOKENS: Final = tuple(_chunk({"content": text}) for text in TEXTS)


def _answer(tokens: int) -> bytes:
    tokens_sent = b"".join(_TOKENS[number % len(_TOKENS)] for number in range(tokens))
    return _HEAD + _BEGIN + tokens_sent + _end("stop", tokens)


def _ask(number: int) -> bytes:
    """A call, its arguments in two pieces."""
    function = {"name": "add", "arguments": ""}
    call = {"index": 0, "id": f"call_{number}", "type": "function", "function": function}
    begin = {"role": "assistant", "content": None, "tool_calls": [call], "refusal": None}
    pieces = [
        _chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
        for piece in ('{"a":2,', '"b":3}')
    ]
    return _HEAD + _chunk(begin) + b"".join(pieces) + _end("tool_calls", 9)


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
            self._reply(body)

    def _reply(self, body: bytes) -> None:
        assert self._transport is not None
        model = _MODEL.search(body)
        if model is None:
            used = b"%f" % time.process_time()
            self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(used))
            self._transport.write(used)
            return
        kind, number = model[1], int(model[2])
        if kind == b"answer":
            self._transport.write(_answer(number))
        elif kind == b"steps":
            results = len(_RESULT.findall(body))
            self._transport.write(_ask(results) if results < number else _answer(SHORT))
        else:
            self._transport.write(_HEAD + _BEGIN)
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
            self._transport.write(_end("stop", self._tokens))
            return False
        if self._every == STAMPED:
            self._transport.write(_chunk({"content": f" {time.monotonic_ns()}"}))
        else:
            self._transport.write(_TOKENS[self._sent % len(_TOKENS)])
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
