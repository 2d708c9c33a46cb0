"""The searchable texts of a transcript: which texts an entry has, and how much of each.

It owns the bounds. It refuses to know how texts are compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, cast

import msgspec

from keryx.events import CallFinished, CallStarted, LoggedEvent, MessageAccepted, StepReplied
from keryx.messages import Json, Text
from keryx.ports.search import FoundKind

# People do not read further in one message, and a pasted file must not fill the index.
MAX_TEXT: Final = 64 * 1024
# Arguments and results are mostly data; their beginning says what they are about.
MAX_CALL_TEXT: Final = 4 * 1024


def texts_of(event: LoggedEvent) -> Iterator[tuple[FoundKind, str]]:
    """Yield the texts of one entry of a transcript, each with its kind."""
    match event:
        case MessageAccepted():
            yield "message", event.text[:MAX_TEXT]
        case StepReplied():
            yield "reply", event.text[:MAX_TEXT]
            if event.calls:
                calls = [f"{call.tool} {_plain(call.arguments)}" for call in event.calls]
                yield "call", "\n".join(text[:MAX_CALL_TEXT] for text in calls)
        case CallStarted():
            yield "call", f"{event.tool} {_plain(event.arguments)}"[:MAX_CALL_TEXT]
        case CallFinished():
            yield "call", "\n".join(_parts(event))[:MAX_CALL_TEXT]
        case _:
            pass


def _parts(event: CallFinished) -> Iterator[str]:
    for part in event.result:
        match part:
            case Text():
                yield part.text[:MAX_CALL_TEXT]
            case Json():
                yield _plain(bytes(part.value))
            case _:
                yield part.name


def _plain(encoded: str | bytes) -> str:
    """Return the values of a JSON text as plain words; a text that is not JSON is unchanged."""
    try:
        value: object = msgspec.json.decode(encoded)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return encoded if isinstance(encoded, str) else encoded.decode(errors="replace")
    values: list[str] = []
    length = 0
    stack = [value]
    while stack and length < MAX_CALL_TEXT:
        value = stack.pop()
        if isinstance(value, dict):
            stack.extend(reversed(list(cast("dict[str, object]", value).values())))
        elif isinstance(value, list):
            stack.extend(reversed(cast("list[object]", value)))
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            values.append(str(value))
            length += len(values[-1]) + 1
    return " ".join(values)
