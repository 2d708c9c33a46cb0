"""What a turn has said so far, and how its end reads in a chat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from keryx import events as ev
from keryx.gateway.conversations import AwaitedTurn
from keryx.gateway.delivery.ledger import NewMessage
from keryx.ports.platform import Content, OutgoingFile

MEDIA_TOOLS: Final = ("image_generate", "text_to_speech")
"""Tools whose new files are sent to the chat."""


class TurnProgress:
    """Collects the events of one turn."""

    def __init__(self) -> None:
        self._streamed = ""
        self._last_text = ""
        self._running: dict[str, str] = {}
        self._media_calls: set[str] = set()
        self.request_texts: dict[str, str] = {}
        """What the turn asked people, by the key of the message."""
        self.new_files: list[tuple[str, str]] = []
        """The workspace and the path of files that tools for media made."""

    def note(self, event: ev.Event) -> None:
        match event:
            case ev.TextDelta():
                self._streamed += event.text
            case ev.StepSnapshot():
                self._streamed = event.text
            case ev.StepReset() | ev.StepStarted() | ev.StepAbandoned():
                self._streamed = ""
            case ev.StepReplied():
                self._last_text = event.text or self._last_text
                self._streamed = ""
            case ev.CallStarted():
                self._running[event.call_id] = event.tool
                if event.tool in MEDIA_TOOLS:
                    self._media_calls.add(event.call_id)
            case ev.FilesChanged():
                if event.call_id in self._media_calls and event.before is None and event.after:
                    self.new_files.append((event.workspace, event.path))
            case ev.CallFinished():
                self._running.pop(event.call_id, None)
            case _:
                return

    def preview(self) -> str:
        """Return the text so far, for a message that is replaced later."""
        parts = [self._streamed or self._last_text]
        if self._running:
            parts.append(f"Running: {', '.join(self._running.values())}")
        text = "\n\n".join(part for part in parts if part)
        return f"{text} …" if text else ""

    def answer(self, end: ev.TurnFinished) -> str:
        """Return the whole answer in Markdown."""
        match end.outcome:
            case "completed":
                return self._last_text.strip() or "(The answer is empty.)"
            case "cancelled":
                return f"{self._last_text}\n\nStopped.".strip()
            case "failed" | "parked":
                if end.error is None:
                    why = "This turn made no progress and was ended. Send the message again."
                else:
                    why = f"{end.error.message}. {end.error.hint}".strip()
                return f"{self._last_text}\n\nIt failed: {why}".strip()


def status_key(turn: AwaitedTurn) -> str:
    """Return the ledger's key of the message that shows that the turn runs."""
    return f"{turn.turn_id}:status"


def answer_messages(
    turn: AwaitedTurn, contents: Sequence[Content], files: Sequence[OutgoingFile] = ()
) -> list[NewMessage]:
    """Return an answer: its first message replaces the status, and its files follow."""
    messages = [
        NewMessage(
            key=f"{turn.turn_id}:{number}",
            address=turn.address,
            content=content,
            action="send" if number else "answer",
            target=None if number else status_key(turn),
            reply_to=None if number else turn.reply_to,
        )
        for number, content in enumerate(contents)
    ]
    return messages + [
        NewMessage(
            key=f"{turn.turn_id}:file:{number}",
            address=turn.address,
            content=Content(file=file),
        )
        for number, file in enumerate(files)
    ]
