"""Edits of TOML: of any document and any change, all comments and all other settings stay."""

from __future__ import annotations

import tomllib
from collections import Counter
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keryx.config.editing import CannotEditError, Change, edited
from keryx.config.editing.statements import comments
from keryx.config.editing.text_edits import ABSENT, applied
from keryx.config.editing.values import render, render_key

pytestmark = pytest.mark.promise("page20.10")

NAMES = st.sampled_from(("a", "b", "c", "x y", "ü", "d.e"))
TEXT = st.text(
    st.characters(exclude_categories=("Cs",), include_characters="#\"'[]{}=\n\\"), max_size=12
)
SCALARS = st.one_of(
    st.booleans(), st.integers(-(2**40), 2**40), st.floats(-1e9, 1e9, allow_nan=False), TEXT
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
NOTES = st.text(st.sampled_from("abc #'\"[]="), max_size=8).map(lambda words: f"#{words}")
SPACES = st.sampled_from(("", " ", "\t", "   "))


@st.composite
def arrays(draw: st.DrawFn) -> str:
    """An array over several lines, with comments at all places."""
    lines = ["["]
    for item in draw(st.lists(SCALARS, max_size=4)):
        if draw(st.booleans()):
            lines.append(f"  {draw(NOTES)}")
        note = f" {draw(NOTES)}" if draw(st.booleans()) else ""
        lines.append(f"  {render(item)},{note}")
    return "\n".join([*lines, "]"])


@st.composite
def pairs(draw: st.DrawFn, names: set[str]) -> list[str]:
    """Lines of settings, of comments and of nothing."""
    lines: list[str] = []
    for name in draw(st.lists(NAMES, max_size=4, unique=True)):
        if name in names:
            continue
        names.add(name)
        key = (name, *draw(st.lists(NAMES, max_size=1)))
        lines += draw(st.lists(st.one_of(NOTES, st.just("")), max_size=2))
        value = draw(st.one_of(VALUES.map(render), arrays()))
        note = f"{draw(SPACES)}{draw(NOTES)}" if draw(st.booleans()) else ""
        lines.append(f"{draw(SPACES)}{render_key(key)} = {value}{note}")
    return lines


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Valid TOML: settings, tables, arrays of tables, comments everywhere."""
    lines = draw(pairs(names := set[str]()))
    del names
    for path in draw(st.lists(st.lists(NAMES, min_size=1, max_size=3), max_size=5)):
        form = "[[{}]]" if draw(st.integers(0, 4)) == 0 else "[{}]"
        header = form.format(render_key(path))
        section = [f"{header} {draw(NOTES)}" if draw(st.booleans()) else header]
        section += draw(pairs(set[str]()))
        section += draw(st.lists(st.one_of(NOTES, st.just("")), max_size=2))
        if is_valid("\n".join([*lines, *section])):
            lines += section
    text = "\n".join(lines) + draw(st.sampled_from(("", "\n", "\n\n")))
    return text if is_valid(text) else ""


def is_valid(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


def paths_of(value: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    below = [*cast("dict[str, Any]", value).items()] if isinstance(value, dict) else []
    return [
        *([path] if path else []),
        *(p for name, v in below for p in paths_of(v, (*path, name))),
    ]


@st.composite
def changes(draw: st.DrawFn, text: str) -> list[Change]:
    new_paths = st.lists(NAMES, min_size=1, max_size=3).map(tuple)
    existing = paths_of(tomllib.loads(text))
    paths = st.one_of(st.sampled_from(existing), new_paths) if existing else new_paths
    values = st.one_of(VALUES, st.just(ABSENT))
    count = draw(st.integers(1, 3))
    return [Change(draw(paths), draw(values)) for _ in range(count)]


def pruned(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    items = {name: pruned(item) for name, item in cast("dict[str, Any]", value).items()}
    return {name: item for name, item in items.items() if item != {}}


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_every_comment_and_every_other_setting_stays(data: st.DataObject) -> None:
    text = data.draw(documents(), label="text")
    asked_for = data.draw(changes(text), label="changes")
    try:
        expected = applied(tomllib.loads(text), asked_for)
    except CannotEditError:
        return  # a setting below one that is no table
    result = edited(text, asked_for)
    assert pruned(tomllib.loads(result)) == pruned(expected)
    assert not Counter(comments(text)) - Counter(comments(result))
