"""A conversation as one HTML file that needs nothing else: no script, no network, light and dark.

What a text holds stays text. A reply is read as Markdown, without raw HTML and without pictures
from elsewhere; everything else is shown as it was written.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import html
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from keryx.app.portable.conversation import Entry, ReadableSession, readable
from keryx.app.portable.session_file import SessionFile
from keryx.dates import time_text
from keryx.messages import File, Image

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore

_NAMES: Final = {"person": "You", "agent": "Agent", "note": "Note", "call": "Call"}
_DIRECTED: Final = frozenset(
    f"{block}_open"
    for block in ("paragraph", "heading", "bullet_list", "ordered_list", "blockquote", "table")
)
"""The blocks of a reply that have a direction; code has none: it is written from left to right."""
SHOWN_IMAGES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""Images that a browser shows and that can hold no script."""
_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1f1d1a; --dim: #67625a; --paper: #fbfaf7; --soft: #f3f1ec;
  --line: #e5e2da; --accent: #9a4f1d; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ece8e1; --dim: #a8a195; --paper: #171614; --soft: #242220; --line: #312e2a;
    --accent: #e39a63; }
}
* { box-sizing: border-box; }
body { color: var(--ink); background: var(--paper); font: 1rem/1.6 system-ui, sans-serif;
  max-width: 48rem; margin: 0 auto; padding: 2rem 1rem 4rem; overflow-wrap: anywhere; }
header { border-bottom: 1px solid var(--line); padding-bottom: 1rem; margin-bottom: 1.5rem; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .5rem; }
footer, time, .note { color: var(--dim); font-size: .85rem; font-weight: normal; }
footer p { margin: 0; }
article { margin: 0 0 1.25rem; }
article.person { background: var(--soft); border-radius: .75rem; padding: .75rem 1rem; }
article.note { border-inline-start: 3px solid var(--line); padding-inline-start: .75rem; }
h2.from { font-size: .85rem; margin: 0 0 .25rem; }
pre { white-space: pre-wrap; margin: .25rem 0; font: inherit; }
pre code, details pre, .reply pre { font: .85rem/1.5 ui-monospace, monospace; }
details pre, .reply pre { background: var(--soft); border-radius: .5rem; padding: .6rem .75rem; }
.reply pre { white-space: pre; overflow-x: auto; }
summary { cursor: pointer; color: var(--dim); font-size: .9rem; }
.reply > :first-child { margin-top: 0; } .reply > :last-child { margin-bottom: 0; }
.reply h1, .reply h2, .reply h3 { font-size: 1.1rem; margin: 1.25rem 0 .5rem; }
code { font: .88em ui-monospace, monospace; } a { color: var(--accent); }
blockquote { margin: .5rem 0; border-inline-start: 3px solid var(--line);
  padding-inline-start: .75rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { border: 1px solid var(--line); padding: .3rem .6rem; text-align: start; }
img { max-width: 100%; border-radius: .5rem; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
"""
_STYLE_HASH: Final = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
POLICY: Final = (
    f"default-src 'none'; img-src data:; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; "
    "form-action 'none'"
)
"""The policy lets a browser load nothing, whatever the texts hold."""


def as_html(session: SessionFile) -> bytes:
    """Return the conversation of a session as an HTML file."""
    return html_page(readable(session.events), {blob.hash: blob.data for blob in session.blobs})


def html_page(
    conversation: ReadableSession, blobs: Mapping[str, bytes], *, note: str = ""
) -> bytes:
    """Return the page of a conversation.

    A `note` takes the place of the line about the session: others read the page, and "You" would
    be the reader.
    """
    names = {**_NAMES, "person": "Person"} if note else _NAMES
    body = [
        f'<header><h1 dir="auto">{html.escape(conversation.title or "Session")}</h1>',
        f"<footer><p>{html.escape(note or about(conversation))}</p></footer></header>",
        "<main>",
        *(_article(entry, blobs, names) for entry in conversation.entries),
        "</main>",
    ]
    return document(conversation.title or "Session", "\n".join(body))


def document(title: str, body: str) -> bytes:
    """Return a whole document; the body is HTML already."""
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="robots" content="noindex, nofollow">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head><body>",
        body,
        "</body></html>\n",
    ]
    return "\n".join(parts).encode(errors="replace")


def about(conversation: ReadableSession) -> str:
    """Return one line about a session: its id, its time and its model."""
    model = " ".join(conversation.model.split())
    at = time_text(conversation.at)
    return f"Session {conversation.session_id}, {at}, model {model or 'unknown'}"


def file_name(file: Image | File) -> str:
    """Return a name for an attachment: its own, or the beginning of its hash."""
    name, media_type = " ".join(file.name.split()), " ".join(file.media_type.split())
    return f"{name or file.blob[:12]} ({media_type})"


def _article(entry: Entry, blobs: Mapping[str, bytes], names: Mapping[str, str]) -> str:
    heading = html.escape(entry.title if entry.kind == "call" else names[entry.kind])
    time = f"<time>{time_text(entry.at)}</time>"
    files = "".join(_figure(file, blobs) for file in entry.files)
    if entry.kind == "call":
        body = (
            f"<details><summary>{heading} {time}</summary>"
            f"{_text(entry.detail)}{_text(entry.text)}</details>"
        )
    else:
        body = f'<h2 class="from">{heading} {time}</h2>'
        if entry.detail:
            body += f"<details><summary>Reasoning</summary>{_text(entry.detail)}</details>"
        body += _reply(entry.text) if entry.kind == "agent" else _text(entry.text)
    return f'<article class="{entry.kind}">{body}{files}</article>'


def _text(text: str) -> str:
    """Return a text as it was written, in its own direction."""
    return f'<pre dir="auto">{html.escape(text)}</pre>'


@functools.cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415 (heavy; loaded with the first export)

    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.core.ruler.push("direction", _set_directions)
    return parser.disable("image")


def _set_directions(state: StateCore) -> None:
    """Let each block have its own direction: an answer may quote a language of the other one."""
    for token in state.tokens:
        if token.type in _DIRECTED:
            token.attrSet("dir", "auto")


def _reply(text: str) -> str:
    return f'<div class="reply">{_parser().render(text)}</div>'


def _figure(file: Image | File, blobs: Mapping[str, bytes]) -> str:
    data, name = blobs.get(file.blob), html.escape(file_name(file))
    if data is None or file.media_type not in SHOWN_IMAGES:
        return f"<p>[{name}]</p>"
    content = base64.b64encode(data).decode()
    return f'<p><img src="data:{file.media_type};base64,{content}" alt="{name}"></p>'
