"""What a host and its workers say to each other: one order, one answer, in MessagePack."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from keryx.messages import File, Image, Text

# More than any value that people pass around, and below the largest frame that is taken.
LARGEST_CONTENT: Final = 255 * 1024 * 1024


class Order(msgspec.Struct, frozen=True):
    """One call: how to find its tool, the arguments as JSON, and what to print after it."""

    finder: str
    told: tuple[str, ...]
    arguments: str
    mark: bytes


Wired = tuple[Text | Image | File | bytes, ...]
"""The content of a result; JSON, which has no place in MessagePack, as bytes."""

NO_CONTENT: Final = msgspec.Raw(msgspec.msgpack.encode(()))


class Answer(msgspec.Struct, frozen=True):
    """How a call went."""

    how: Literal["returned", "failed", "interrupted"]
    content: msgspec.Raw = NO_CONTENT
    """A `Wired`, encoded once."""
    complete: bool = False
    error: str = ""
    clean: bool = False
    """Whether all is as before the call, so that another one may follow."""
    marked: bool = True
    """Whether the mark was printed."""
