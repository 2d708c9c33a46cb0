"""A conversation as Markdown, for people and for other programs."""

from __future__ import annotations

import re
from typing import Final

from keryx.app.portable.conversation import Entry, readable
from keryx.app.portable.html_page import about, file_name
from keryx.app.portable.session_file import SessionFile
from keryx.messages import File, Image

_NAMES: Final = {"person": "You", "agent": "Agent", "note": "Note", "call": "Call"}
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")


def as_markdown(session: SessionFile) -> bytes:
    """Return the conversation as Markdown; calls are code blocks."""
    conversation = readable(session.events)
    head = [f"# {_line(conversation.title) or 'Session'}", "", about(conversation), ""]
    body = [line for entry in conversation.entries for line in _markdown(entry)]
    return "\n".join([*head, *body]).encode()


def _line(text: str) -> str:
    return " ".join(text.split())


def _markdown(entry: Entry) -> list[str]:
    if entry.kind == "call":
        block = [f"**{_line(entry.title)}**", "", *_fenced(entry.detail, "json")]
        return [*block, "", *_fenced(entry.text), "", *_attached(entry.files)]
    lines = [f"## {_NAMES[entry.kind]}", ""]
    if entry.detail:
        lines += [*(f"> {line}" for line in entry.detail.splitlines()), ""]
    return [*lines, entry.text, *_open_fence(entry.text), "", *_attached(entry.files)]


def _open_fence(text: str) -> list[str]:
    """Return the line that ends a code block which the text leaves open."""
    fence = ""
    for line in text.splitlines():
        marks = _FENCE.match(line)
        if marks is None:
            continue
        if not fence:
            fence = marks[1]
        elif marks[1].startswith(fence) and line.strip() == marks[1]:
            fence = ""
    return [fence] if fence else []


def _fenced(text: str, language: str = "") -> list[str]:
    """Return a code block whose fence is longer than any in the text."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence + language, text, fence]


def _attached(files: tuple[Image | File, ...]) -> list[str]:
    return [line for file in files for line in (f"[{file_name(file)}]", "")]
