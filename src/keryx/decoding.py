"""Decoders, created one at a time.

msgspec notes on a class what it has found out about its fields, and does so before it has seen all
of them. A thread that decodes the same class at that moment reads a field that is not there yet,
and the process dies of it. So all decoders of Keryx are created here, under one lock: whoever gets
one gets it complete.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar, overload

import msgspec

T = TypeVar("T")

# The state belongs to msgspec, which has no lock of its own. A thread may enter again: annotations
# are evaluated under the lock, and may create decoders.
_lock: Final = threading.RLock()  # noqa: TID251 (see above)

# A fork never copies the lock while a thread holds it that the child does not have.
os.register_at_fork(
    before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
)


def prepare(kind: Any) -> None:
    """Let msgspec find out all about this type. After that, every thread may decode it."""
    with _lock:
        msgspec.json.Decoder(kind)


@overload
def json_decoder(
    kind: type[T], *, dec_hook: Callable[[type, Any], Any] | None = None
) -> msgspec.json.Decoder[T]: ...
@overload
def json_decoder(
    kind: Any, *, dec_hook: Callable[[type, Any], Any] | None = None
) -> msgspec.json.Decoder[Any]: ...
def json_decoder(
    kind: Any, *, dec_hook: Callable[[type, Any], Any] | None = None
) -> msgspec.json.Decoder[Any]:
    with _lock:
        return msgspec.json.Decoder(kind, dec_hook=dec_hook)


@overload
def msgpack_decoder(kind: type[T]) -> msgspec.msgpack.Decoder[T]: ...
@overload
def msgpack_decoder(kind: Any) -> msgspec.msgpack.Decoder[Any]: ...
def msgpack_decoder(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    with _lock:
        return msgspec.msgpack.Decoder(kind)


@overload
def decode_json(data: bytes | str, kind: type[T]) -> T: ...
@overload
def decode_json(data: bytes | str, kind: Any) -> Any: ...
def decode_json(data: bytes | str, kind: Any) -> Any:
    """Decode JSON of this type once; who decodes often keeps a decoder."""
    return json_decoder(kind).decode(data)


@overload
def convert(
    value: object,
    kind: type[T],
    *,
    str_keys: bool = False,
    dec_hook: Callable[[type, Any], Any] | None = None,
) -> T: ...
@overload
def convert(
    value: object,
    kind: Any,
    *,
    str_keys: bool = False,
    dec_hook: Callable[[type, Any], Any] | None = None,
) -> Any: ...
def convert(
    value: object,
    kind: Any,
    *,
    str_keys: bool = False,
    dec_hook: Callable[[type, Any], Any] | None = None,
) -> Any:
    """Convert plain values to this type. The hook runs without the lock."""
    prepare(kind)
    return msgspec.convert(value, kind, str_keys=str_keys, dec_hook=dec_hook)
