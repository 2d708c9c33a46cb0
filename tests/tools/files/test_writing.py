"""`write_file`: whole files, atomically, and never over what the session has not seen."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from keryx.aio.scope import Reason
from keryx.ports.store import blob_hash
from keryx.tools.files import edits, swap
from tests.tools.files.desk import Desk

pytestmark = pytest.mark.promise("tools.6")

READ_IT_FIRST = "exists, and you have not read it; read it first"


async def test_a_new_file_is_written_with_its_folders(desk: Desk) -> None:
    said = await desk.done("write_file", path="a/b/c.txt", content="one\ntwo\n")
    assert said == "a/b/c.txt: 2 lines, 8 bytes written, new"
    assert desk.text("a/b/c.txt") == "one\ntwo\n"
    assert [path.name for path in (desk.root / "a/b").iterdir()] == ["c.txt"]


async def test_a_change_is_recorded_before_it_happens(desk: Desk) -> None:
    desk.put("a.txt", "old")
    seen: list[str] = []

    def look() -> None:
        seen.append(desk.text("a.txt"))

    desk.ledger.then = look
    await desk.done("write_file", path="a.txt", content="new", overwrite=True)
    (change,) = desk.ledger.changes
    assert seen == ["old"]
    assert change.path == desk.root / "a.txt"
    assert (change.before, change.before_hash) == (b"old", blob_hash(b"old"))
    assert change.after_hash == blob_hash(b"new")


async def test_what_cannot_be_recorded_does_not_happen(desk: Desk) -> None:
    desk.put("a.txt", "old")

    def fail() -> None:
        raise OSError(errno.ENOSPC, "no space for the log")

    desk.ledger.then = fail
    for path in ("a.txt", "new/b.txt"):
        await desk.refused("write_file", path=path, content="new", overwrite=True)


async def test_a_file_that_was_read_is_replaced_and_keeps_its_mode(desk: Desk) -> None:
    path = desk.put("run.sh", "a\nb\nc\n")
    path.chmod(0o751)
    await desk.done("read_file", path="run.sh")
    said = await desk.done("write_file", path="run.sh", content="a\nB\nc\nd\n")
    assert said == "run.sh: 4 lines, 8 bytes written; lines +2 -1"
    assert stat.S_IMODE(path.stat().st_mode) == 0o751


async def test_a_new_file_has_the_mode_that_the_umask_leaves(desk: Desk) -> None:
    plain = desk.put("plain", "")
    await desk.done("write_file", path="new", content="x")
    assert (desk.root / "new").stat().st_mode == plain.stat().st_mode


async def test_a_file_never_read_is_not_replaced_unless_asked(desk: Desk) -> None:
    desk.put("a.txt", "precious")
    assert READ_IT_FIRST in await desk.refused("write_file", path="a.txt", content="x")
    await desk.done("write_file", path="a.txt", content="x", overwrite=True)
    desk.put("empty.txt", "")
    await desk.done("write_file", path="empty.txt", content="x")


async def test_a_file_that_changed_since_it_was_read_is_not_replaced(desk: Desk) -> None:
    desk.put("a.txt", "one")
    await desk.done("read_file", path="a.txt")
    desk.put("a.txt", "two")
    for overwrite in (False, True):
        said = await desk.refused("write_file", path="a.txt", content="x", overwrite=overwrite)
        assert said == "a.txt changed since you read it; read it again. Nothing was done."
    await desk.done("read_file", path="a.txt")
    await desk.done("write_file", path="a.txt", content="x")


async def test_a_change_of_the_same_size_and_time_is_noticed(desk: Desk) -> None:
    path = desk.put("a.txt", "one")
    moment = path.stat().st_mtime_ns
    await desk.done("read_file", path="a.txt")
    path.write_text("two")
    os.utime(path, ns=(moment, moment))
    assert "changed since" in await desk.refused("write_file", path="a.txt", content="x")


async def test_a_file_that_was_only_touched_can_be_written(desk: Desk) -> None:
    path = desk.put("a.txt", "one")
    await desk.done("read_file", path="a.txt")
    os.utime(path, ns=(1, 1))
    await desk.done("write_file", path="a.txt", content="x")


async def test_the_session_may_write_again_what_it_wrote(desk: Desk) -> None:
    await desk.done("write_file", path="a.txt", content="one")
    await desk.done("write_file", path="a.txt", content="two")
    assert await desk.done("write_file", path="a.txt", content="two") == (
        "a.txt holds exactly this already"
    )
    assert len(desk.ledger.commits) == 2


async def test_two_sessions_cannot_overwrite_each_other_unseen(desk: Desk) -> None:
    desk.put("a.txt", "start")
    first = desk.files
    await desk.done("read_file", path="a.txt")
    await desk.grant()
    await desk.done("read_file", path="a.txt")
    await desk.done("write_file", path="a.txt", content="the second session's")
    desk.use(first)
    assert "changed since" in await desk.refused("write_file", path="a.txt", content="first")


def rewritten_in_place(path: Path) -> None:
    path.write_text("someone's work")


def replaced(path: Path) -> None:
    other = path.with_name("other")
    other.write_text("someone's work")
    other.rename(path)


def turned_into_a_link(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.parent.parent / "outside" / "secret")


@pytest.mark.parametrize("can_exchange", [True, False])
@pytest.mark.parametrize("happens", [rewritten_in_place, replaced, turned_into_a_link])
async def test_an_edit_at_the_last_instant_is_not_lost(
    desk: Desk,
    monkeypatch: pytest.MonkeyPatch,
    happens: Callable[[Path], None],
    can_exchange: bool,
) -> None:
    if not can_exchange:
        monkeypatch.setattr(swap, "_found", lambda: (None, 0, 0))
    path = desk.put("a.txt", "start")
    secret = desk.outside / "secret"
    secret.write_text("secret")
    await desk.done("read_file", path="a.txt")
    desk.ledger.then = lambda: happens(path)
    outcome = await desk.call("write_file", path="a.txt", content="mine")
    assert outcome.outcome == "failed"
    assert "changed by someone else just now" in outcome.text
    assert path.read_text() == ("secret" if path.is_symlink() else "someone's work")
    assert secret.read_text() == "secret"
    assert [entry.name for entry in desk.root.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("can_exchange", [True, False])
@pytest.mark.parametrize("can_link", [True, False])
async def test_a_file_that_appears_at_the_last_instant_is_not_lost(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, can_exchange: bool, can_link: bool
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "no links here")

    if not can_exchange:
        monkeypatch.setattr(swap, "_found", lambda: (None, 0, 0))
    if not can_link:
        monkeypatch.setattr(swap.os, "link", refuse)
    await desk.done("write_file", path="before.txt", content="works")
    desk.ledger.then = lambda: desk.put("sub/a.txt", "someone's work")
    outcome = await desk.call("write_file", path="sub/a.txt", content="mine")
    assert "made by someone else just now" in outcome.text
    assert desk.text("sub/a.txt") == "someone's work"
    assert sorted(path.name for path in desk.root.rglob("*")) == ["a.txt", "before.txt", "sub"]


@pytest.mark.parametrize("reason", ["steer", "interrupt"])
async def test_a_write_that_was_recorded_is_finished_though_it_is_cancelled(
    desk: Desk, reason: Reason
) -> None:
    scope = desk.host.scope.child("turn")
    # The last instant: the change is durable, and nothing is awaited after this.
    desk.ledger.at_last = lambda: scope.cancel(reason)
    call = desk.host.call("write_file", path="a.txt", content="done")
    (outcome,) = await desk.host.run(desk.lane, call, scope=scope)
    assert outcome.outcome == "completed"
    assert desk.text("a.txt") == "done"


async def test_a_write_that_is_cancelled_before_it_is_recorded_does_not_happen(desk: Desk) -> None:
    scope = desk.host.scope.child("turn")
    desk.ledger.then = lambda: scope.cancel("interrupt")
    call = desk.host.call("write_file", path="new/a.txt", content="x")
    (outcome,) = await desk.host.run(desk.lane, call, scope=scope)
    assert outcome.outcome == "cancelled"
    assert list(desk.root.iterdir()) == []


async def test_links_inside_the_workspace_are_written_through_hard_links_are_not(
    desk: Desk,
) -> None:
    desk.put("real.txt", "old")
    (desk.root / "soft").symlink_to("real.txt")
    secret = desk.outside / "secret"
    secret.write_text("secret")
    (desk.root / "hard").hardlink_to(secret)
    await desk.done("write_file", path="soft", content="new", overwrite=True)
    assert (desk.root / "soft").is_symlink()
    assert desk.text("real.txt") == "new"
    await desk.done("write_file", path="hard", content="mine", overwrite=True)
    assert secret.read_text() == "secret"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("folder", "folder is a folder, not a file"),
        ("file/below", "a part of the path is not a folder"),
        ("x" * 300, "the name is too long"),
        ("locked/new.txt", "permission denied"),
        ("readonly.txt", "is read-only"),
    ],
)
async def test_what_cannot_be_written_is_told(desk: Desk, path: str, said: str) -> None:
    desk.put("file", "x")
    desk.put("readonly.txt", "old").chmod(0o444)
    (desk.root / "folder").mkdir()
    (desk.root / "locked").mkdir(0o555)
    assert said in await desk.refused("write_file", path=path, content="x", overwrite=True)


async def test_what_may_not_be_read_is_told(desk: Desk) -> None:
    desk.put("locked/a.txt", "x")
    desk.put("mine.txt", "x").chmod(0)
    (desk.root / "locked").chmod(0)
    assert "permission denied" in await desk.refused("read_file", path="locked/a.txt")
    assert "permission denied" in await desk.refused("read_file", path="mine.txt")
    assert "permission denied" in await desk.refused("list_files", path="locked")
    assert "locked/  (cannot be read)" in await desk.done("list_files", depth=2)
    (desk.root / "locked").chmod(0o755)


async def test_a_large_file_can_be_replaced_though_its_content_is_not_kept(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edits.disk, "WHOLE", 1000)
    monkeypatch.setattr(edits, "KEPT", 500)
    for size, name in ((600, "a.txt"), (2000, "b.txt")):
        desk.put(name, "x" * size)
        await desk.done("write_file", path=name, content="small", overwrite=True)
        change = desk.ledger.changes[-1]
        assert change.before is None
        assert change.before_hash == blob_hash(b"x" * size)
        assert not change.can_be_undone
