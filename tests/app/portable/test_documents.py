"""Exports for people: Markdown, and one HTML file that no text in it can break."""

from __future__ import annotations

import re
from functools import partial
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

from keryx.app.portable.html_page import as_html
from keryx.app.portable.markdown_document import as_markdown
from keryx.app.portable.session_file import SessionFile
from keryx.messages import Image, Text, ToolCall
from keryx.ports.store import Blob, blob_hash
from keryx.testing.event_factory import EventFactory
from tests.app.portable.test_round_trip import PNG
from tests.cli import commands

pytestmark = pytest.mark.promise("model.6")

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</pre></details></article><iframe src=https://example.org></iframe>",
    "<style>@import 'https://example.org'</style>",
    "````\n# not a heading\n```",
    "&lt;b&gt; \x00\x1b[31m \u202e",
    "[click](javascript:alert(1))",
]
ALLOWED = {
    *("html", "head", "meta", "title", "style", "body", "header", "h1", "footer", "article"),
    *("h2", "time", "details", "summary", "pre", "p", "img", "main", "div", "code"),
}


def session(text: str) -> SessionFile:
    """A session that has this text at every place."""
    facts = EventFactory("s")
    image = Blob(blob_hash(PNG), PNG)
    shown = Image(image.hash, "image/png", text)
    vector = Image(image.hash, "image/svg+xml", text)
    accepted = msgspec.structs.replace(facts.accepted("m1", text), attachments=(shown, vector))
    events = (
        facts.opened(text),
        *(accepted, facts.started("t1", "m1"), facts.delivered(), facts.step(text)),
        msgspec.structs.replace(
            facts.replied(text), reasoning=text, calls=(ToolCall("c1", text, text),)
        ),
        msgspec.structs.replace(facts.call(), tool=text, arguments=text),
        msgspec.structs.replace(facts.called(result=(Text(text),)), tool=text),
        *(facts.compacted(text), facts.finished(outcome="failed")),
    )
    return SessionFile(
        events=tuple(
            msgspec.structs.replace(event, seq=number) for number, event in enumerate(events, 1)
        ),
        blobs=(image,),
    )


class Tags(HTMLParser):
    """The tags and the text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_stays_text(text: str) -> None:
    page = as_html(session(text)).decode()
    tags = Tags()
    tags.feed(page)
    tags.close()
    assert tags.open == [], "the tags are balanced: no text has closed one"
    assert {tag for tag, _ in tags.tags} <= ALLOWED
    assert not any(name.startswith("on") for _, attributes in tags.tags for name in attributes)
    sources = [attributes["src"] for tag, attributes in tags.tags if tag == "img"]
    assert sources
    assert all((source or "").startswith("data:image/png;base64,") for source in sources)
    assert tags.text.count(text.replace("\x00", "\ufffd")) + tags.text.count(text) >= 5
    assert "default-src 'none'" in page
    assert "prefers-color-scheme" in page or "color-scheme: light dark" in page


@pytest.mark.parametrize("text", HOSTILE)
def test_code_blocks_of_markdown_end_where_they_should(text: str) -> None:
    lines = as_markdown(session(text)).decode().split("\n")
    fence = ""
    blocks = 0
    for line in lines:
        marks = re.match(r"`{3,}", line)
        if not fence and marks:
            fence, blocks = marks[0], blocks + 1
        elif fence and line == fence:
            fence = ""
    assert fence == ""
    assert blocks >= 2


def test_the_command_writes_every_format_and_imports_its_json(tmp_path: Path) -> None:
    home = tmp_path / "home"
    keryx = partial(commands.keryx, home)
    with commands.model_server(home, {"text": "Hi."}):
        assert keryx("run", "Say hi").returncode == 0
    name = keryx("sessions", "list").stdout.split()[0]
    for form, words in (
        *(("markdown", "## You"), ("html", "<article"), ("json", "keryx.session")),
        ("jsonl", '"session.opened"'),
    ):
        printed = keryx("sessions", "export", name, "--format", form).stdout
        path = tmp_path / f"s.{form}"
        written = keryx("sessions", "export", name, "--format", form, "-o", str(path))
        assert written.returncode == 0, written.stderr
        assert words in printed
        assert path.read_text() == printed
        assert path.stat().st_mode & 0o077 == 0
    imported = keryx("sessions", "import", str(tmp_path / "s.json"))
    assert imported.returncode == 0, imported.stderr
    copy = imported.stdout.strip()
    assert copy != name
    shown = keryx("sessions", "show", copy).stdout
    assert shown == keryx("sessions", "show", name).stdout
    refused = keryx("sessions", "import", str(tmp_path / "s.html"))
    assert refused.returncode == 1
    assert "nothing was imported" in refused.stderr
    absent = keryx("sessions", "export", name, "-o", str(tmp_path / "no" / "s"))
    assert (absent.returncode, "cannot be written" in absent.stderr) == (1, True)


def test_each_block_has_the_direction_of_its_own_text() -> None:
    text = "\u05e9\u05dc\u05d5\u05dd!\n\n- one\n\n```\ncode\n```\n"
    tags = Tags()
    tags.feed(as_html(session(text)).decode())
    tags.close()
    written = [attrs for tag, attrs in tags.tags if tag in ("h1", "p", "ul") and attrs]
    assert written
    assert all(attrs.get("dir") == "auto" for attrs in written)
    # Code is written from left to right; what a person or a tool wrote is not read as Markdown.
    blocks = [attrs.get("dir") for tag, attrs in tags.tags if tag == "pre"]
    assert blocks.count(None) == 1
    assert set(blocks) == {None, "auto"}
