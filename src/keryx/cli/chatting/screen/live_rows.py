"""The rows of the live region: the open end of the reply, calls, requests, the queue, the status.

It depends on the transcript and the time alone; rows fit the width and never exceed the height.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.utils import get_cwidth

from keryx.cli.chatting.pieces import Piece, one_line
from keryx.cli.chatting.requests import WAITING, choices_of, short_text
from keryx.cli.chatting.running_calls import CallRow, seconds
from keryx.cli.chatting.screen.painter import Painter
from keryx.cli.chatting.transcript import Transcript

BAR: Final = 10
"""Cells of a progress bar."""
MOST_CALLS: Final = 6
MOST_QUEUED: Final = 3
THINKING_TAIL: Final = 200
"""Characters at the end of the reasoning, of which one row is shown."""
Row = StyleAndTextTuples


class LiveRows:
    """Describes what runs at this moment."""

    def __init__(self, painter: Painter) -> None:
        self._painter = painter

    def rows(self, transcript: Transcript, width: int, height: int, now: float) -> list[Row]:
        """Return at most `height` rows; requests are the last to be left out."""
        requests = _request_rows(transcript, width)
        if len(requests) > height:
            # Keys without words: what is asked must be seen too.
            requests = _request_rows(transcript, width, keys_only=True)[:height]
        queue = _queue_rows(transcript, width)
        calls = _call_rows(transcript, width, now)
        activity = _activity(transcript, width)
        room = height - len(requests) - len(queue) - len(activity)
        calls = calls[: max(0, room)]
        tail = self._tail(transcript, width)[-max(0, room - len(calls)) :] if room > 0 else []
        rows = [*tail, *calls, *activity, *queue, *requests]
        if rows and not tail and self._painter.begins_block(Piece("call", "")):
            rows.insert(0, [])
        return rows[-height:]

    def _tail(self, transcript: Transcript, width: int) -> list[Row]:
        reply = transcript.reply
        piece = None if reply is None else reply.stream.tail
        if piece is None:
            return []
        # Only the end is visible, so a long open block is not painted as a whole.
        text = "\n".join(piece.text.split("\n")[-40:])[-8_000:]
        rows = self._painter.block(piece._replace(text=text), width)
        if piece.kind == "code":
            rows = [one_line(text, width)]
        if self._painter.begins_block(piece):
            rows.insert(0, "")
        return [to_formatted_text(ANSI(row)) for row in rows]


def _fit(text: str, width: int) -> str:
    """Return the text cut to the width in cells."""
    if get_cwidth(text) <= width:
        return text
    while text and get_cwidth(text) > width - 1:
        text = text[:-1]
    return f"{text}…"


def _call_rows(transcript: Transcript, width: int, now: float) -> list[Row]:
    rows: list[Row] = []
    calls = list(transcript.calls.rows.values())
    for call in calls[:MOST_CALLS]:
        time = seconds(max(0.0, now - call.began)).replace(".0", "") if now else ""
        ending = f" {_progress(call)}{time}"
        title = _fit(f"{call.number} {call.title}", width - 2 - get_cwidth(ending))
        rows.append([("class:running", "▶ "), ("", title), ("class:dim", ending)])
        if call.last_line:
            rows.append([("class:dim", _fit(f"    {one_line(call.last_line, width)}", width))])
    if len(calls) > MOST_CALLS:
        rows.append([("class:dim", f"  … {len(calls) - MOST_CALLS} more calls")])
    return rows


def _progress(call: CallRow) -> str:
    nested = f"{call.nested} nested · " if call.nested else ""
    if call.done is None or not call.total:
        return nested
    part = min(1.0, max(0.0, call.done / call.total))
    filled = round(part * BAR)
    return f"{nested}{'━' * filled}{'╌' * (BAR - filled)} {part:.0%} · "


def _activity(transcript: Transcript, width: int) -> list[Row]:
    reply = transcript.reply
    if transcript.is_compacting:
        return [[("class:dim", "Compacting the context…")]]
    if reply is not None and reply.reasoning and not reply.text:
        end = one_line(reply.reasoning[-THINKING_TAIL:], THINKING_TAIL)
        return [[("class:dim", _fit(f"Thinking… {end}", width))]]
    if not transcript.is_running or transcript.calls.rows or (reply is not None and reply.text):
        return []
    return [[("class:dim", "Stopping…" if transcript.is_cancelling else "Working…")]]


def _queue_rows(transcript: Transcript, width: int) -> list[Row]:
    messages = list(transcript.queue.values()) if transcript.is_running else []
    rows: list[Row] = []
    for number, message in enumerate(messages[:MOST_QUEUED], 1):
        label = "Steer" if message.mode == "steer" else f"Queued {number}"
        rows.append([("class:dim", _fit(f"{label}: {one_line(message.text, width)}", width))])
    if len(messages) > MOST_QUEUED:
        rows.append([("class:dim", f"… {len(messages) - MOST_QUEUED} more queued")])
    return rows


def _request_rows(transcript: Transcript, width: int, *, keys_only: bool = False) -> list[Row]:
    request = transcript.pending.first
    if request is None:
        return []
    line = f"{transcript.pending.heading}: {short_text(request, width)}"
    rows: list[Row] = [[("class:waiting", _fit(line, width))]]
    labels = [
        choice.key.upper() if keys_only else f"{choice.key.upper()} {choice.label}"
        for choice in choices_of(request)
    ]
    labels = labels or ["Enter answers with the draft"]
    line = "Ctrl+X, then: "
    for label in labels:
        if get_cwidth(line) + get_cwidth(label) + 3 > width and line.strip():
            rows.append([("class:waiting", line.rstrip(" ·"))])
            line = "  "
        line += f"{_fit(label, width - 3)} · "
    rows.append([("class:waiting", line.rstrip(" ·"))])
    return rows


def status(transcript: Transcript, width: int, attached: int, hint: str) -> str:
    """Return the status line: as many parts as fit, the important ones first."""
    if hint:
        return _fit(hint, width)
    state = ""
    if transcript.pending.first is not None:
        state = WAITING
    elif transcript.is_cancelling:
        state = "Stopping…"
    elif transcript.is_running:
        state = "Working…"
    parts = [
        state,
        f"{attached} attached" if attached else "",
        transcript.model.rpartition(":")[2],
        _context(transcript),
        _cost(transcript),
        Path(transcript.workspace).name,
        one_line(transcript.title, 40),
    ]
    line = ""
    for part in filter(None, parts):
        longer = f"{line} · {part}" if line else part
        if get_cwidth(longer) <= width:
            line = longer
    return line or "/help"


def _context(transcript: Transcript) -> str:
    context = transcript.context
    if context is None or context.last_prompt_tokens is None:
        return ""
    if context.window is None:
        return f"{context.last_prompt_tokens:,} tokens"
    return f"{context.last_prompt_tokens / context.window:.0%} of {context.window // 1000}k"


def _cost(transcript: Transcript) -> str:
    if transcript.cost is None:
        return "cost unknown"
    return f"${transcript.cost:.4f}" if transcript.cost else ""
