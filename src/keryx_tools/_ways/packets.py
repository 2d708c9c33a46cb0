"""What goes over a connection: JSON-RPC 2.0 in frames of a length (four bytes) and that many bytes.

It refuses to know what carries them. Arguments are encoded once, before anything is sent, so what
is no JSON fails where it was passed and never on the way.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator
from typing import Any

HEADER = struct.Struct(">I")
# What the host takes, too: more than any value that people pass around.
LARGEST = 256 * 1024 * 1024
VERSION = 1


# How the host says that it has as many connections as it takes.
CROWDED_CODE = -32098
# How long to wait then; somebody may have let go of one.
CROWDED_PAUSE = 0.01


class PacketError(Exception):
    """The other side does not speak as it should."""


class CrowdedError(PacketError):
    """It takes no further connection now; nothing that was said on this one was heard."""


def _plain(value: object) -> object:
    if isinstance(value, os.PathLike):
        return os.fspath(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] (of str or bytes; bytes are refused as such)
    raise TypeError(f"a tool takes JSON; a {type(value).__name__} is none")


_encode = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain
).encode
_decode = json.JSONDecoder().decode


def encoded(value: object) -> bytes:
    """As JSON. `TypeError` or `ValueError` if it cannot be."""
    data = _encode(value).encode()
    if len(data) > LARGEST - 1024:
        raise ValueError(f"{len(data)} bytes are more than can be passed to a tool ({LARGEST})")
    return data


def decoded(data: bytes | bytearray) -> dict[str, Any]:
    """The object that was sent, whole."""
    try:
        packet = _decode(data.decode())
    except ValueError as error:
        raise PacketError(f"it sent what is no JSON: {error}") from None
    if not isinstance(packet, dict):
        raise PacketError("it sent JSON that is no object")
    return packet  # pyright: ignore[reportUnknownVariableType] (JSON)


def call_params(tool: str, arguments: dict[str, Any], timeout: float | None, **more: str) -> bytes:
    """What a call says, without the id that its connection gives it."""
    return encoded({"tool": tool, "arguments": arguments, "timeout": timeout, **more})


def call(id_: int, method: bytes, params: bytes) -> bytes:
    """A call as a packet. The order of its parts is what `relay` looks for."""
    return b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":%b}' % (id_, method, params)


def hello_params(secret: str) -> bytes:
    return encoded({"secret": secret, "version": VERSION})


def cancel(id_: int) -> bytes:
    return b'{"jsonrpc":"2.0","method":"cancel","params":{"id":%d}}' % id_


def goodbye(why: str) -> str:
    """The last packet of a connection; it answers no call."""
    return encoded(
        {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": why}}
    ).decode()


def check_goodbye(packet: dict[str, Any]) -> None:
    """`PacketError` with the reason if the other side hangs up: then the packet answers no call."""
    if packet.get("id") is not None or "method" in packet or "error" not in packet:
        return
    crowded = packet["error"].get("code") == CROWDED_CODE
    kind = CrowdedError if crowded else PacketError
    raise kind(f"it hung up: {packet['error'].get('message')}")


def frame(data: bytes) -> bytes:
    return HEADER.pack(len(data)) + data


def length_of(header: bytes | bytearray) -> int:
    """How many bytes follow. `PacketError` if that cannot be meant."""
    (length,) = HEADER.unpack(header)
    if length > LARGEST:
        raise PacketError(f"it announced {length} bytes, and no more than {LARGEST} are taken")
    return length


class Assembler:
    """Puts frames together from the pieces in which they come, each byte copied once or twice."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._body: bytearray | None = None
        self._filled = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take a piece; hand out the frames that are whole now."""
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
                whole, self._body = bytes(self._body), None
                yield whole

    def _take_header(self, view: memoryview) -> int:
        part = view[: HEADER.size - len(self._head)]
        self._head += part
        if len(self._head) == HEADER.size:
            self._body, self._filled = bytearray(length_of(self._head)), 0
            self._head.clear()
        return len(part)
