"""The tags of sessions: how a tag is written, how many a session has, and when two are the same."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Final

import msgspec

from keryx.errors import UserMustActError

MOST_TAGS: Final = 20
"""Tags of one session."""
LONGEST_TAG: Final = 40
"""Characters of one tag."""


class TagCount(msgspec.Struct, frozen=True, kw_only=True):
    """A tag, and how many sessions have it. Child agents' sessions do not count."""

    name: str
    sessions: int
    """Those in the list."""
    archived: int


def tag_key(name: str) -> str:
    """Return what two tags have in common if they differ only in case."""
    return name.casefold()


def clean_tags(names: Iterable[str]) -> tuple[str, ...]:
    """Return the tags trimmed, each once, in the order of the alphabet.

    `UserMustActError` if there are too many, or if one is empty, too long or not one line.
    """
    lines = [" ".join(name.split()) for name in names]
    for line in lines:
        _check(line)
    tags = distinct_tags(lines)
    if len(tags) > MOST_TAGS:
        raise UserMustActError(
            f"a session has at most {MOST_TAGS} tags, and these are {len(tags)}; remove some"
        )
    return tags


def distinct_tags(names: Iterable[str]) -> tuple[str, ...]:
    """Return the tags of a log, which may come from elsewhere: each once, on one line, sorted."""
    tags: dict[str, str] = {}
    for name in names:
        if line := " ".join(name.split()):
            tags.setdefault(tag_key(line), line)
    return tuple(tags[key] for key in sorted(tags))


def _check(tag: str) -> None:
    if not tag:
        raise UserMustActError("a tag cannot be empty; write a word, or leave it out")
    if len(tag) > LONGEST_TAG:
        raise UserMustActError(
            f"a tag has at most {LONGEST_TAG} characters, and one has {len(tag)}; shorten it"
        )
    if any(unicodedata.category(character) in ("Cc", "Cs", "Co", "Cn") for character in tag):
        raise UserMustActError("a tag cannot hold control characters; remove them")
