"""The log of a conversation that comes from elsewhere: pure, from messages to events."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from keryx import events as ev
from keryx.app.portable.foreign.message_lists import Conversation, Replied, Said
from keryx.app.portable.session_file import SessionFile
from keryx.engine.operations.titles import first_title
from keryx.ids import new_id
from keryx.messages import Image, Text, text_of

BY: Final = "import"
"""The author of messages whose author is not known."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the new session."""

    model: str
    workspace: str
    tools: tuple[str, ...]
    at: float
    title: str = ""
    """Empty: that of the conversation, or its first message."""
    effort: str | None = None
    archived: bool = False


class _Log:
    """Events that are added one by one."""

    def __init__(self, session_id: str, at: float) -> None:
        self._session_id, self._at = session_id, at
        self.events: list[ev.LoggedEvent] = []

    def add(self, kind: type[ev.LoggedEvent], **fields: Any) -> None:
        seq = len(self.events) + 1
        event = kind(session_id=self._session_id, seq=seq, at=self._at, **fields)
        self.events.append(ev.as_logged(event)[0])


def conversation_log(conversation: Conversation, place: Place) -> SessionFile:
    """Return a session whose history is this conversation. All of its turns have ended."""
    log = _Log(new_id("s"), conversation.at or place.at)
    first = next((item for item in conversation.items if isinstance(item, Said)), None)
    words = conversation.title or (text_of(first.parts) if first else "")
    title = place.title or first_title(words)
    log.add(
        ev.SessionOpened,
        model=place.model,
        profile="default",
        place="local",
        workspace=place.workspace,
        tools=place.tools,
        title=title,
        effort=place.effort,
        archived=place.archived,
    )
    items = conversation.items
    while items:
        said, items = _leading(items, Said)
        replies, items = _leading(items, Replied)
        _add_turn(log, said, replies, place.workspace, conversation.model or place.model)
    return SessionFile(events=tuple(log.events), blobs=tuple(conversation.blobs))


def _leading(items: list[Any], kind: type[Any]) -> tuple[list[Any], list[Any]]:
    """Return the items of this kind that come first, and the others."""
    count = next((n for n, item in enumerate(items) if not isinstance(item, kind)), len(items))
    return items[:count], items[count:]


def _add_turn(
    log: _Log, said: list[Said], replies: list[Replied], workspace: str, model: str
) -> None:
    turn_id, message_ids = new_id("t"), [new_id("m") for _ in said]
    for message_id, message in zip(message_ids, said, strict=True):
        texts = [part for part in message.parts if isinstance(part, Text)]
        log.add(
            ev.MessageAccepted,
            message_id=message_id,
            turn_id=turn_id,
            key=None,
            by=BY,
            mode="queue",
            text=text_of(texts),
            workspace=workspace,
            attachments=tuple(part for part in message.parts if isinstance(part, Image)),
        )
    log.add(ev.TurnStarted, turn_id=turn_id, message_ids=tuple(message_ids))
    for message_id in message_ids:
        log.add(ev.MessageDelivered, turn_id=turn_id, message_id=message_id)
    for reply in replies:
        _add_reply(log, reply, turn_id, model)
    # Nothing was spent in this home; what it cost elsewhere is not known.
    log.add(ev.TurnFinished, turn_id=turn_id, outcome="completed", usage=ev.Usage(), cost=0.0)


def _add_reply(log: _Log, reply: Replied, turn_id: str, model: str) -> None:
    step_id = new_id("p")
    # The ids of other programs may repeat in one conversation.
    calls = [msgspec.structs.replace(call, call_id=new_id("k")) for call in reply.calls]
    log.add(ev.StepStarted, turn_id=turn_id, step_id=step_id, model=model)
    log.add(
        ev.StepReplied,
        turn_id=turn_id,
        step_id=step_id,
        text=reply.text,
        reasoning=reply.reasoning,
        calls=tuple(calls),
        usage=None,
        cost=0.0,
        context=ev.ContextSize(window=None, compact_at=None, last_prompt_tokens=None),
        stop_reason="tool_calls" if calls else "stop",
    )
    for call, original in zip(calls, reply.calls, strict=True):
        result = reply.results.get(original.call_id)
        ids = {"turn_id": turn_id, "call_id": call.call_id, "tool": call.tool}
        log.add(
            ev.CallStarted,
            **ids,
            step_id=step_id,
            by=BY,
            arguments=call.arguments,
            preview="",
            effects=ev.CallEffects(),
            replay="never",
        )
        log.add(
            ev.CallFinished,
            **ids,
            outcome="unknown" if result is None else "completed",
            reason="import" if result is None else None,
            started=True,
            result=result or (),
            duration=0.0,
        )
