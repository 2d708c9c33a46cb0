"""No file tool leaves the granted trees: not by name, by link, or by a link swapped in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keryx.ports.files import Stamp
from keryx.tools.files import FileSpace, space
from tests.tools.files.desk import Desk

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


async def refuses_all(desk: Desk, path: str, said: str) -> None:
    for tool, arguments in calls_on(path):
        told = await desk.refused(tool, **arguments)
        assert said in told, (tool, told)
        assert SECRET not in told


HIDDEN_TEXT = f"nobody may see {SECRET}"


@pytest.fixture
def secret(made: Desk) -> Path:
    made.put("inside.txt", "inside")
    path = made.outside / "secret.txt"
    path.write_text(SECRET)
    return path


async def test_paths_outside_are_refused(desk: Desk, secret: Path) -> None:
    for path in (str(secret), "../outside/secret.txt", "sub/../../outside/secret.txt"):
        await refuses_all(desk, path, OUTSIDE)


async def test_links_to_the_outside_are_refused(desk: Desk, secret: Path) -> None:
    (desk.root / "file").symlink_to(secret)
    (desk.root / "folder").symlink_to(desk.outside)
    (desk.root / "up").symlink_to("..")
    (desk.root / "chain").symlink_to("folder")
    (desk.root / "dangling").symlink_to(desk.outside / "missing")
    for path in ("file", "folder/secret.txt", "up/outside/secret.txt", "chain/secret.txt"):
        await refuses_all(desk, path, OUTSIDE)
    await refuses_all(desk, "dangling", OUTSIDE)
    await refuses_all(desk, "folder/../outside/secret.txt", OUTSIDE)


async def test_a_refusal_says_where_a_link_leads_and_what_to_do(desk: Desk, secret: Path) -> None:
    (desk.root / "file").symlink_to(secret)
    assert await desk.refused("read_file", path="file") == (
        f"file is outside the workspace (it leads to {secret}); ask for access to it, "
        f"or use a path inside {desk.root}"
    )


async def test_a_folder_named_like_the_workspace_is_not_inside(desk: Desk, secret: Path) -> None:
    other = desk.root.with_name(desk.root.name + "2")
    other.mkdir()
    (other / "a").write_text(SECRET)
    await refuses_all(desk, str(other / "a"), OUTSIDE)


async def test_search_and_list_do_not_follow_links(desk: Desk, secret: Path) -> None:
    (desk.root / "file").symlink_to(secret)
    (desk.root / "folder").symlink_to(desk.outside)
    assert "nothing found" in await desk.done("search_files", pattern="secret")
    listed = await desk.done("list_files", depth=3)
    assert f"folder -> {desk.outside}" in listed
    assert "secret.txt  " not in listed


async def test_granted_trees_can_be_used(desk: Desk, secret: Path) -> None:
    await desk.grant(readable=[desk.outside])
    assert SECRET in await desk.done("read_file", path=str(secret))
    said = await desk.refused("write_file", path=str(secret), content="x")
    assert "may be read but not written" in said
    await desk.grant(writable=[desk.outside])
    await desk.done("write_file", path=str(secret), content="x", overwrite=True)
    assert desk.read(secret) == "x"


async def test_hidden_trees_inside_the_workspace_are_kept_from_every_tool(
    desk: Desk, secret: Path
) -> None:
    desk.put("state/deep/key[1].txt", SECRET)
    desk.put(".env", SECRET)
    (desk.root / "way").symlink_to("state/deep")
    (desk.root / "link.txt").hardlink_to(desk.root / ".env")
    await desk.grant(hidden=[desk.root / "state", desk.root / ".env"])
    hidden = ("state/deep/key[1].txt", "way/key[1].txt", ".env", "link.txt", "state/new.txt")
    for path in hidden:
        await refuses_all(desk, path, "is kept from tools")
    found = await desk.done("search_files", pattern="key", kind="names", hidden=True)
    assert "nothing found" in found
    for glob in (None, "*.txt", "**/*.txt", "state/**"):
        found = await desk.done("search_files", pattern="secret", hidden=True, glob=glob)
        assert found == "nothing found for 'secret'"
    assert "state/" not in (await desk.done("list_files", depth=3, hidden=True)).split("\n")
    assert "state" not in await desk.refused("read_file", path="stat")


class Swapping(FileSpace):
    """Something happens right after a path was found to be good."""

    then: Callable[[], object] | None = None

    def resolve(self, path: str, *, write: bool) -> Path:
        found = super().resolve(path, write=write)
        if self.then is not None:
            self.then()
        return found


def swapping(desk: Desk, then: Callable[[], object]) -> None:
    made = Swapping(desk.root, keep=desk.ledger.keep, changing=desk.ledger.changing)
    made.then = then
    desk.use(made)


@pytest.mark.parametrize("number", range(len(calls_on(""))))
async def test_a_folder_swapped_for_a_link_after_the_check_leads_nowhere(
    desk: Desk, secret: Path, number: int
) -> None:
    tool, arguments = calls_on("sub/secret.txt")[number]
    desk.put("sub/secret.txt", SECRET)

    def swap() -> None:
        folder = desk.root / "sub"
        if not folder.is_symlink():
            folder.rename(desk.root / "moved")
            folder.symlink_to(desk.outside)

    desk.put(str(secret), HIDDEN_TEXT)
    await desk.host.bridge.to_thread(swapping, desk, swap)
    outcome = await desk.call(tool, **arguments)
    assert "nobody may see" not in outcome.text
    assert desk.read(secret) == HIDDEN_TEXT
    assert [path.name for path in desk.outside.iterdir()] == ["secret.txt"]
    assert outcome.outcome == "failed" or "nothing found" in outcome.text


@pytest.mark.parametrize("number", range(len(calls_on(""))))
async def test_a_file_swapped_for_a_link_after_the_check_leads_nowhere(
    desk: Desk, secret: Path, number: int
) -> None:
    tool, arguments = calls_on("a.txt")[number]
    desk.put("a.txt", SECRET)

    def swap() -> None:
        (desk.root / "a.txt").unlink(missing_ok=True)
        (desk.root / "a.txt").symlink_to(secret)

    desk.put(str(secret), HIDDEN_TEXT)
    await desk.host.bridge.to_thread(swapping, desk, swap)
    outcome = await desk.call(tool, **arguments)
    assert "nobody may see" not in outcome.text
    assert desk.read(secret) == HIDDEN_TEXT
    assert outcome.outcome == "failed" or "nothing found" in outcome.text


async def test_a_folder_moved_away_between_record_and_rename_takes_the_write_along(
    desk: Desk, secret: Path
) -> None:
    def swap() -> None:
        (desk.root / "sub").rename(desk.root / "moved")
        (desk.root / "sub").symlink_to(desk.outside)

    desk.put("sub/a.txt", "old")
    desk.ledger.then = swap
    await desk.done("write_file", path="sub/a.txt", content="new", overwrite=True)
    assert desk.text("moved/a.txt") == "new"
    assert [path.name for path in desk.outside.iterdir()] == ["secret.txt"]


def test_what_was_seen_longest_ago_is_forgotten_first(
    made: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(space, "MOST_SEEN", 2)
    files, paths = made.space(), [Path(f"/{number}") for number in range(3)]
    for path in (paths[0], paths[1], paths[0], paths[2]):
        files.seen(path, Stamp(1, 1, 1))
    assert [files.last_seen(path) is None for path in paths] == [False, True, False]


def test_a_name_that_is_not_utf8_can_be_shown(made: Desk) -> None:
    assert made.space().name(made.root / "caf\udce9") == "caf\\xe9"
