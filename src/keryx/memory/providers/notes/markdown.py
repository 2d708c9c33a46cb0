"""The text of a file of notes: how it is read into blocks, and how memories are written in it.

An item is `- text <!-- ID -->`; further lines of its text are indented by two spaces. Everything
else is prose, which is never changed. Any text can be written and read back: a backslash escapes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from keryx.events import Trust

INDENT: Final = "  "
LABELS: Final[dict[Trust, str]] = {
    "person": "",
    "tool": "from a file or a tool",
    "page": "from a web page",
}
"""Whom a memory can be trusted like, in words; a person's own words need none."""
_TRUST: Final[dict[str, Trust]] = {words: trust for trust, words in LABELS.items()}

_FIRST: Final = re.compile(
    r"^[-*+][ \t]+(?P<body>.*?)(?P<comment>[ \t]*(?<!\\)<!-- [^<>]* -->)?[ \t\r]*$"
)
_LAST: Final = re.compile(r"^(?P<body>.*?)(?P<comment>[ \t]*(?<!\\)<!-- [^<>]* -->)[ \t\r]*$")
_COMMENT: Final = re.compile(r"^[ \t]*<!-- (?P<id>[\w./:@+-]+)(?:, (?P<label>[^<>]*))? -->$")
_RULE: Final = re.compile(r"^[-*_ \t]*$")
_ESCAPE: Final = re.compile(r"\\([\\<&])|\\$|&#13;")
_MINTED: Final = re.compile(r"^mem_[0-9a-f]{16}$")


class Item(msgspec.Struct, frozen=True):
    """A line of the list, with the lines that continue it."""

    text: str
    raw: str
    """What the file has, with the line ends."""
    id: str | None = None
    trust: Trust = "person"
    comment: str = ""
    """The comment with the id as it stands in the file."""

    def without_id(self, *, is_known: bool) -> Item:
        """Return the item as a person's: an id of Keryx is dropped, any other comment is text."""
        if self.id is None or is_known or _MINTED.match(self.id):
            return msgspec.structs.replace(self, id=None, trust="person")
        first, *rest = self.text.split("\n")
        text = "\n".join([first + _decode(self.comment), *rest])
        return msgspec.structs.replace(self, text=text, id=None, trust="person", comment="")

    def with_id(self, memory_id: str, trust: Trust = "person") -> Item:
        """Return the item with this id in its first line; a person's words stay as they are."""
        first, newline, rest = self.raw.partition("\n")
        first = first.rstrip(" \t\r")
        if self.comment and first.endswith(self.comment):
            first = first.removesuffix(self.comment)
        elif self.comment:
            before, _, after = rest.rpartition(self.comment)
            rest = before + after
        comment = _comment(memory_id, trust)
        raw = f"{first}{comment}{newline or chr(10)}{rest}"
        return msgspec.structs.replace(self, raw=raw, id=memory_id, trust=trust, comment=comment)


Block = Item | str
"""An item, or prose: one or more lines as they are."""


def new_item(memory_id: str, text: str, trust: Trust) -> Item:
    """Return a memory as an item."""
    first, *rest = text.split("\n")
    first = ("\\" if first[:1] in (" ", "\t") else "") + _encode(first)
    comment = _comment(memory_id, trust)
    lines = [f"- {first}{comment}", *(INDENT + _encode(line) for line in rest)]
    raw = "".join(f"{line}\n" for line in lines)
    return Item(text=text, raw=raw, id=memory_id, trust=trust, comment=comment)


def parse(content: str) -> list[Block]:
    """Return the blocks of a file. Rendered again, they are the same text."""
    mark = "\ufeff" if content.startswith("\ufeff") else ""
    blocks: list[Block] = [mark] if mark else []
    lines = _lines(content.removeprefix(mark))
    at = 0
    while at < len(lines):
        end = at + 1
        match = _FIRST.match(lines[at].removesuffix("\n"))
        if match is None or (match["comment"] is None and _RULE.match(match["body"])):
            blocks.append(lines[at])
        else:
            while end < len(lines) and _continues(lines[end]):
                end += 1
            blocks.append(_item(match, lines[at:end]))
        at = end
    return blocks


def render(blocks: Iterable[Block]) -> str:
    return "".join(block if isinstance(block, str) else block.raw for block in blocks)


def append(blocks: Sequence[Block], items: Sequence[Item]) -> list[Block]:
    """Return the blocks with new items behind the last one of the list."""
    if not items:
        return list(blocks)
    place = max((at for at, block in enumerate(blocks, 1) if isinstance(block, Item)), default=None)
    before = list(blocks if place is None else blocks[:place])
    after = [] if place is None else list(blocks[place:])
    text = render(before[-1:])
    if text and not text.endswith("\n"):
        before.append("\n")
    if place is None and text.strip():
        before.append("\n")
    return [*before, *items, *after]


def _item(match: re.Match[str], lines: Sequence[str]) -> Item:
    body, comment = match["body"], match["comment"] or ""
    rest = [
        line.removeprefix("\t" if line.startswith("\t") else INDENT).rstrip(" \t\r\n")
        for line in lines[1:]
    ]
    # An editor that wraps long lines moves the comment to the end of the item.
    last = _LAST.match(rest[-1]) if rest and not comment else None
    if last is not None and _COMMENT.match(last["comment"]):
        rest[-1], comment = last["body"], last["comment"]
    fields = _COMMENT.match(comment)
    if fields is None:
        body, comment = body + comment, ""
    first = _decode(body[1:]) if re.match(r"\\[ \t]", body) else _decode(body)
    label = ((fields and fields["label"]) or "").strip()
    trust: Trust = _TRUST.get(label) or "page"
    return Item(
        text="\n".join([first, *map(_decode, rest)]),
        raw="".join(lines),
        id=fields["id"] if fields else None,
        trust=trust,
        comment=comment,
    )


def _lines(content: str) -> list[str]:
    # Only a newline ends a line: a text may have any other separator in it.
    lines = [f"{line}\n" for line in content.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _continues(line: str) -> bool:
    return line.startswith((INDENT, "\t")) and bool(line.strip(" \t\r\n"))


def _comment(memory_id: str, trust: Trust) -> str:
    label = LABELS[trust]
    return f" <!-- {memory_id}, {label} -->" if label else f" <!-- {memory_id} -->"


def _encode(line: str) -> str:
    text = line.replace("\\", "\\\\").replace("<!--", "\\<!--").replace("&#13;", "\\&#13;")
    text = text.replace("\r", "&#13;")
    # Editors cut blanks at the end of a line, and a line without text ends the item.
    return text + "\\" if not text or text[-1] in " \t" else text


def _decode(line: str) -> str:
    return _ESCAPE.sub(lambda match: "\r" if match[0] == "&#13;" else match[1] or "", line)
