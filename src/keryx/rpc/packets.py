"""The content of a frame: JSON-RPC 2.0, with three conventions of our own.

`cancel` (the caller gives a call up) and `progress` (news before the answer) are notifications;
an error without an id is the goodbye of a side that closes, and says why.

It knows nothing of who sends what when.
"""

from __future__ import annotations

from typing import Final

import msgspec

from keryx.decoding import json_decoder

# A message is for people to read; a longer one could fill the other side's memory.
LONGEST_MESSAGE: Final = 1 << 20
_NULL: Final = b"null"
_GOODBYE: Final = -32099
# Too many connections are open; a client may try again later.
TOO_MANY_CONNECTIONS: Final = -32098


class Fault(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why there is no result."""

    code: int
    message: str
    data: str = ""


class Packet(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A call, a notification or an answer, as received."""

    id: int | None = None
    method: str | None = None
    params: msgspec.Raw = msgspec.Raw()
    result: msgspec.Raw = msgspec.Raw()
    error: Fault | None = None


class StandaloneCall(msgspec.Struct, frozen=True):
    """A call in a file of its own."""

    method: str
    params: msgspec.Raw = msgspec.Raw()


class _Id(msgspec.Struct, frozen=True):
    id: msgspec.Raw = msgspec.Raw(_NULL)


class Progress(msgspec.Struct, frozen=True):
    """News about a call before its answer."""

    id: int
    value: msgspec.Raw


class Cancel(msgspec.Struct, frozen=True):
    """A call that was given up."""

    id: int


class _Request(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    jsonrpc: str
    id: int | None = None
    method: str
    params: msgspec.Raw


class _Response(msgspec.Struct, frozen=True):
    jsonrpc: str
    id: int | msgspec.Raw
    result: msgspec.Raw


class _ErrorResponse(msgspec.Struct, frozen=True):
    jsonrpc: str
    id: int | msgspec.Raw | None
    error: Fault


_encode: Final = msgspec.json.Encoder().encode
_check: Final = json_decoder(msgspec.Raw).decode
decode: Final = json_decoder(Packet).decode
decode_standalone_call: Final = json_decoder(StandaloneCall).decode
_decode_id: Final = json_decoder(_Id).decode
decode_progress: Final = json_decoder(Progress).decode
decode_cancel: Final = json_decoder(Cancel).decode


def call(id_: int, method: str, params: bytes) -> bytes:
    """Encode a call; raise `DecodeError` if the parameters are not JSON."""
    return _encode(_Request(jsonrpc="2.0", id=id_, method=method, params=_check(params or _NULL)))


def progress(id_: int, value: bytes) -> bytes:
    return _notification("progress", _encode(Progress(id_, _check(value))))


def cancel(id_: int) -> bytes:
    return _notification("cancel", _encode(Cancel(id_)))


def answer(id_: int | msgspec.Raw, result: bytes | None) -> bytes:
    """Encode an answer; raise `DecodeError` if the result is not JSON."""
    return _encode(_Response("2.0", id_, _check(result or _NULL)))


def failure(id_: int | msgspec.Raw | None, code: int, message: str, name: str) -> bytes:
    return _encode(_ErrorResponse("2.0", id_, Fault(code, _encodable(message), _encodable(name))))


def goodbye(why: str, code: int = _GOODBYE) -> bytes:
    return failure(None, code, why, "")


def id_of(data: bytes) -> msgspec.Raw:
    """Return the id of a call in a file of its own; null if it cannot be read."""
    try:
        return msgspec.Raw(bytes(_decode_id(data).id))
    except (msgspec.DecodeError, RecursionError):
        return msgspec.Raw(_NULL)


def result_of(packet: Packet) -> bytes:
    return bytes(packet.result) or _NULL


def _notification(method: str, params: bytes) -> bytes:
    return _encode(_Request(jsonrpc="2.0", method=method, params=msgspec.Raw(params)))


def _encodable(text: str) -> str:
    """Cut the text to its limit, and replace half characters: JSON cannot encode them."""
    return text[:LONGEST_MESSAGE].encode(errors="replace").decode()
