"""`patch`: several files, all or nothing, in both ways of writing a patch."""

from __future__ import annotations

import errno
import os
import stat

import pytest

from keryx.aio import renames
from keryx.tools.files import edits, patch
from keryx.tools.files.patch.sections import paths_named
from tests.tools.files.file_session import FileSession

pytestmark = pytest.mark.promise("tools.6")

CODE = """\
import os


class One:
    def run(self):
        value = 1
        return value


class Two:
    def run(self):
        value = 1
        return value
"""


def marked(*lines: str) -> str:
    return "\n".join(("*** Begin Patch", *lines, "*** End Patch"))


async def test_one_patch_changes_adds_deletes_and_moves(session: FileSession) -> None:
    session.put("a.py", CODE)
    session.put("old.txt", "bye\n")
    session.put("here.sh", "run\n").chmod(0o755)
    await session.done("read_file", path="old.txt")
    said = await session.done(
        "patch",
        patch=marked(
            "*** Update File: a.py",
            "@@ class Two",
            "     def run(self):",
            "-        value = 1",
            "+        value = 2",
            "         return value",
            "*** Add File: new/b.txt",
            "+one",
            "+",
            "+three",
            "*** Delete File: old.txt",
            "*** Update File: here.sh",
            "*** Move to: sub/there.sh",
            "@@",
            "-run",
            "+walk",
        ),
    )
    assert said.split("\n") == [
        "changed a.py: +1 -1",
        "added new/b.txt: 3 lines",
        "deleted old.txt",
        "moved here.sh to sub/there.sh: +1 -1",
    ]
    assert session.text("a.py") == CODE[::-1].replace("1 = eulav", "2 = eulav", 1)[::-1]
    assert session.text("new/b.txt") == "one\n\nthree\n"
    assert session.text("sub/there.sh") == "walk\n"
    assert stat.S_IMODE((session.root / "sub/there.sh").stat().st_mode) == 0o755
    assert sorted(path.name for path in session.root.iterdir()) == ["a.py", "new", "sub"]
    assert len(session.ledger.commits) == 1


async def test_a_unified_diff_of_git_does_the_same(session: FileSession) -> None:
    session.put("a.py", CODE)
    session.put("old.txt", "bye\n")
    session.put("here.sh", "run\n")
    await session.done(
        "patch",
        patch="""diff --git a/a.py b/a.py
index 1234567..89abcde 100644
--- a/a.py
+++ b/a.py
@@ -9,5 +9,5 @@ class One:

 class Two:
     def run(self):
-        value = 1
+        value = 2
         return value
diff --git a/new/b.txt b/new/b.txt
new file mode 100644
--- /dev/null
+++ b/new/b.txt
@@ -0,0 +1,2 @@
+one
+two
\\ No newline at end of file
diff --git a/new/empty.txt b/new/empty.txt
new file mode 100644
diff --git a/old.txt b/old.txt
deleted file mode 100644
--- a/old.txt
+++ /dev/null
@@ -1 +0,0 @@
-bye
diff --git a/here.sh b/there.sh
similarity index 100%
rename from here.sh
rename to there.sh
""",
    )
    assert session.text("a.py").count("value = 2") == 1
    assert session.text("new/b.txt") == "one\ntwo"
    assert session.text("new/empty.txt") == ""
    assert session.text("there.sh") == "run\n"
    assert sorted(path.name for path in session.root.iterdir()) == ["a.py", "new", "there.sh"]


async def test_a_plain_diff_with_wrong_counts_and_times_is_understood(session: FileSession) -> None:
    session.put("a.txt", "one\ntwo\nthree\n")
    session.put("b.txt", "x\n")
    await session.done(
        "patch",
        patch="--- a.txt\t2024-01-01 10:00\n+++ a.txt\t2024-01-02 10:00\n@@ -7,9 +7,9 @@\n one\n"
        "-two\n+TWO\n--- b.txt\n+++ b.txt\n@@ -1 +1 @@\n-x\n+y",
    )
    assert (session.text("a.txt"), session.text("b.txt")) == ("one\nTWO\nthree\n", "y\n")


async def test_a_patch_that_half_matches_changes_nothing(session: FileSession) -> None:
    session.put("a.txt", "one\n")
    session.put("b.txt", "alpha\nbeta\ngamma\n")
    said = await session.refused(
        "patch",
        patch=marked(
            "*** Update File: a.txt",
            "-one",
            "+ONE",
            "*** Add File: new/c.txt",
            "+c",
            "*** Update File: b.txt",
            " alpha",
            "-betta",
            "+BETA",
            " gamma",
            "@@",
            "-zzz",
            "+y",
            "*** Delete File: missing.txt",
        ),
    )
    assert session.ledger.commits == []
    assert "nothing was done" in said
    assert "b.txt, hunk 1 (line 8 of the patch): not found; the closest place is at line 1" in said
    assert "      2  beta\n      ^  the patch has 'betta'" in said
    assert "b.txt, hunk 2 (line 12 of the patch): not found, and no line" in said
    assert "missing.txt does not exist" in said


async def test_a_place_must_be_the_only_one(session: FileSession) -> None:
    session.put("a.py", CODE)
    said = await session.refused(
        "patch", patch=marked("*** Update File: a.py", "-        value = 1", "+        value = 2")
    )
    assert "fits at 2 places, at the lines 6, 12" in said


async def test_hunks_in_order_and_anchors_tell_places_apart(session: FileSession) -> None:
    session.put("a.py", CODE)
    await session.done(
        "patch",
        patch=marked(
            "*** Update File: a.py",
            "@@ class One",
            "@@ def run(self):",
            "-        value = 1",
            "+        value = 10",
            "@@",
            "-        value = 1",
            "+        value = 20",
        ),
    )
    assignments = [line for line in session.text("a.py").split("\n") if "value =" in line]
    assert assignments == ["        value = 10", "        value = 20"]


async def test_lines_without_context_go_after_their_anchor_or_to_the_end(
    session: FileSession,
) -> None:
    session.put("a.txt", "one\ntwo\n")
    await session.done("patch", patch=marked("*** Update File: a.txt", "@@ one", "+one and a half"))
    await session.done("patch", patch=marked("*** Update File: a.txt", "+three"))
    assert session.text("a.txt") == "one\none and a half\ntwo\nthree\n"


async def test_a_hunk_at_the_end_of_the_file_is_found_there(session: FileSession) -> None:
    session.put("a.txt", "x\ny\nx\n")
    await session.done(
        "patch", patch=marked("*** Update File: a.txt", "@@", "-x", "+end", "*** End of File")
    )
    assert session.text("a.txt") == "x\ny\nend\n"


async def test_blanks_at_the_ends_of_lines_do_not_matter(session: FileSession) -> None:
    session.put("a.txt", "one  \ntwo\t\nthree\n")
    said = await session.done("patch", patch=marked("*** Update File: a.txt", " one", "-two", "+2"))
    assert session.text("a.txt") == "one  \n2\nthree\n"
    assert "matched except for blanks at the ends of lines, at line 1" in said


async def test_another_indentation_is_adapted(session: FileSession) -> None:
    session.put("a.py", "class A:\n    def f(self):\n        x = 1\n\n        return x\n")
    said = await session.done(
        "patch",
        patch=marked(
            "*** Update File: a.py", " def f(self):", "-    x = 1", "+    if 1:", "+        x = 2"
        ),
    )
    assert session.text("a.py") == (
        "class A:\n    def f(self):\n        if 1:\n            x = 2\n\n        return x\n"
    )
    assert "another indentation, at line 2" in said
    await session.done(
        "patch", patch=marked("*** Update File: a.py", "-         return x", "+         return 3")
    )
    assert session.text("a.py").endswith("        return 3\n")


async def test_an_indentation_that_differs_from_line_to_line_does_not_match(
    session: FileSession,
) -> None:
    session.put("a.py", "if a:\n    b\n        c\n")
    said = await session.refused("patch", patch=marked("*** Update File: a.py", " b", "-c", "+d"))
    assert "closest place is at line 2" in said
    session.put("b.py", "if a:\n\tb\n")
    await session.refused("patch", patch=marked("*** Update File: b.py", "-    b", "+    c"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("one\r\ntwo\r\nthree\r\n", "one\r\n2\r\n2b\r\nthree\r\n"),
        ("one\r\ntwo\r\nthree", "one\r\n2\r\n2b\r\nthree"),
        ("one\ntwo\nthree", "one\n2\n2b\nthree"),
        ("one\r\ntwo", "one\r\n2\r\n2b"),
        ("two", "2\n2b"),
    ],
)
async def test_line_endings_and_a_missing_last_newline_are_kept(
    session: FileSession, before: str, after: str
) -> None:
    session.put("a.txt", before)
    change = marked("*** Update File: a.txt", "-two", "+2", "+2b")
    await session.done("patch", patch=change)
    assert session.text("a.txt") == after
    session.put("b.txt", before)
    crlf = change.replace("a.txt", "b.txt").replace("\n", "\r\n")
    await session.done("patch", patch=crlf)
    assert session.text("b.txt") == after


async def test_a_diff_can_add_and_remove_the_last_newline(session: FileSession) -> None:
    session.put("a.txt", "one")
    lacking = "\\ No newline at end of file"
    await session.done(
        "patch", patch=f"--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n{lacking}\n+one\n"
    )
    assert session.text("a.txt") == "one\n"
    await session.done(
        "patch", patch=f"--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+one\n{lacking}\n"
    )
    assert session.text("a.txt") == "one"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "latin-1", "utf-16-le"])
async def test_the_encoding_is_kept(session: FileSession, encoding: str) -> None:
    session.put("a.txt", "grün ist es\nrot\n".encode(encoding))
    await session.done("patch", patch=marked("*** Update File: a.txt", "-rot", "+rötlich"))
    assert (session.root / "a.txt").read_bytes() == "grün ist es\nrötlich\n".encode(encoding)


async def test_what_the_encoding_lacks_is_refused(session: FileSession) -> None:
    session.put("a.txt", "grün\n".encode("latin-1"))
    said = await session.refused("patch", patch=marked("*** Update File: a.txt", " grün", "+€"))
    assert "the file is latin-1, which has no '€'" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "this is no patch"),
        ("just words", "this is no patch"),
        ("*** Begin Patch\n*** End Patch", "there is no `*** Update File: path` in it"),
        (marked("*** Update File: a.txt"), "has no changes for it"),
        (marked("*** Update File: a.txt", "one"), "line 3 of the patch: a line must begin with"),
        (marked("*** Add File: b.txt", "one"), "every line of an added file begins with +"),
        (marked("*** Delete File: a.txt", "-one"), "nothing follows `*** Delete File: a.txt`"),
        (marked("*** Add File: a.txt", "+x"), "a.txt exists already"),
        (marked("*** Delete File: a.txt"), "you have not read it"),
        (marked("*** Update File: a.txt", "*** Move to: b.bin"), "b.bin exists already"),
        (marked("*** Update File: b.bin", "-x", "+y"), "b.bin is not text"),
        (marked("*** Update File: .", "-x", "+y"), "is a folder"),
        (marked("*** Add File: a.txt/below", "+y"), "a part of the path is not a folder"),
        ("diff --git a/b.bin b/b.bin\nBinary files a/b.bin and b/b.bin differ\n", "binary"),
        ("--- a/a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n", "but not all of its lines"),
        ("--- a/a.txt\n+++ b/a.txt\n@@ -9 +9 @@\n-nine\n+9\n", "not found, and no line"),
    ],
)
async def test_what_is_wrong_with_a_patch_is_told(
    session: FileSession, text: str, said: str
) -> None:
    session.put("a.txt", "one\ntwo\n")
    session.put("b.bin", b"\0\1\2")
    assert said in await session.refused("patch", patch=text)


async def test_a_stale_file_stops_the_whole_patch(session: FileSession) -> None:
    session.put("a.txt", "one\n")
    session.put("b.txt", "one\n")
    await session.done("read_file", path="b.txt")
    session.put("b.txt", "one\nmore\n")
    both = marked("*** Update File: a.txt", "-one", "+1", "*** Update File: b.txt", "-one", "+1")
    assert "b.txt changed since you read it" in await session.refused("patch", patch=both)
    await session.done("read_file", path="b.txt")
    await session.done("patch", patch=both)
    await session.done("write_file", path="b.txt", content="the patch counts as seen")


async def test_sections_on_the_same_file_build_on_each_other(session: FileSession) -> None:
    session.put("a.txt", "one\n")
    (session.root / "link").symlink_to("a.txt")
    await session.done(
        "patch",
        patch=marked(
            "*** Update File: a.txt", "-one", "+two", "*** Update File: link", "-two", "+three"
        ),
    )
    assert session.text("a.txt") == "three\n"
    assert len(session.ledger.changes) == 1


async def test_a_patch_that_changes_nothing_writes_nothing(session: FileSession) -> None:
    session.put("a.txt", "one\n")
    before = session.tree()
    await session.done("patch", patch=marked("*** Update File: a.txt", "-one", "+one"))
    assert session.tree() == before
    assert session.ledger.commits == []


@pytest.mark.parametrize("can_exchange", [True, False])
async def test_a_rename_that_fails_undoes_those_before_it(
    session: FileSession, monkeypatch: pytest.MonkeyPatch, can_exchange: bool
) -> None:
    if not can_exchange:
        monkeypatch.setattr(renames, "_system_rename", lambda: (None, 0, 0))
    session.put("a.txt", "one\n").chmod(0o640)
    session.put("b.txt", "one\n")
    session.put("c.txt", "one\n")
    await session.done("read_file", path="b.txt")
    session.ledger.then = lambda: session.put("c.txt", "someone's work\n")
    outcome = await session.call(
        "patch",
        patch=marked(
            "*** Update File: a.txt",
            "-one",
            "+two",
            "*** Delete File: b.txt",
            "*** Add File: new/d.txt",
            "+d",
            "*** Update File: c.txt",
            "-one",
            "+two",
        ),
    )
    assert "c.txt was changed by someone else just now" in outcome.text
    assert session.text("a.txt") == "one\n"
    assert stat.S_IMODE((session.root / "a.txt").stat().st_mode) == 0o640
    assert session.text("b.txt") == "one\n"
    assert session.text("c.txt") == "someone's work\n"
    assert sorted(path.name for path in session.root.rglob("*")) == ["a.txt", "b.txt", "c.txt"]


async def test_what_cannot_be_undone_is_named(
    session: FileSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.put("b.txt", "one\n")
    unlink = os.unlink

    def refuse(path: str, *, dir_fd: int | None = None) -> None:
        if path == "a.txt":
            raise OSError(errno.EIO, "broken disk")
        unlink(path, dir_fd=dir_fd)

    session.ledger.then = lambda: session.put("b.txt", "someone's work\n")
    monkeypatch.setattr(edits.os, "unlink", refuse)
    outcome = await session.call(
        "patch", patch=marked("*** Add File: a.txt", "+a", "*** Update File: b.txt", "-one", "+1")
    )
    assert "The changes of a.txt could not be undone" in outcome.text


def test_a_patch_declares_all_paths_that_it_writes() -> None:
    text = marked(
        "*** Update File: a.txt", "*** Move to: b.txt", "-x", "*** Delete File: c/d e.txt"
    )
    assert paths_named(text) == ["a.txt", "b.txt", "c/d e.txt"]
    diff = "diff --git a/p b/q\nrename from p\nrename to q\n--- a/x\t1\n+++ b/y\r\n--- /dev/null\n"
    assert paths_named(diff) == ["p", "q", "x", "y"]
    args = patch.parse({"patch": text})
    assert [access.name for access in patch.effects(args).accesses] == paths_named(text)
    assert patch.preview(args) == "a.txt, b.txt, c/d e.txt"
    assert patch.effects(patch.parse({"patch": "*** Add File: a\0b"})).accesses == ()
