"""What is in a frame: JSON-RPC 2.0, and three things of our own.

`cancel` (the caller gives a call up) and `progress` (something passing, before the answer) are
notifications; an error that answers no call is the last word of a side that hangs up, and says why.

It knows nothing of who sends what when.
"""

from __future__ import annotations

from typing import Final

import msgspec

# A message is for people to read; a longer one would be a way to fill the other side's memory.
LONGEST_MESSAGE: Final = 1 << 20
_NULL: Final = b"null"
_GOODBYE: Final = -32099
# It would be another connection than others hold; whoever tries again later may be lucky.
CROWDED: Final = -32098


class Fault(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why there is no result."""

    code: int
    message: str
    data: str = ""


class Packet(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A call, a notification or an answer, as it comes."""

    id: int | None = None
    method: str | None = None
    params: msgspec.Raw = msgspec.Raw()
    result: msgspec.Raw = msgspec.Raw()
    error: Fault | None = None


class Letter(msgspec.Struct, frozen=True):
    """A call that comes alone."""

    method: str
    params: msgspec.Raw = msgspec.Raw()


class _Id(msgspec.Struct, frozen=True):
    id: msgspec.Raw = msgspec.Raw(_NULL)


class Progress(msgspec.Struct, frozen=True):
    """Something passing about a call."""

    id: int
    value: msgspec.Raw


class Cancel(msgspec.Struct, frozen=True):
    """A call that was given up."""

    id: int


class _Asks(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    jsonrpc: str
    id: int | None = None
    method: str
    params: msgspec.Raw


class _Answers(msgspec.Struct, frozen=True):
    jsonrpc: str
    id: int | msgspec.Raw
    result: msgspec.Raw


class _Fails(msgspec.Struct, frozen=True):
    jsonrpc: str
    id: int | msgspec.Raw | None
    error: Fault


_encode: Final = msgspec.json.Encoder().encode
_check: Final = msgspec.json.Decoder(msgspec.Raw).decode
decode: Final = msgspec.json.Decoder(Packet).decode
decode_letter: Final = msgspec.json.Decoder(Letter).decode
_decode_id: Final = msgspec.json.Decoder(_Id).decode
decode_progress: Final = msgspec.json.Decoder(Progress).decode
decode_cancel: Final = msgspec.json.Decoder(Cancel).decode


def call(id_: int, method: str, params: bytes) -> bytes:
    """`DecodeError` if the parameters are no JSON."""
    return _encode(_Asks(jsonrpc="2.0", id=id_, method=method, params=_check(params or _NULL)))


def progress(id_: int, value: bytes) -> bytes:
    return _notification("progress", _encode(Progress(id_, _check(value))))


def cancel(id_: int) -> bytes:
    return _notification("cancel", _encode(Cancel(id_)))


def answer(id_: int | msgspec.Raw, result: bytes | None) -> bytes:
    """`DecodeError` if the result is no JSON: the other side could not tell what came."""
    return _encode(_Answers("2.0", id_, _check(result or _NULL)))


def failure(id_: int | msgspec.Raw | None, code: int, message: str, name: str) -> bytes:
    return _encode(_Fails("2.0", id_, Fault(code, _carried(message), _carried(name))))


def goodbye(why: str, code: int = _GOODBYE) -> bytes:
    return failure(None, code, why, "")


def id_of(data: bytes) -> msgspec.Raw:
    """How its sender identifies a call that comes alone; null if that cannot be told."""
    try:
        return msgspec.Raw(bytes(_decode_id(data).id))
    except (msgspec.DecodeError, RecursionError):
        return msgspec.Raw(_NULL)


def result_of(packet: Packet) -> bytes:
    return bytes(packet.result) or _NULL


def _notification(method: str, params: bytes) -> bytes:
    return _encode(_Asks(jsonrpc="2.0", method=method, params=msgspec.Raw(params)))


def _carried(text: str) -> str:
    """Half a character, from a file's name perhaps, cannot be carried; the rest of the text can."""
    return text[:LONGEST_MESSAGE].encode(errors="replace").decode()
