"""Reads what a hook answers: its exit code, and JSON on its stdout."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from keryx.decoding import json_decoder
from keryx.errors import HookFailedError
from keryx.ports.hook_programs import HookAnswer, HookEvent
from keryx.ports.place import Exit

REFUSED: Final = 2
"""The exit code that refuses a call."""
LONGEST_REASON: Final = 2_000
"""Characters of a reason."""


_ABSENT: Final = msgspec.Raw()


class _Before(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    decision: Literal["allow", "deny"] = "allow"
    reason: str = ""
    input: msgspec.Raw = _ABSENT


class _After(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    result: msgspec.Raw = _ABSENT
    note: str | None = None


_decode_before: Final = json_decoder(_Before).decode
_decode_after: Final = json_decoder(_After).decode


def read_answer(event: HookEvent, end: Exit, stdout: bytes, stderr: str) -> HookAnswer:
    """Return what the hook wants; `HookFailedError` if that is not clear."""
    if event == "before_call" and end.code == REFUSED:
        return HookAnswer(denied=stderr[-LONGEST_REASON:] or "it gave no reason")
    if end.code != 0:
        how = f"exit code {end.code}" if end.code is not None else f"signal {end.signal}"
        words = f"; it wrote: {stderr[-LONGEST_REASON:]}" if stderr else ""
        raise HookFailedError(f"it ended with {end.cause or how}{words}")
    if not stdout.strip():
        return HookAnswer()
    try:
        if event == "before_call":
            return _before(_decode_before(stdout))
        return _after(_decode_after(stdout))
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        shown = stdout[:80].decode(errors="replace")
        raise HookFailedError(f"its answer {shown!r} is not valid: {error}") from error


def _before(answer: _Before) -> HookAnswer:
    if answer.decision == "deny":
        return HookAnswer(denied=answer.reason[:LONGEST_REASON] or "it gave no reason")
    if not (data := bytes(answer.input)):
        return HookAnswer()
    if not data.lstrip().startswith(b"{"):
        raise ValueError("`input` must be an object")
    return HookAnswer(input=_checked(data))


def _after(answer: _After) -> HookAnswer:
    data = bytes(answer.result)
    return HookAnswer(result=_checked(data) if data else None, note=answer.note)


def _checked(data: bytes) -> msgspec.Raw:
    """Return a part of an answer. The decoder skips it, so its texts and numbers are read here."""
    msgspec.json.decode(data)
    return msgspec.Raw(data)
