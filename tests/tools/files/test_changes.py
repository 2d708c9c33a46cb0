"""What a session changed can be shown and taken back, unless someone edited since."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from keryx.errors import ToolFailedError
from keryx.ports.files import FileChange
from keryx.tools.files import changes, edits
from tests.tools.files.desk import Desk


async def shown(desk: Desk) -> str:
    return await desk.host.bridge.to_thread(changes.diff, desk.files, desk.ledger.changes)


async def revert(desk: Desk) -> list[str]:
    """Revert everything, recorded as the log would."""
    recorded: list[FileChange] = []

    def record(more: Sequence[FileChange]) -> None:
        recorded.extend(more)

    done = desk.ledger.changes
    names = await desk.host.bridge.to_thread(changes.revert, desk.files, done, record)
    assert [change.path.name for change in recorded] == names
    return names


async def change_three(desk: Desk) -> None:
    desk.put("a.txt", "one\ntwo\n")
    desk.put("b.txt", "gone")
    await desk.done("read_file", path="b.txt")
    await desk.done(
        "patch",
        patch="*** Update File: a.txt\n-two\n+2\n*** Delete File: b.txt\n*** Add File: c.txt\n+new",
    )
    await desk.done("write_file", path="c.txt", content="newer\n")


async def test_all_changes_together_are_one_diff(desk: Desk) -> None:
    await change_three(desk)
    assert await shown(desk) == (
        "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
        "--- a/b.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n\\ No newline at end of file\n"
        "--- /dev/null\n+++ b/c.txt\n@@ -0,0 +1 @@\n+newer\n"
    )


async def test_the_diff_is_a_patch_that_does_it_again(desk: Desk) -> None:
    await change_three(desk)
    text = await shown(desk)
    after = desk.tree()
    await revert(desk)
    await desk.done("patch", patch=text)
    again = desk.tree()
    assert {path: data for path, (data, *_) in again.items()} == {
        path: data for path, (data, *_) in after.items()
    }


async def test_changes_are_reverted_all_together(desk: Desk) -> None:
    await change_three(desk)
    assert await revert(desk) == ["a.txt", "b.txt", "c.txt"]
    assert desk.text("a.txt") == "one\ntwo\n"
    assert desk.text("b.txt") == "gone"
    assert not (desk.root / "c.txt").exists()
    assert await shown(desk) == ""
    assert await revert(desk) == []


async def test_nothing_is_reverted_if_someone_edited_one_since(desk: Desk) -> None:
    await change_three(desk)
    desk.put("c.txt", "someone's work\n")
    before = desk.tree()
    with pytest.raises(ToolFailedError, match=r"c\.txt: someone edited it since"):
        await revert(desk)
    assert desk.tree() == before
    assert "# c.txt: someone edited it since\n--- /dev/null" in await shown(desk)


async def test_an_edit_between_two_changes_is_not_lost(desk: Desk) -> None:
    await desk.done("write_file", path="a.txt", content="one")
    desk.put("a.txt", "someone's work")
    await desk.done("read_file", path="a.txt")
    await desk.done("write_file", path="a.txt", content="two")
    with pytest.raises(ToolFailedError, match="someone edited it in between"):
        await revert(desk)


async def test_a_change_that_was_recorded_but_never_made_is_no_obstacle(desk: Desk) -> None:
    path = desk.root / "a.txt"
    await desk.done("write_file", path="a.txt", content="one")
    desk.ledger.commits.append([FileChange.of(path, b"one", b"two")])
    assert await revert(desk) == ["a.txt"]
    assert not path.exists()
    assert await revert(desk) == []


async def test_what_was_too_large_to_keep_is_not_reverted(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edits, "KEPT", 3)
    desk.put("a.txt", "long")
    await desk.done("write_file", path="a.txt", content="x", overwrite=True)
    with pytest.raises(ToolFailedError, match="too large to be kept"):
        await revert(desk)
    assert await shown(desk) == "# a.txt: too large to be compared\n"


async def test_binary_and_very_long_files_are_told_of_not_compared(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "COMPARED", 3)
    desk.put("a.bin", b"\0\1")
    desk.put("b.txt", "x\n" * 5)
    for name in ("a.bin", "b.txt"):
        await desk.done("write_file", path=name, content="text", overwrite=True)
    assert await shown(desk) == (
        "# a.bin: binary file, now 4 bytes\n# b.txt: 5 lines before, 1 now\n"
    )
    await revert(desk)
    assert (desk.root / "a.bin").read_bytes() == b"\0\1"


async def test_a_revert_does_not_go_through_a_link(desk: Desk) -> None:
    desk.put("sub/a.txt", "old")
    await desk.done("write_file", path="sub/a.txt", content="new", overwrite=True)
    (desk.root / "sub").rename(desk.root / "moved")
    (desk.root / "sub").symlink_to("moved")
    with pytest.raises(ToolFailedError, match="a symbolic link leads elsewhere"):
        await revert(desk)
    assert desk.text("moved/a.txt") == "new"
