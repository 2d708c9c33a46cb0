"""`write_file`: whole files, atomically, and never over what the session has not seen."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from keryx.aio import renames
from keryx.aio.scope import Reason
from keryx.ports.store import blob_hash
from keryx.tools.files import edits
from tests.tools.files.file_session import FileSession

pytestmark = pytest.mark.promise("tools.6")

READ_IT_FIRST = "exists, and you have not read it; read it first"


async def test_a_new_file_is_written_with_its_folders(session: FileSession) -> None:
    said = await session.done("write_file", path="a/b/c.txt", content="one\ntwo\n")
    assert said == "a/b/c.txt: 2 lines, 8 bytes written, new"
    assert session.text("a/b/c.txt") == "one\ntwo\n"
    assert [path.name for path in (session.root / "a/b").iterdir()] == ["c.txt"]


async def test_a_change_is_recorded_before_it_happens(session: FileSession) -> None:
    session.put("a.txt", "old")
    seen: list[str] = []

    def look() -> None:
        seen.append(session.text("a.txt"))

    session.ledger.then = look
    await session.done("write_file", path="a.txt", content="new", overwrite=True)
    (change,) = session.ledger.changes
    assert seen == ["old"]
    assert change.path == session.root / "a.txt"
    assert (change.before, change.before_hash) == (b"old", blob_hash(b"old"))
    assert change.after_hash == blob_hash(b"new")


async def test_what_cannot_be_recorded_does_not_happen(session: FileSession) -> None:
    session.put("a.txt", "old")

    def fail() -> None:
        raise OSError(errno.ENOSPC, "no space for the log")

    session.ledger.then = fail
    for path in ("a.txt", "new/b.txt"):
        await session.refused("write_file", path=path, content="new", overwrite=True)


async def test_a_file_that_was_read_is_replaced_and_keeps_its_mode(session: FileSession) -> None:
    path = session.put("run.sh", "a\nb\nc\n")
    path.chmod(0o751)
    await session.done("read_file", path="run.sh")
    said = await session.done("write_file", path="run.sh", content="a\nB\nc\nd\n")
    assert said == "run.sh: 4 lines, 8 bytes written; lines +2 -1"
    assert stat.S_IMODE(path.stat().st_mode) == 0o751


async def test_a_new_file_has_the_mode_that_the_umask_leaves(session: FileSession) -> None:
    plain = session.put("plain", "")
    await session.done("write_file", path="new", content="x")
    assert (session.root / "new").stat().st_mode == plain.stat().st_mode


async def test_a_file_never_read_is_not_replaced_unless_asked(session: FileSession) -> None:
    session.put("a.txt", "precious")
    assert READ_IT_FIRST in await session.refused("write_file", path="a.txt", content="x")
    await session.done("write_file", path="a.txt", content="x", overwrite=True)
    session.put("empty.txt", "")
    await session.done("write_file", path="empty.txt", content="x")


async def test_a_file_that_changed_since_it_was_read_is_not_replaced(session: FileSession) -> None:
    session.put("a.txt", "one")
    await session.done("read_file", path="a.txt")
    session.put("a.txt", "two")
    for overwrite in (False, True):
        said = await session.refused("write_file", path="a.txt", content="x", overwrite=overwrite)
        assert said == "a.txt changed since you read it; read it again. Nothing was done."
    await session.done("read_file", path="a.txt")
    await session.done("write_file", path="a.txt", content="x")


async def test_a_change_of_the_same_size_and_time_is_noticed(session: FileSession) -> None:
    path = session.put("a.txt", "one")
    moment = path.stat().st_mtime_ns
    await session.done("read_file", path="a.txt")
    path.write_text("two")
    os.utime(path, ns=(moment, moment))
    assert "changed since" in await session.refused("write_file", path="a.txt", content="x")


async def test_a_file_that_was_only_touched_can_be_written(session: FileSession) -> None:
    path = session.put("a.txt", "one")
    await session.done("read_file", path="a.txt")
    os.utime(path, ns=(1, 1))
    await session.done("write_file", path="a.txt", content="x")


async def test_the_session_may_write_again_what_it_wrote(session: FileSession) -> None:
    await session.done("write_file", path="a.txt", content="one")
    await session.done("write_file", path="a.txt", content="two")
    assert await session.done("write_file", path="a.txt", content="two") == (
        "a.txt holds exactly this already"
    )
    assert len(session.ledger.commits) == 2


async def test_two_sessions_cannot_overwrite_each_other_unseen(session: FileSession) -> None:
    session.put("a.txt", "start")
    first = session.files
    await session.done("read_file", path="a.txt")
    await session.grant()
    await session.done("read_file", path="a.txt")
    await session.done("write_file", path="a.txt", content="the second session's")
    session.use(first)
    assert "changed since" in await session.refused("write_file", path="a.txt", content="first")


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
    session: FileSession,
    monkeypatch: pytest.MonkeyPatch,
    happens: Callable[[Path], None],
    can_exchange: bool,
) -> None:
    if not can_exchange:
        monkeypatch.setattr(renames, "_system_rename", lambda: (None, 0, 0))
    path = session.put("a.txt", "start")
    secret = session.outside / "secret"
    secret.write_text("secret")
    await session.done("read_file", path="a.txt")
    session.ledger.then = lambda: happens(path)
    outcome = await session.call("write_file", path="a.txt", content="mine")
    assert outcome.outcome == "failed"
    assert "changed by someone else just now" in outcome.text
    assert path.read_text() == ("secret" if path.is_symlink() else "someone's work")
    assert secret.read_text() == "secret"
    assert [entry.name for entry in session.root.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("can_exchange", [True, False])
@pytest.mark.parametrize("can_link", [True, False])
async def test_a_file_that_appears_at_the_last_instant_is_not_lost(
    session: FileSession, monkeypatch: pytest.MonkeyPatch, can_exchange: bool, can_link: bool
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "no links here")

    if not can_exchange:
        monkeypatch.setattr(renames, "_system_rename", lambda: (None, 0, 0))
    if not can_link:
        monkeypatch.setattr(renames.os, "link", refuse)
    await session.done("write_file", path="before.txt", content="works")
    session.ledger.then = lambda: session.put("sub/a.txt", "someone's work")
    outcome = await session.call("write_file", path="sub/a.txt", content="mine")
    assert "made by someone else just now" in outcome.text
    assert session.text("sub/a.txt") == "someone's work"
    assert sorted(path.name for path in session.root.rglob("*")) == ["a.txt", "before.txt", "sub"]


@pytest.mark.parametrize("reason", ["steer", "interrupt"])
async def test_a_write_that_was_recorded_is_finished_though_it_is_cancelled(
    session: FileSession, reason: Reason
) -> None:
    scope = session.host.scope.child("turn")
    # The last instant: the change is durable, and nothing is awaited after this.
    session.ledger.at_last = lambda: scope.cancel(reason)
    call = session.host.call("write_file", path="a.txt", content="done")
    (outcome,) = await session.host.run(session.environment, call, scope=scope)
    assert outcome.outcome == "completed"
    assert session.text("a.txt") == "done"


async def test_a_write_that_is_cancelled_before_it_is_recorded_does_not_happen(
    session: FileSession,
) -> None:
    scope = session.host.scope.child("turn")
    session.ledger.then = lambda: scope.cancel("interrupt")
    call = session.host.call("write_file", path="new/a.txt", content="x")
    (outcome,) = await session.host.run(session.environment, call, scope=scope)
    assert outcome.outcome == "cancelled"
    assert list(session.root.iterdir()) == []


async def test_links_inside_the_workspace_are_written_through_hard_links_are_not(
    session: FileSession,
) -> None:
    session.put("real.txt", "old")
    (session.root / "soft").symlink_to("real.txt")
    secret = session.outside / "secret"
    secret.write_text("secret")
    (session.root / "hard").hardlink_to(secret)
    await session.done("write_file", path="soft", content="new", overwrite=True)
    assert (session.root / "soft").is_symlink()
    assert session.text("real.txt") == "new"
    await session.done("write_file", path="hard", content="mine", overwrite=True)
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
async def test_what_cannot_be_written_is_told(session: FileSession, path: str, said: str) -> None:
    session.put("file", "x")
    session.put("readonly.txt", "old").chmod(0o444)
    (session.root / "folder").mkdir()
    (session.root / "locked").mkdir(0o555)
    assert said in await session.refused("write_file", path=path, content="x", overwrite=True)


async def test_what_may_not_be_read_is_told(session: FileSession) -> None:
    session.put("locked/a.txt", "x")
    session.put("mine.txt", "x").chmod(0)
    (session.root / "locked").chmod(0)
    assert "permission denied" in await session.refused("read_file", path="locked/a.txt")
    assert "permission denied" in await session.refused("read_file", path="mine.txt")
    assert "permission denied" in await session.refused("list_files", path="locked")
    assert "locked/  (cannot be read)" in await session.done("list_files", depth=2)
    (session.root / "locked").chmod(0o755)


async def test_a_large_file_can_be_replaced_though_its_content_is_not_kept(
    session: FileSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edits.safe_open, "MAX_WHOLE", 1000)
    monkeypatch.setattr(edits, "MAX_LOGGED", 500)
    for size, name in ((600, "a.txt"), (2000, "b.txt")):
        session.put(name, "x" * size)
        await session.done("write_file", path=name, content="small", overwrite=True)
        change = session.ledger.changes[-1]
        assert change.before is None
        assert change.before_hash == blob_hash(b"x" * size)
        assert not change.can_be_undone
