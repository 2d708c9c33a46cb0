"""The packets of a connection: JSON-RPC 2.0 in frames of a length (four bytes) and that many bytes.

It knows nothing of what carries them. Arguments are encoded before anything is sent, so arguments
that are not JSON raise in the call that passed them.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator
from typing import Any

HEADER = struct.Struct(">I")
# The host has the same limit: more than any value that people pass around.
LARGEST = 256 * 1024 * 1024
VERSION = 1


# The error code of a host that accepts no more connections now.
TOO_MANY_CONNECTIONS = -32098
# How long to wait before the next try; another thread may have closed one.
RETRY_PAUSE = 0.01


class PacketError(Exception):
    """The other side closed the connection or sent an invalid packet."""


class TooManyConnectionsError(PacketError):
    """The host accepts no more connections now; it read nothing of this one."""


def _plain(value: object) -> object:
    if isinstance(value, os.PathLike):
        return os.fspath(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] (of str or bytes; bytes are refused as such)
    raise TypeError(f"a tool takes JSON; a {type(value).__name__} is not JSON")


_encode = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain
).encode
_decode = json.JSONDecoder().decode


def encode(value: object) -> bytes:
    """Return the value as JSON; raise `TypeError` or `ValueError` if that is not possible."""
    data = _encode(value).encode()
    if len(data) > LARGEST - 1024:
        raise ValueError(f"{len(data)} bytes are more than can be passed to a tool ({LARGEST})")
    return data


def decode(data: bytes | bytearray) -> dict[str, Any]:
    """Return the JSON object of a frame; raise `PacketError` if it is none."""
    try:
        packet = _decode(data.decode())
    except ValueError as error:
        raise PacketError(f"it sent data that is not JSON: {error}") from None
    if not isinstance(packet, dict):
        raise PacketError("it sent JSON that is not an object")
    return packet  # pyright: ignore[reportUnknownVariableType] (JSON)


def call_params(tool: str, arguments: dict[str, Any], timeout: float | None, **more: str) -> bytes:
    """Return the parameters of a call; its connection adds the id."""
    return encode({"tool": tool, "arguments": arguments, "timeout": timeout, **more})


def call(id_: int, method: bytes, params: bytes) -> bytes:
    """Return a call as a packet. `relay` relies on the order of its parts."""
    return b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":%b}' % (id_, method, params)


def hello_params(secret: str) -> bytes:
    return encode({"secret": secret, "version": VERSION})


def cancel(id_: int) -> bytes:
    return b'{"jsonrpc":"2.0","method":"cancel","params":{"id":%d}}' % id_


def goodbye(why: str) -> str:
    """Return the last packet of a connection; it has no id."""
    return encode(
        {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": why}}
    ).decode()


def check_goodbye(packet: dict[str, Any]) -> None:
    """Raise `PacketError` with the reason if the packet is a goodbye."""
    if packet.get("id") is not None or "method" in packet or "error" not in packet:
        return
    is_temporary = packet["error"].get("code") == TOO_MANY_CONNECTIONS
    kind = TooManyConnectionsError if is_temporary else PacketError
    raise kind(f"it hung up: {packet['error'].get('message')}")


def frame(data: bytes) -> bytes:
    return HEADER.pack(len(data)) + data


def length_of(header: bytes | bytearray) -> int:
    """Return how many bytes follow; raise `PacketError` if these are too many."""
    (length,) = HEADER.unpack(header)
    if length > LARGEST:
        raise PacketError(f"it announced {length} bytes, and no more than {LARGEST} are allowed")
    return length


class Assembler:
    """Puts frames together from the pieces in which they arrive; copies each byte once or twice."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._body: bytearray | None = None
        self._filled = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Add a piece, and yield the frames that are complete."""
        view, at = memoryview(data), 0
        while at < len(view) or (self._body is not None and self._filled == len(self._body)):
            if self._body is None:
                at += self._take_header(view[at:])
                continue
            part = view[at : at + len(self._body) - self._filled]
            self._body[self._filled : self._filled + len(part)] = part
            self._filled += len(part)
            at += len(part)
            if self._filled == len(self._body):
                complete, self._body = bytes(self._body), None
                yield complete

    def _take_header(self, view: memoryview) -> int:
        part = view[: HEADER.size - len(self._head)]
        self._head += part
        if len(self._head) == HEADER.size:
            self._body, self._filled = bytearray(length_of(self._head)), 0
            self._head.clear()
        return len(part)
