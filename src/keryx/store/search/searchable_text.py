"""What of a transcript can be found: the texts of each entry, and how much of each.

It owns the bounds. It refuses to know how texts are compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, cast

import msgspec

from keryx.events import CallFinished, CallStarted, LoggedEvent, MessageAccepted, StepReplied
from keryx.messages import Json, Text
from keryx.ports.store import FoundKind

# Nobody reads further in one message, and one that is a pasted file must not be most of an index.
MOST_OF_TEXT: Final = 64 * 1024
# Arguments and results are mostly data; what they are about stands at their beginning.
MOST_OF_CALL: Final = 4 * 1024


def texts_of(event: LoggedEvent) -> Iterator[tuple[FoundKind, str]]:
    """The texts of one entry of a transcript, each with what it is."""
    match event:
        case MessageAccepted():
            yield "message", event.text[:MOST_OF_TEXT]
        case StepReplied():
            yield "reply", event.text[:MOST_OF_TEXT]
            if event.calls:
                asked = [f"{call.tool} {_plain(call.arguments)}" for call in event.calls]
                yield "call", "\n".join(text[:MOST_OF_CALL] for text in asked)
        case CallStarted():
            yield "call", f"{event.tool} {_plain(event.arguments)}"[:MOST_OF_CALL]
        case CallFinished():
            yield "call", "\n".join(_parts(event))[:MOST_OF_CALL]
        case _:
            pass


def _parts(event: CallFinished) -> Iterator[str]:
    for part in event.result:
        match part:
            case Text():
                yield part.text[:MOST_OF_CALL]
            case Json():
                yield _plain(bytes(part.value))
            case _:
                yield part.name


def _plain(encoded: str | bytes) -> str:
    """The values in a JSON text, as they read; a text that is none (any more) as it is."""
    try:
        value: object = msgspec.json.decode(encoded)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return encoded if isinstance(encoded, str) else encoded.decode(errors="replace")
    found: list[str] = []
    length = 0
    waiting = [value]
    while waiting and length < MOST_OF_CALL:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(reversed(list(cast("dict[str, object]", value).values())))
        elif isinstance(value, list):
            waiting.extend(reversed(cast("list[object]", value)))
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            found.append(str(value))
            length += len(found[-1]) + 1
    return " ".join(found)
