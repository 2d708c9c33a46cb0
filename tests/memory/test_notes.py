"""Notes are plain files: readable, bounded, shared by processes, and safe against broken ones."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keryx.events import Trust
from keryx.memory.providers.notes.markdown import Item, new_item, parse, render
from keryx.ports.memory import (
    ItemRefusedError,
    MemoryScope,
    ProviderUnavailableError,
    Withdrawal,
)
from keryx.testing.memory_contract import SCOPE, memory, recalled, store, turn
from tests.memory.people import Edits, open_notes
from tests.server.served_host import in_thread

pytestmark = pytest.mark.promise("003.1")

WRITER: Final = [sys.executable, "-m", "tests.memory.note_writer"]
ODD: Final = (
    "a --> b <!-- c --> d",
    "ends like an id <!-- mem_0123456789abcdef -->",
    "- - leading dashes",
    "* * *",
    "# no heading",
    "C:\\new\\table \\",
    "\\ a backslash and a blank",
    "  blanks at both ends  ",
    "first\n\n  indented\n\nlast\n",
    "windows\r\nline ends\r",
    "&#13; and \\&#13; and \\<!--",
    "\ttab",
    "\ufeffmark",
    "vertical\x0btab, next\x85line, \u2028 separator, \x00",
    " ",
    "\\",
    "日本語 и emoji 🫖",
)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_the_files_are_markdown_that_people_read(tmp_path: Path) -> None:
    folder = tmp_path / "memory"
    page = msgspec.structs.replace(memory(2, "The sky is green."), trust="page")
    async with open_notes(folder) as notes:
        await store(notes, memory(1, "The user drinks tea."), page, memory(3, "One\ntwo"))
        await store(notes, memory(4, "The port is 80.", workspace="/srv/my shop"))
    text = (folder / "default/user.md").read_text()
    assert text.startswith("# What Keryx remembers about you\n\nYou may edit this file.")
    assert text.endswith(
        "\n\n- The user drinks tea. <!-- mem_1 -->\n"
        "- The sky is green. <!-- mem_2, from a web page -->\n"
        "- One <!-- mem_3 -->\n  two\n"
    )
    (work,) = (folder / "default").glob("work-my-shop-*.md")
    assert "Workspace: /srv/my shop\n" in work.read_text()
    assert "- The port is 80. <!-- mem_4 -->\n" in work.read_text()
    assert mode(folder) == mode(folder / "default") == 0o700
    assert {mode(file) for file in (folder / "default").iterdir()} == {0o600}


@given(
    text=st.one_of(st.sampled_from(ODD), st.text(st.characters(exclude_categories=["Cs"]))),
    trust=st.sampled_from(["person", "tool", "page"]),
)
def test_any_text_is_read_back_as_it_was_written(text: str, trust: Trust) -> None:
    items = [new_item("mem_1", text, trust), new_item("s1/2", "next", "person")]
    content = "# Head\n\n" + render(items) + "prose\n"
    blocks = parse(content)
    assert [block for block in blocks if isinstance(block, Item)] == items
    assert render(blocks) == content


@pytest.mark.parametrize("text", ODD)
async def test_an_odd_text_is_no_edit(text: str, tmp_path: Path) -> None:
    edits = Edits()
    async with open_notes(tmp_path, edits) as notes:
        await store(notes, memory(1, text), memory(2, "needle"))
        await store(notes, memory(3, "another"))
        results = await notes.context(SCOPE, "needle", 10)
    assert {result.text for result in results} == {text, "needle", "another"}
    assert edits.edits == []


async def test_turns_are_not_notes(tmp_path: Path) -> None:
    async with open_notes(tmp_path / "memory") as notes:
        await store(notes, turn(1, "Hello", "Hi"))
    assert not (tmp_path / "memory").exists()


# -- bounds


async def test_what_does_not_fit_is_refused_and_nothing_is_cut(tmp_path: Path) -> None:
    user = tmp_path / "default/user.md"
    async with open_notes(tmp_path) as notes:
        for number in range(1, 7):
            await store(notes, memory(number, f"{number} " + "x" * 10_000))
        before = user.read_text()
        small, large = memory(7, "small"), memory(8, "y" * 9_000)
        with pytest.raises(ItemRefusedError, match="forget or merge some") as error:
            await store(notes, small, large)
        assert error.value.item_id == large.id
        assert user.read_text() == before + "- small <!-- mem_7 -->\n"
        assert len(user.read_bytes()) <= 64_000
        await store(notes, Withdrawal(id="w", session_id="s1", items=("mem_1",)))
        await store(notes, large, attempts=1)
        assert large.text in user.read_text()


# -- several processes


@pytest.mark.promise("003.3")
def test_two_processes_that_add_a_hundred_each_leave_two_hundred(tmp_path: Path) -> None:
    writers = [
        subprocess.Popen([*WRITER, "add", tmp_path, str(first), "100"]) for first in (1_000, 2_000)
    ]
    assert [writer.wait(120) for writer in writers] == [0, 0]
    items = [b for b in parse((tmp_path / "default/user.md").read_text()) if isinstance(b, Item)]
    expected = {f"mem_{first + at}" for first in (1_000, 2_000) for at in range(100)}
    assert len(items) == 200
    assert {item.id for item in items} == expected


# -- broken files


def not_utf8(path: Path) -> None:
    path.write_bytes(b"- caf\xe9\n")


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def a_link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def huge(path: Path) -> None:
    with path.open("w") as file:
        file.truncate(10_000_000_000)


BROKEN: Final = {
    not_utf8: "not UTF-8",
    a_folder: "must be a plain file",
    a_pipe: "must be a plain file",
    a_link: "must be a plain file and no link",
    huge: "more than 1000000 bytes",
}


def identity_of(path: Path) -> tuple[int, ...]:
    """Return what changes if somebody writes to a file or replaces it. Reading changes nothing."""
    state = path.lstat()
    return (state.st_ino, state.st_mode, state.st_size, state.st_mtime_ns, state.st_ctime_ns)


@pytest.mark.parametrize("damage", BROKEN, ids=lambda damage: damage.__name__)
async def test_a_broken_file_is_refused_with_what_to_do_and_left_alone(
    damage: type, tmp_path: Path
) -> None:
    user = tmp_path / "default/user.md"
    tea, coffee = memory(1, "Tea."), memory(2, "Coffee.")
    port = memory(3, "The port is 80.", workspace="/work")
    edits = Edits()
    async with open_notes(tmp_path, edits) as notes, asyncio.timeout(20):
        await store(notes, tea)
        good = user.read_bytes()
        await in_thread(damage, user)
        state = identity_of(user)
        with pytest.raises(ProviderUnavailableError, match=BROKEN[damage]):
            await store(notes, coffee)
        with pytest.raises(ProviderUnavailableError, match=BROKEN[damage]):
            await notes.recall(SCOPE, "tea", 10)
        assert identity_of(user) == state
        await store(notes, port)  # the other file works
        user.rmdir() if user.is_dir() else user.unlink()
        await in_thread(user.write_bytes, good)
        await store(notes, coffee, attempts=1)
        await recalled(notes, "tea coffee port", [tea.text, coffee.text, port.text])
    assert edits.edits == []


async def test_a_link_in_place_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    for link in (tmp_path / "memory", tmp_path / "other/default"):
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(tmp_path / "elsewhere")
        root = link if link.name == "memory" else link.parent
        async with open_notes(root) as notes:
            with pytest.raises(ProviderUnavailableError, match="plain folder and no link"):
                await store(notes, memory(1, "Tea."))
    assert list((tmp_path / "elsewhere").iterdir()) == []


async def test_a_deleted_file_is_written_anew_and_nothing_is_forgotten(tmp_path: Path) -> None:
    edits = Edits()
    async with open_notes(tmp_path, edits) as notes:
        await store(notes, memory(1, "Tea."))
        (tmp_path / "default/user.md").unlink()
        await recalled(notes, "tea", ["Tea."])
        (tmp_path / "default/user.md").unlink()
        await store(notes, memory(2, "Coffee."))
        await recalled(notes, "tea coffee", ["Tea.", "Coffee."])
    assert edits.edits == []


@pytest.mark.parametrize("content", [b"", b"{", b'{"profile": 1}'])
async def test_without_its_record_a_file_is_taken_as_it_is(content: bytes, tmp_path: Path) -> None:
    edits = Edits()
    page = msgspec.structs.replace(memory(1, "The sky is green."), trust="page")
    async with open_notes(tmp_path, edits) as notes:
        await store(notes, page)
        (tmp_path / "default/.user.md.base").write_bytes(content)
        await store(notes, page, memory(2, "Tea."), attempts=1)
        results = await recalled(notes, "sky tea", ["The sky is green.", "Tea."])
    assert {(r.memory_id, r.trust) for r in results} == {("mem_1", "page"), ("mem_2", "person")}
    assert edits.edits == []


@pytest.mark.parametrize("profile", ["..", "a/b", ".hidden", "Ünï", "x" * 300])
async def test_a_profile_of_any_name_has_a_folder_of_its_own(profile: str, tmp_path: Path) -> None:
    root = tmp_path / "memory"
    async with open_notes(root) as notes:
        await store(notes, memory(1, "Tea.", profile=profile))
        await recalled(notes, "tea", ["Tea."], scope=MemoryScope(profile, "/work"))
        await recalled(notes, "tea", [], ["Tea."])
    assert await in_thread(lambda: [path.name for path in tmp_path.iterdir()]) == ["memory"]


@pytest.mark.promise("003.3")
async def test_what_is_erased_is_in_no_file(tmp_path: Path) -> None:
    async with open_notes(tmp_path) as notes:
        await store(notes, memory(1, "The code is 4711."), memory(2, "Tea."))
        assert list(await notes.remaining(["mem_1", "mem_9"])) == ["mem_1"]
        erasure = Withdrawal(id="w", session_id="s1", items=("mem_1",), erase=True)
        await store(notes, erasure)
        assert list(await notes.remaining(["mem_1"])) == []
        (tmp_path / "default/other.md").mkdir()
        assert list(await notes.remaining(["mem_1"])) == ["mem_1"], "nobody can know"
    files = [path for path in (tmp_path / "default").iterdir() if path.is_file()]
    assert not any(b"4711" in path.read_bytes() for path in files)
