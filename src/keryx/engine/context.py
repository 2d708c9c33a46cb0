"""From the log to what a model is told. Pure: the same log gives the same prompt.

Each message is encoded for its model once; a `Transcript` keeps the bytes and only adds to them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from keryx import events as ev
from keryx.engine.log.fold import Fold
from keryx.engine.log.state import Delivered, HistoryItem, Replied
from keryx.messages import (
    AssistantMessage,
    File,
    Image,
    Message,
    Part,
    Text,
    ToolMessage,
    UserMessage,
)
from keryx.ports.files import tool_path

SIDE_BY_SIDE = (
    "Tool calls in one reply run at the same time; ask for independent work together. "
    "Each message names the workspace that it is about; that one is authoritative."
)


def system_text(parts: Mapping[str, str]) -> str:
    """The system prompt: what holds for every session, then the parts in the order of names."""
    return "\n\n".join([SIDE_BY_SIDE, *(text for _, text in sorted(parts.items()))])


def messages_of(item: HistoryItem) -> list[Message]:
    """One item of the history as the messages that a model reads."""
    match item:
        case Delivered():
            tag = Text(f"[workspace: {item.message.workspace}]\n{item.message.text}")
            attached = item.message.attachments
            where = tuple(Text(f"[attached: {tool_path(part)}]") for part in attached)
            return [UserMessage((tag, *where, *attached))]
        case Replied():
            reply = item.reply
            content = (Text(reply.text),) if reply.text else ()
            if not content and not reply.calls:
                return []
            found: list[Message] = [AssistantMessage(content, reply.calls, reply.reasoning)]
            found += [
                ToolMessage(call.call_id, shown(item.results[call.call_id])) for call in reply.calls
            ]
            return found


def shown(result: ev.CallFinished) -> tuple[Part, ...]:
    """What a model reads of a call that ended: the outcome first, unless all went well."""
    match result.outcome:
        case "completed":
            return result.result or (Text("[no output]"),)
        case "failed":
            note = "[failed]"
        case "denied":
            note = f"[denied: {result.reason}]"
        case "cancelled" if not result.started:
            note = f"[cancelled: {result.reason}; it had not started]"
        case "cancelled":
            note = f"[cancelled: {result.reason}; what it had done so far follows]"
        case "unknown":
            note = f"[unknown: {result.reason}; it may have had effects, and may still run]"
    return (Text(note), *result.result)


class Transcript:
    """A session's history as one model's bytes."""

    def __init__(self, encode: Callable[[Message], bytes]) -> None:
        self._encode = encode
        self._bytes: list[bytes] = []
        self._items = 0
        self._undone = 0

    def coming(self, fold: Fold) -> list[Image | File]:
        """The attachments of messages that are not encoded yet."""
        new = fold.history[self._items :]
        return [
            part for item in new if isinstance(item, Delivered) for part in item.message.attachments
        ]

    def history(self, fold: Fold) -> Sequence[bytes]:
        """All messages, encoding only those that are new. Every call in it has its result."""
        if len(fold.undone) != self._undone:
            self._bytes, self._items, self._undone = [], 0, len(fold.undone)
        for item in fold.history[self._items :]:
            if isinstance(item, Replied) and not item.complete:
                break
            self._items += 1
            if item.turn_id not in fold.undone:
                self._bytes += map(self._encode, messages_of(item))
        return self._bytes
