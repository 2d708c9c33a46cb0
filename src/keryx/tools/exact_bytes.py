"""Bytes for a script: as text, and in base64 too if the text is not exact.

JSON has no bytes. It refuses to know where the bytes come from.
"""

from __future__ import annotations

import base64
import codecs
from typing import Any

from keryx.ports.tool_context import Emitted, ToolContext


def printed(emitted: Emitted) -> dict[str, Any]:
    """Return the output of a command: `output`, and `base64` if some of it is not UTF-8."""
    data, left_out = emitted.data, emitted.left_out
    if left_out:
        complete = without_cut_character(data)
        left_out += len(data) - len(complete)
        data = complete
    result = text_or_bytes("output", data)
    result["truncated"] = bool(left_out)
    if left_out:
        result["left_out"] = left_out
        result["hint"] = "print into a file, and read that in the script with open()"
    return result


def text_or_bytes(key: str, data: bytes) -> dict[str, Any]:
    """Return the text under this key; bytes that are not UTF-8 are also in `base64`."""
    try:
        return {key: data.decode()}
    except UnicodeDecodeError:
        return {key: data.decode(errors="replace"), "base64": in_base64(data)}


def without_cut_character(data: bytes) -> bytes:
    """Return the data without an incomplete character at its end."""
    _, length = codecs.utf_8_decode(data, "replace", False)
    return data[:length]


def in_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def output_of(context: ToolContext) -> dict[str, Any]:
    """Return the output of a call, for a model or for a script."""
    return printed(context.emitted) if context.nested else {"output": context.printed}
