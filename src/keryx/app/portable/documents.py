"""A conversation as a document for people: Markdown, or one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from keryx.app.portable.conversation import Entry, ReadableSession, readable
from keryx.app.portable.session_file import SessionFile
from keryx.messages import File, Image

_NAMES: Final = {"person": "You", "agent": "Agent", "note": "Note", "call": "Call"}
_SHOWN_IMAGES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""Images that a browser shows and that can hold no script."""
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_STYLE: Final = """
:root { color-scheme: light dark; --line: #8885; --soft: #8881; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 48rem; margin: 2rem auto; padding: 0 1rem; }
header, article { border-bottom: 1px solid var(--line); padding: .75rem 0; }
article.person { background: var(--soft); padding-left: .75rem; }
h1 { font-size: 1.3rem; } h2 { font-size: .9rem; margin: 0; }
time, footer { opacity: .7; font-size: .8rem; font-weight: normal; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .25rem 0; font: inherit; }
details pre { font: .85rem/1.4 ui-monospace, monospace; background: var(--soft); padding: .5rem; }
img { max-width: 100%; }
"""


def as_markdown(session: SessionFile) -> bytes:
    """Return the conversation as Markdown; calls are code blocks."""
    conversation = readable(session.events)
    head = [f"# {_line(conversation.title) or 'Session'}", "", _about(conversation), ""]
    body = [line for entry in conversation.entries for line in _markdown(entry)]
    return "\n".join([*head, *body]).encode()


def as_html(session: SessionFile) -> bytes:
    """Return the conversation as one HTML file: no script, no network, light and dark."""
    conversation = readable(session.events)
    blobs = {blob.hash: blob.data for blob in session.blobs}
    title = html.escape(conversation.title or "Session")
    # The policy lets a browser load nothing, whatever the texts hold.
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title><style>{_STYLE}</style></head><body>",
        f"<header><h1>{title}</h1><footer>{html.escape(_about(conversation))}</footer></header>",
        *(_article(entry, blobs) for entry in conversation.entries),
        "</body></html>\n",
    ]
    return "\n".join(parts).encode()


def _about(conversation: ReadableSession) -> str:
    model = _line(conversation.model)
    return (
        f"Session {conversation.session_id}, {_time(conversation.at)}, model {model or 'unknown'}"
    )


def _time(at: float) -> str:
    try:
        return f"{datetime.fromtimestamp(at, UTC).astimezone():%Y-%m-%d %H:%M}"
    except (OverflowError, ValueError, OSError):
        return "at an unknown time"


def _line(text: str) -> str:
    return " ".join(text.split())


# -- Markdown


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
    return [line for file in files for line in (f"[{_name(file)}]", "")]


def _name(file: Image | File) -> str:
    return f"{_line(file.name) or file.blob[:12]} ({_line(file.media_type)})"


# -- HTML


def _article(entry: Entry, blobs: Mapping[str, bytes]) -> str:
    heading = entry.title if entry.kind == "call" else _NAMES[entry.kind]
    time = f"<time>{_time(entry.at)}</time>"
    files = "".join(_figure(file, blobs) for file in entry.files)
    text = html.escape(entry.text)
    if entry.kind == "call":
        body = (
            f"<details><summary>{html.escape(heading)} {time}</summary>"
            f"<pre>{html.escape(entry.detail)}</pre><pre>{text}</pre></details>"
        )
    else:
        body = f"<h2>{html.escape(heading)} {time}</h2>"
        if entry.detail:
            body += (
                f"<details><summary>Reasoning</summary><pre>{html.escape(entry.detail)}</pre>"
                "</details>"
            )
        body += f"<pre>{text}</pre>"
    return f'<article class="{entry.kind}">{body}{files}</article>'


def _figure(file: Image | File, blobs: Mapping[str, bytes]) -> str:
    data, name = blobs.get(file.blob), html.escape(_name(file))
    if data is None or file.media_type not in _SHOWN_IMAGES:
        return f"<p>[{name}]</p>"
    content = base64.b64encode(data).decode()
    return f'<p><img src="data:{file.media_type};base64,{content}" alt="{name}"></p>'
