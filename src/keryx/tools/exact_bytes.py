"""Bytes as a script gets them: as text if that is exact, and otherwise in base64 as well.

JSON carries text only. It refuses to know where the bytes come from.
"""

from __future__ import annotations

import base64
import codecs
from typing import Any

from keryx.ports.tool import Emitted, ToolContext


def printed(emitted: Emitted) -> dict[str, Any]:
    """What a command printed: `output`, and `base64` if some of it is not UTF-8."""
    data, left_out = emitted.data, emitted.left_out
    if left_out:
        whole = without_half_a_character(data)
        left_out += len(data) - len(whole)
        data = whole
    result = text_or_bytes("output", data)
    result["truncated"] = bool(left_out)
    if left_out:
        result["left_out"] = left_out
        result["hint"] = "print into a file, and read that in the script with open()"
    return result


def text_or_bytes(key: str, data: bytes) -> dict[str, Any]:
    """The text under this key. If it stands for bytes that are not UTF-8, they are in `base64`."""
    try:
        return {key: data.decode()}
    except UnicodeDecodeError:
        return {key: data.decode(errors="replace"), "base64": in_base64(data)}


def without_half_a_character(data: bytes) -> bytes:
    """The same without the beginning of a character that goes on after it."""
    _, used = codecs.utf_8_decode(data, "replace", False)
    return data[:used]


def in_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def output_of(context: ToolContext) -> dict[str, Any]:
    """What a call printed, for whoever reads its result."""
    return printed(context.emitted) if context.nested else {"output": context.printed}
