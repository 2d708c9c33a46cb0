"""A diff of any two texts, applied to the first, gives the second."""

from __future__ import annotations

import difflib

from hypothesis import assume, given
from hypothesis import strategies as st

from keryx.tools.files.content import decode
from keryx.tools.files.patch.marked import read_marked
from keryx.tools.files.patch.matching import apply
from keryx.tools.files.patch.sections import PatchError
from keryx.tools.files.patch.unified import read_unified

# Few different lines, so that they repeat; some look like a patch themselves.
LINE = st.sampled_from(["", "a", "b", " a", "\ta", "-- a", "++ b", "@@ x", "-a", "+a", "é", "a "])
LINES = st.lists(LINE, max_size=30)
ENDING = st.sampled_from(["\n", "\r\n"])


@st.composite
def texts(draw: st.DrawFn) -> tuple[str, str]:
    ending = draw(ENDING)
    old = draw(LINES)
    new = draw(st.one_of(LINES, edits_of(old)))
    contents = [ending.join([*lines, ""]) for lines in (old, new)]
    cut = [draw(st.booleans()) for _ in contents]
    return tuple(  # pyright: ignore[reportReturnType]  # two of them
        text.removesuffix(ending) if short else text
        for text, short in zip(contents, cut, strict=True)
    )


def edits_of(lines: list[str]) -> st.SearchStrategy[list[str]]:
    """The same lines with a few of them replaced, dropped or doubled."""
    change = st.lists(LINE, max_size=2)
    count = max(len(lines) // 8, 1)
    places = st.lists(st.integers(0, max(len(lines) - 1, 0)), max_size=count)

    def edited(at: list[int], replacement: list[str]) -> list[str]:
        result = list(lines)
        for place in at:
            result[place : place + 1] = replacement
        return result

    return st.builds(edited, places, change)


def diff(old: str, new: str) -> str:
    """What `diff -u` prints."""
    lines = difflib.unified_diff(lines_of(old), lines_of(new), "a/f", "b/f")
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def lines_of(text: str) -> list[str]:
    return [f"{line}\n" for line in text.split("\n")[:-1]] + [
        line for line in text.split("\n")[-1:] if line
    ]


@given(texts())
def test_a_unified_diff_applies_exactly(pair: tuple[str, str]) -> None:
    old, new = pair
    text = diff(old, new)
    if not text:
        return
    (section,) = read_unified(text)
    content = decode(old.encode())
    assert content is not None
    applied = apply(content, section.hunks)
    assert applied.failures == []
    assert applied.data.decode() == new


@given(texts())
def test_a_patch_in_sections_does_what_it_says_or_nothing(pair: tuple[str, str]) -> None:
    """Without line numbers a place may be ambiguous; then it is refused, never guessed."""
    old, new = (text and text.rstrip("\r\n") + "\n" for text in pair)
    assume(old != new)
    hunks = diff(old, new).split("\n")[2:]
    bare = ["@@" if line.startswith("@@ -") else line for line in hunks]
    (section,) = read_marked("\n".join(["*** Update File: f", *bare, "*** End Patch"]))
    content = decode(old.encode())
    assert content is not None
    applied = apply(content, section.hunks)
    if not applied.failures:
        assert applied.data.decode() == new


HEADER = st.sampled_from(
    [
        "*** Begin Patch",
        "*** End Patch",
        "*** Update File: f",
        "*** Add File: g",
        "*** Delete File: h",
        "*** Move to: i",
        "*** End of File",
        "@@",
        "@@ a",
        "@@ -1,2 +1,2 @@",
        "@@ -0,0 +1 @@",
        "@@ -9,0 +9,9 @@ x",
        "--- a/f",
        "+++ b/f",
        "+++ /dev/null",
        "diff --git a/f b/g",
        "rename from f",
        'rename to "g\\303"',
        "\\ No newline at end of file",
        "\r",
    ]
)


@given(st.lists(st.one_of(HEADER, LINE), max_size=40), LINES)
def test_any_text_is_a_patch_or_is_told_not_to_be(lines: list[str], old: list[str]) -> None:
    content = decode("\n".join(old).encode())
    assert content is not None
    for read in (read_marked, read_unified):
        try:
            sections = read("\n".join(lines))
        except PatchError:
            continue
        for section in sections:
            applied = apply(content, section.hunks)
            assert decode(applied.data) is not None
