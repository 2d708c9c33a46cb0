"""No file tool leaves the granted trees: not by name, by link, or by a link swapped in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keryx.ports.files import Stamp
from keryx.tools.files import FileAccess, file_access
from tests.tools.files.file_session import FileSession

pytestmark = pytest.mark.promise("tools.6")

OUTSIDE = "is outside the workspace"
SECRET = "the secret"


def calls_on(path: str) -> list[tuple[str, dict[str, Any]]]:
    """Every way in which a tool can be told a path."""
    marked = f"*** Begin Patch\n*** Update File: {path}\n-{SECRET}\n+x\n*** End Patch"
    return [
        ("read_file", {"path": path}),
        ("write_file", {"path": path, "content": "x", "overwrite": True}),
        ("list_files", {"path": path}),
        ("search_files", {"pattern": "secret", "path": path}),
        ("patch", {"patch": marked}),
        ("patch", {"patch": f"*** Add File: {path}\n+x"}),
        ("patch", {"patch": f"*** Delete File: {path}"}),
        ("patch", {"patch": f"*** Update File: inside.txt\n*** Move to: {path}"}),
        ("patch", {"patch": f"--- {path}\n+++ {path}\n@@ -1 +1 @@\n-{SECRET}\n+x\n"}),
    ]


async def refuses_all(session: FileSession, path: str, said: str) -> None:
    for tool, arguments in calls_on(path):
        refusal = await session.refused(tool, **arguments)
        assert said in refusal, (tool, refusal)
        assert SECRET not in refusal


HIDDEN_TEXT = f"nobody may see {SECRET}"


@pytest.fixture
def secret(new_session: FileSession) -> Path:
    new_session.put("inside.txt", "inside")
    path = new_session.outside / "secret.txt"
    path.write_text(SECRET)
    return path


async def test_paths_outside_are_refused(session: FileSession, secret: Path) -> None:
    for path in (str(secret), "../outside/secret.txt", "sub/../../outside/secret.txt"):
        await refuses_all(session, path, OUTSIDE)


async def test_links_to_the_outside_are_refused(session: FileSession, secret: Path) -> None:
    (session.root / "file").symlink_to(secret)
    (session.root / "folder").symlink_to(session.outside)
    (session.root / "up").symlink_to("..")
    (session.root / "chain").symlink_to("folder")
    (session.root / "dangling").symlink_to(session.outside / "missing")
    for path in ("file", "folder/secret.txt", "up/outside/secret.txt", "chain/secret.txt"):
        await refuses_all(session, path, OUTSIDE)
    await refuses_all(session, "dangling", OUTSIDE)
    await refuses_all(session, "folder/../outside/secret.txt", OUTSIDE)


async def test_a_refusal_says_where_a_link_leads_and_what_to_do(
    session: FileSession, secret: Path
) -> None:
    (session.root / "file").symlink_to(secret)
    assert await session.refused("read_file", path="file") == (
        f"file is outside the workspace (it leads to {secret}); ask for access to it, "
        f"or use a path inside {session.root}"
    )


async def test_a_folder_named_like_the_workspace_is_not_inside(
    session: FileSession, secret: Path
) -> None:
    other = session.root.with_name(session.root.name + "2")
    other.mkdir()
    (other / "a").write_text(SECRET)
    await refuses_all(session, str(other / "a"), OUTSIDE)


async def test_search_and_list_do_not_follow_links(session: FileSession, secret: Path) -> None:
    (session.root / "file").symlink_to(secret)
    (session.root / "folder").symlink_to(session.outside)
    assert "nothing found" in await session.done("search_files", pattern="secret")
    listed = await session.done("list_files", depth=3)
    assert f"folder -> {session.outside}" in listed
    assert "secret.txt  " not in listed


async def test_granted_trees_can_be_used(session: FileSession, secret: Path) -> None:
    await session.grant(readable=[session.outside])
    assert SECRET in await session.done("read_file", path=str(secret))
    said = await session.refused("write_file", path=str(secret), content="x")
    assert "may be read but not written" in said
    await session.grant(writable=[session.outside])
    await session.done("write_file", path=str(secret), content="x", overwrite=True)
    assert session.read(secret) == "x"


async def test_hidden_trees_inside_the_workspace_are_kept_from_every_tool(
    session: FileSession, secret: Path
) -> None:
    session.put("state/deep/key[1].txt", SECRET)
    session.put(".env", SECRET)
    (session.root / "way").symlink_to("state/deep")
    (session.root / "link.txt").hardlink_to(session.root / ".env")
    await session.grant(hidden=[session.root / "state", session.root / ".env"])
    hidden = ("state/deep/key[1].txt", "way/key[1].txt", ".env", "link.txt", "state/new.txt")
    for path in hidden:
        await refuses_all(session, path, "is hidden from tools")
    output = await session.done("search_files", pattern="key", kind="names", hidden=True)
    assert "nothing found" in output
    for glob in (None, "*.txt", "**/*.txt", "state/**"):
        output = await session.done("search_files", pattern="secret", hidden=True, glob=glob)
        assert output == "nothing found for 'secret'"
    assert "state/" not in (await session.done("list_files", depth=3, hidden=True)).split("\n")
    assert "state" not in await session.refused("read_file", path="stat")


class Swapping(FileAccess):
    """Something happens right after a path was found to be good."""

    then: Callable[[], object] | None = None

    def resolve(self, path: str, *, write: bool) -> Path:
        target = super().resolve(path, write=write)
        if self.then is not None:
            self.then()
        return target


def swapping(session: FileSession, then: Callable[[], object]) -> None:
    access = Swapping(session.root, keep=session.ledger.keep, changing=session.ledger.changing)
    access.then = then
    session.use(access)


@pytest.mark.parametrize("number", range(len(calls_on(""))))
async def test_a_folder_swapped_for_a_link_after_the_check_leads_nowhere(
    session: FileSession, secret: Path, number: int
) -> None:
    tool, arguments = calls_on("sub/secret.txt")[number]
    session.put("sub/secret.txt", SECRET)

    def swap() -> None:
        folder = session.root / "sub"
        if not folder.is_symlink():
            folder.rename(session.root / "moved")
            folder.symlink_to(session.outside)

    session.put(str(secret), HIDDEN_TEXT)
    await session.host.bridge.to_thread(swapping, session, swap)
    outcome = await session.call(tool, **arguments)
    assert "nobody may see" not in outcome.text
    assert session.read(secret) == HIDDEN_TEXT
    assert [path.name for path in session.outside.iterdir()] == ["secret.txt"]
    assert outcome.outcome == "failed" or "nothing found" in outcome.text


@pytest.mark.parametrize("number", range(len(calls_on(""))))
async def test_a_file_swapped_for_a_link_after_the_check_leads_nowhere(
    session: FileSession, secret: Path, number: int
) -> None:
    tool, arguments = calls_on("a.txt")[number]
    session.put("a.txt", SECRET)

    def swap() -> None:
        (session.root / "a.txt").unlink(missing_ok=True)
        (session.root / "a.txt").symlink_to(secret)

    session.put(str(secret), HIDDEN_TEXT)
    await session.host.bridge.to_thread(swapping, session, swap)
    outcome = await session.call(tool, **arguments)
    assert "nobody may see" not in outcome.text
    assert session.read(secret) == HIDDEN_TEXT
    assert outcome.outcome == "failed" or "nothing found" in outcome.text


async def test_a_folder_moved_away_between_record_and_rename_takes_the_write_along(
    session: FileSession, secret: Path
) -> None:
    def swap() -> None:
        (session.root / "sub").rename(session.root / "moved")
        (session.root / "sub").symlink_to(session.outside)

    session.put("sub/a.txt", "old")
    session.ledger.then = swap
    await session.done("write_file", path="sub/a.txt", content="new", overwrite=True)
    assert session.text("moved/a.txt") == "new"
    assert [path.name for path in session.outside.iterdir()] == ["secret.txt"]


def test_what_was_seen_longest_ago_is_forgotten_first(
    new_session: FileSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_access, "MAX_STAMPS", 2)
    files, paths = new_session.space(), [Path(f"/{number}") for number in range(3)]
    for path in (paths[0], paths[1], paths[0], paths[2]):
        files.seen(path, Stamp(1, 1, 1))
    assert [files.last_seen(path) is None for path in paths] == [False, True, False]


def test_a_name_that_is_not_utf8_can_be_shown(new_session: FileSession) -> None:
    assert new_session.space().name(new_session.root / "caf\udce9") == "caf\\xe9"
