"""A session as people read it: what was said, replied and done. Undone turns are left out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from keryx import events as ev
from keryx.messages import File, Image, text_of


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a conversation."""

    kind: Literal["person", "agent", "call", "note"]
    at: float
    text: str
    title: str = ""
    """Of a call: the tool and how the call ended."""
    detail: str = ""
    """Of a call: its arguments. Of a reply: the reasoning."""
    files: tuple[Image | File, ...] = ()


class ReadableSession(msgspec.Struct, frozen=True, kw_only=True):
    """The conversation of a session."""

    session_id: str
    title: str
    model: str
    at: float
    entries: tuple[Entry, ...]


def readable(events: Iterable[ev.LoggedEvent]) -> ReadableSession:
    """Return the conversation of a log."""
    log = list(events)
    undone = undone_turns(log)
    title = model = ""
    messages: dict[str, Entry] = {}
    calls: dict[str, str] = {}
    entries: list[Entry] = []
    for event in log:
        if isinstance(event, ev.SessionOpened | ev.SessionChanged):
            title = event.title if isinstance(event.title, str) else title
            model = event.model if isinstance(event.model, str) else model
        elif getattr(event, "turn_id", None) not in undone:
            entry = _entry(event, messages, calls)
            entries += [] if entry is None else [entry]
    return ReadableSession(
        session_id=log[0].session_id, title=title, model=model, at=log[0].at, entries=tuple(entries)
    )


def undone_turns(log: Iterable[ev.LoggedEvent]) -> set[str]:
    """Return the turns that were undone, or replaced, and not restored since."""
    is_undone = {
        event.turn_id: isinstance(event, ev.TurnUndone)
        for event in log
        if isinstance(event, ev.TurnUndone | ev.TurnRestored)
    }
    return {turn_id for turn_id, undone in is_undone.items() if undone}


def _entry(
    event: ev.LoggedEvent, messages: dict[str, Entry], calls: dict[str, str]
) -> Entry | None:
    match event:
        case ev.MessageAccepted():
            files = event.attachments
            messages[event.message_id] = Entry(
                kind="person", at=event.at, text=event.text, files=files
            )
        case ev.MessageChanged() if isinstance(event.text, str):
            before = messages.get(event.message_id)
            if before is not None:
                messages[event.message_id] = msgspec.structs.replace(before, text=event.text)
        case ev.MessageDelivered():
            return messages.get(event.message_id)
        case ev.StepReplied():
            calls.update({call.call_id: call.arguments for call in event.calls})
            text = event.text + (" [cut]" if event.cut else "")
            if text or event.reasoning:
                return Entry(kind="agent", at=event.at, text=text, detail=event.reasoning)
        case ev.CallStarted() if event.step_id is None:
            calls[event.call_id] = event.arguments
        case ev.CallFinished() | ev.ContextCompacted() | ev.TurnFinished():
            return _ending(event, calls)
        case _:
            pass
    return None


def _ending(
    event: ev.CallFinished | ev.ContextCompacted | ev.TurnFinished, calls: dict[str, str]
) -> Entry | None:
    match event:
        case ev.CallFinished():
            return Entry(
                kind="call",
                at=event.at,
                text=text_of(part for part in event.result if not isinstance(part, Image)),
                title=f"{event.tool}: {event.outcome}",
                detail=calls.get(event.call_id, ""),
                files=tuple(part for part in event.result if isinstance(part, Image)),
            )
        case ev.ContextCompacted():
            return Entry(kind="note", at=event.at, text=f"Summary so far: {event.summary}")
        case ev.TurnFinished():
            if event.outcome == "completed":
                return None
            reason = event.reason if event.error is None else event.error.message
            return Entry(kind="note", at=event.at, text=f"The turn {event.outcome}: {reason}")
