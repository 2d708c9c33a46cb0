"""What a session changed can be shown and taken back, unless someone edited since."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from keryx.errors import ToolFailedError
from keryx.ports.files import FileChange
from keryx.tools.files import edits, undo
from tests.tools.files.file_session import FileSession


async def shown(session: FileSession) -> str:
    return await session.host.bridge.to_thread(undo.diff, session.files, session.ledger.changes)


async def revert(session: FileSession) -> list[str]:
    """Revert everything, recorded as the log would."""
    recorded: list[FileChange] = []

    def record(more: Sequence[FileChange]) -> None:
        recorded.extend(more)

    done = session.ledger.changes
    names = await session.host.bridge.to_thread(undo.revert, session.files, done, record)
    assert [change.path.name for change in recorded] == names
    return names


async def change_three(session: FileSession) -> None:
    session.put("a.txt", "one\ntwo\n")
    session.put("b.txt", "gone")
    await session.done("read_file", path="b.txt")
    await session.done(
        "patch",
        patch="*** Update File: a.txt\n-two\n+2\n*** Delete File: b.txt\n*** Add File: c.txt\n+new",
    )
    await session.done("write_file", path="c.txt", content="newer\n")


async def test_all_changes_together_are_one_diff(session: FileSession) -> None:
    await change_three(session)
    assert await shown(session) == (
        "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
        "--- a/b.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n\\ No newline at end of file\n"
        "--- /dev/null\n+++ b/c.txt\n@@ -0,0 +1 @@\n+newer\n"
    )


async def test_the_diff_is_a_patch_that_does_it_again(session: FileSession) -> None:
    await change_three(session)
    text = await shown(session)
    after = session.tree()
    await revert(session)
    await session.done("patch", patch=text)
    again = session.tree()
    assert {path: data for path, (data, *_) in again.items()} == {
        path: data for path, (data, *_) in after.items()
    }


async def test_changes_are_reverted_all_together(session: FileSession) -> None:
    await change_three(session)
    assert await revert(session) == ["a.txt", "b.txt", "c.txt"]
    assert session.text("a.txt") == "one\ntwo\n"
    assert session.text("b.txt") == "gone"
    assert not (session.root / "c.txt").exists()
    assert await shown(session) == ""
    assert await revert(session) == []


async def test_nothing_is_reverted_if_someone_edited_one_since(session: FileSession) -> None:
    await change_three(session)
    session.put("c.txt", "someone's work\n")
    before = session.tree()
    with pytest.raises(ToolFailedError, match=r"c\.txt: someone edited it since"):
        await revert(session)
    assert session.tree() == before
    assert "# c.txt: someone edited it since\n--- /dev/null" in await shown(session)


async def test_an_edit_between_two_changes_is_not_lost(session: FileSession) -> None:
    await session.done("write_file", path="a.txt", content="one")
    session.put("a.txt", "someone's work")
    await session.done("read_file", path="a.txt")
    await session.done("write_file", path="a.txt", content="two")
    with pytest.raises(ToolFailedError, match="someone edited it in between"):
        await revert(session)


async def test_a_change_that_was_recorded_but_never_made_is_no_obstacle(
    session: FileSession,
) -> None:
    path = session.root / "a.txt"
    await session.done("write_file", path="a.txt", content="one")
    session.ledger.commits.append([FileChange.of(path, b"one", b"two")])
    assert await revert(session) == ["a.txt"]
    assert not path.exists()
    assert await revert(session) == []


async def test_what_was_too_large_to_keep_is_not_reverted(
    session: FileSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edits, "MAX_LOGGED", 3)
    session.put("a.txt", "long")
    await session.done("write_file", path="a.txt", content="x", overwrite=True)
    with pytest.raises(ToolFailedError, match="too large to be stored"):
        await revert(session)
    assert await shown(session) == "# a.txt: too large to be compared\n"


async def test_binary_and_very_long_files_are_told_of_not_compared(
    session: FileSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(undo, "MAX_COMPARED", 3)
    session.put("a.bin", b"\0\1")
    session.put("b.txt", "x\n" * 5)
    for name in ("a.bin", "b.txt"):
        await session.done("write_file", path=name, content="text", overwrite=True)
    assert await shown(session) == (
        "# a.bin: binary file, now 4 bytes\n# b.txt: 5 lines before, 1 now\n"
    )
    await revert(session)
    assert (session.root / "a.bin").read_bytes() == b"\0\1"


async def test_a_revert_does_not_go_through_a_link(session: FileSession) -> None:
    session.put("sub/a.txt", "old")
    await session.done("write_file", path="sub/a.txt", content="new", overwrite=True)
    (session.root / "sub").rename(session.root / "moved")
    (session.root / "sub").symlink_to("moved")
    with pytest.raises(ToolFailedError, match="a symbolic link leads elsewhere"):
        await revert(session)
    assert session.text("moved/a.txt") == "new"
