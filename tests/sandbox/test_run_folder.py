"""The folder of a run is the one that was made, whatever others put in its place."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest

from keryx.aio.bridge import Bridge
from keryx.aio.scope import Scope
from keryx.rpc.file_transport import FileTransport
from keryx.rpc.incoming_calls import no_calls
from keryx.sandbox.scripts.folder import DEEPEST, Folder

FILES = {"script.py": "print()", "package/inner/module.py": "x = 1"}


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    made = tmp_path / "outside"
    made.mkdir()
    (made / "kept").write_text("as it was")
    return made


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "private").mkdir()
    return tmp_path / "private" / "run"


def swapped(here: Path, outside: Path) -> Path:
    """Where the folder is now that a link has its name."""
    moved = here.with_name("moved")
    here.rename(moved)
    here.symlink_to(outside)
    return moved


def untouched(outside: Path) -> bool:
    return [(each.name, each.read_text()) for each in outside.iterdir()] == [("kept", "as it was")]


def test_what_was_laid_out_is_gone_after_its_removal(here: Path) -> None:
    folder = Folder(here)
    folder.lay_out(FILES)
    assert (here / "package/inner/module.py").read_text() == "x = 1"
    assert (folder.way / "script.py").read_text() == "print()"
    folder.let_go()
    folder.remove()
    assert list(here.parent.iterdir()) == []


def test_a_socket_is_bound_in_the_folder_and_not_where_a_link_leads(
    here: Path, outside: Path
) -> None:
    folder = Folder(here)
    folder.lay_out(FILES)
    moved = swapped(here, outside)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(folder.way / "s"))
    assert (moved / "s").is_socket()
    folder.remove()
    assert untouched(outside)
    assert not here.is_symlink(), "what was put in its place is removed, not what it leads to"


async def test_calls_by_files_are_in_the_folder_and_not_where_a_link_leads(
    here: Path, outside: Path
) -> None:
    folder, scope = Folder(here), Scope("test")
    bridge = Bridge(scope)
    await bridge.to_thread(folder.lay_out, FILES)
    moved = swapped(here, outside)
    server = await FileTransport.open(folder.way / "calls", scope, bridge, no_calls)
    assert (moved / "calls" / "req").is_dir()
    await server.close()
    await bridge.to_thread(folder.remove)
    await bridge.close()
    scope.close()
    assert untouched(outside)


def test_nothing_in_it_is_followed_or_waited_for_when_it_is_removed(
    here: Path, outside: Path
) -> None:
    folder = Folder(here)
    folder.lay_out(FILES)
    (here / "link").symlink_to(outside)
    (here / "package/link").symlink_to(outside / "kept")
    os.mkfifo(here / "package/fifo")
    folder.remove()
    assert not here.exists()
    assert untouched(outside)


def test_a_bottomless_folder_costs_no_descriptors_and_no_error(here: Path) -> None:
    folder = Folder(here)
    folder.lay_out(FILES)
    deep = here.joinpath(*["d"] * (DEEPEST + 5))
    deep.mkdir(parents=True)
    folder.remove()
    assert deep.is_dir(), "it goes with the folder of its session"
    assert not (here / "script.py").exists()


def test_who_lays_it_out_and_is_given_up_tidies_up_after_itself(here: Path) -> None:
    begun, given_up = threading.Event(), threading.Event()

    class Slow(dict[str, str]):
        def items(self):
            begun.set()
            given_up.wait()
            return super().items()

    folder = Folder(here)
    laying = threading.Thread(target=folder.lay_out, args=(Slow(FILES),))
    laying.start()
    begun.wait()
    folder.let_go()
    folder.remove()
    assert here.is_dir(), "nothing is removed under whoever is at work there"
    given_up.set()
    laying.join()
    assert not here.exists()
