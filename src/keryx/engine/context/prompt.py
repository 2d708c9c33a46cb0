"""How a model is told what the log says: each item of the history, and what holds for all."""

from __future__ import annotations

from collections.abc import Mapping

from keryx import events as ev
from keryx.engine.log.state import Delivered, HistoryItem, Replied
from keryx.messages import AssistantMessage, Message, Part, Text, ToolMessage, UserMessage
from keryx.ports.files import tool_path

SIDE_BY_SIDE = (
    "Tool calls in one reply run at the same time; ask for independent work together. "
    "Each message names the workspace that it is about; that one is authoritative."
)
EARLIER = "[what was said and done before, summed up; the words themselves are not at hand]"


def system_text(parts: Mapping[str, str]) -> str:
    """The system prompt: what holds for every session, then the parts in the order of names."""
    return "\n\n".join([SIDE_BY_SIDE, *(text for _, text in sorted(parts.items()))])


def summary_message(compacted: ev.ContextCompacted) -> Message:
    """What stands for all that came before it."""
    return UserMessage((Text(f"{EARLIER}\n{compacted.summary}"),))


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
