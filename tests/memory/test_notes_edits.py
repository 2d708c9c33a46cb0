"""People and agents edit the same notes at the same time, and nobody's edit is lost."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
import pytest

from keryx import Keryx
from keryx.app.services.host_memory import ServiceEdits
from keryx.events import MemoryRecalled
from keryx.memory.providers.notes import note_file
from keryx.memory.providers.notes.markdown import Item, parse
from keryx.models.scripted import ScriptedModel, ScriptedReply
from keryx.ports.memory import Memory, ProviderUnavailableError, Withdrawal
from keryx.testing.memory_contract import SCOPE, memory, recalled, store
from keryx.tools.memory.memory_tools import memory_tools
from tests.memory.note_writer import STEPS
from tests.memory.people import Edits, open_notes, replacing, save_by_rename, save_in_place
from tests.memory.remembering_store import remembering_store
from tests.server.served_host import in_thread

pytestmark = pytest.mark.promise("003.3")

WRITER: Final = [sys.executable, "-m", "tests.memory.note_writer"]
PATIENCE: Final = 20.0
Save = Callable[[Path, Callable[[str], str]], None]

EDITORS: Final = pytest.mark.parametrize(
    "save", [save_in_place, save_by_rename], ids=["in place", "by rename"]
)


def items(path: Path) -> dict[str, str]:
    """The texts in a file, by id; each id is there once."""
    blocks = [block for block in parse(path.read_text()) if isinstance(block, Item)]
    assert len({block.id for block in blocks}) == len(blocks)
    assert all(block.id for block in blocks), path.read_text()
    return {str(block.id): block.text for block in blocks}


@EDITORS
async def test_a_person_changes_removes_and_adds_lines(save: Save, tmp_path: Path) -> None:
    user, edits = tmp_path / "default/user.md", Edits()
    page = msgspec.structs.replace(memory(1, "The user drinks coffee."), trust="page")
    async with open_notes(tmp_path, edits) as notes:
        await store(notes, page, memory(2, "The cat is Momo."), memory(3, "The car is red."))

        def change(text: str) -> str:
            text = text.replace("coffee", "tea").replace("- The cat is Momo. <!-- mem_2 -->\n", "")
            return text.replace("- The car", "## Things\n\n* A bike, too\n\nsome prose\n- The car")

        await in_thread(save, user, change)
        saved = user.read_text()
        results = await recalled(
            notes, "drinks bike car", ["The user drinks tea.", "A bike, too", "The car is red."]
        )
        assert {result.trust for result in results} == {"person"}
        assert edits.added == [("The user drinks tea.", "mem_1"), ("A bike, too", None)]
        assert edits.removed == ["mem_2"]
        tea, bike = (m for m in edits.edits if isinstance(m, Memory))
        # Only the ids were written; order, headings and prose are the person's.
        assert user.read_text() == saved.replace(
            " tea. <!-- mem_1, from a web page -->", f" tea. <!-- {tea.id} -->"
        ).replace("* A bike, too", f"* A bike, too <!-- {bike.id} -->")
        assert (tea.trust, tea.profile, tea.workspace, tea.sources) == ("person", "default", "", ())
        # The round trip: the memory delivers what it was given.
        await store(notes, tea, bike)
        await store(notes, Withdrawal(id="w", session_id="", items=("mem_1", "mem_2")))
        assert items(user) == {tea.id: tea.text, bike.id: bike.text, "mem_3": "The car is red."}
        assert len(edits.edits) == 3


@EDITORS
async def test_what_an_agent_replaces_while_a_person_changes_it_stays_twice(
    save: Save, tmp_path: Path
) -> None:
    user, edits = tmp_path / "default/user.md", Edits()
    async with open_notes(tmp_path, edits) as notes:
        await store(notes, memory(1, "The user drinks coffee."), memory(2, "The cat is ill."))
        await in_thread(save, user, replacing(("coffee", "tea"), ("ill", "well")))
        newer = msgspec.structs.replace(memory(3, "The user drinks mate."), replaces="mem_1")
        await store(notes, newer, Withdrawal(id="w", session_id="s1", items=("mem_1", "mem_2")))
    assert sorted(items(user).values()) == [
        "The cat is well.",
        "The user drinks mate.",
        "The user drinks tea.",
    ]
    assert edits.added == [("The user drinks tea.", "mem_1"), ("The cat is well.", "mem_2")]


MEANWHILE: Final[dict[str, tuple[str, str, list[str], list[tuple[str, str | None]]]]] = {
    "add": (
        "- The cat is Momo.",
        "- I have a dog.\n- The cat is Momo.",
        ["I have a dog.", "The cat is Momo."],
        [("I have a dog.", None)],
    ),
    "change": ("Momo", "Kiki", ["The cat is Kiki."], [("The cat is Kiki.", "mem_1")]),
    "remove": ("- The cat is Momo. <!-- mem_1 -->\n", "", [], []),
    "prose": ("# What", "# A heading of mine: what", ["The cat is Momo."], []),
}
"""What is replaced by what; the person's lines then, and what was added."""


@pytest.mark.parametrize("editor", ["in_place", "by_rename"])
@pytest.mark.parametrize("edit", MEANWHILE)
async def test_an_edit_between_reading_and_renaming_is_merged(
    editor: str, edit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new, lines, added = MEANWHILE[edit]
    user, edits = tmp_path / "default/user.md", Edits()
    exchange = note_file.exchange
    saves: list[str] = []

    def exchange_late(folder: int, first: str, second: str) -> bool:
        """Let another process save the file after it was read, and before it is exchanged."""
        if not saves:
            saves.append(user.read_text())
            subprocess.run([*WRITER, "save", user, editor, old, new], check=True)
            saves.append(user.read_text())
        return exchange(folder, first, second)

    async with open_notes(tmp_path, edits) as notes:
        await store(notes, memory(1, "The cat is Momo."), memory(2, "Tea."))
        monkeypatch.setattr(note_file, "exchange", exchange_late)
        await store(notes, memory(3, "From an agent."))
    before, after = saves
    assert before != after == before.replace(old, new), "the edit came in between"
    assert sorted(items(user).values()) == sorted(["From an agent.", "Tea.", *lines])
    assert edits.added == added
    assert edits.removed == (["mem_1"] if edit == "remove" else [])
    assert ("# A heading of mine" in user.read_text()) == (edit == "prose")
    assert not list((tmp_path / "default").glob(".*.swap"))


async def test_edits_before_and_in_between_are_both_there_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user, edits = tmp_path / "default/user.md", Edits()
    exchange = note_file.exchange
    saves = [
        replacing(("Dog", "Dog and bird"), then="- Fourth\n"),
        replacing(("Tea.", "Green tea.")),
    ]

    def exchange_late(folder: int, first: str, second: str) -> bool:
        if saves:
            save_by_rename(user, saves.pop(0))
        return exchange(folder, first, second)

    async with open_notes(tmp_path, edits) as notes:
        await store(notes, memory(1, "The cat is Momo."), memory(2, "Tea."))
        await in_thread(save_in_place, user, replacing(("Momo", "Kiki"), then="- Dog\n"))
        monkeypatch.setattr(note_file, "exchange", exchange_late)
        await store(notes, memory(3, "From an agent."))
    texts = ["Dog and bird", "Fourth", "From an agent.", "Green tea.", "The cat is Kiki."]
    assert sorted(items(user).values()) == texts
    assert sorted(edits.added, key=str) == [
        ("Dog and bird", None),
        ("Fourth", None),
        ("Green tea.", "mem_2"),
        ("The cat is Kiki.", "mem_1"),
    ]
    assert edits.removed == []


@pytest.mark.parametrize("moment", ["before", "between"])
async def test_a_program_that_has_the_file_open_is_waited_for(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user, edits = tmp_path / "default/user.md", Edits()
    exchange = note_file.exchange
    command = [*WRITER, "hold", user, "- Written late.\n"]

    def hold() -> subprocess.Popen[str]:
        writer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        assert writer.stdout.readline() == "open\n"
        return writer

    writers: list[subprocess.Popen[str]] = []

    def exchange_late(folder: int, first: str, second: str) -> bool:
        if not writers:
            writers.append(hold())
        return exchange(folder, first, second)

    async with open_notes(tmp_path, edits) as notes:
        await store(notes, memory(1, "Tea."))
        if moment == "before":
            writers.append(await in_thread(hold))
        else:
            monkeypatch.setattr(note_file, "exchange", exchange_late)
        for attempts in (0, 1):
            with pytest.raises(ProviderUnavailableError, match="is writing"):
                await store(notes, memory(2, "Coffee."), attempts=attempts)
        with writers[0] as writer:
            await in_thread(writer.communicate)
        await store(notes, memory(2, "Coffee."), attempts=2)
    assert sorted(items(user).values()) == ["Coffee.", "Tea.", "Written late."]
    assert edits.added == [("Written late.", None)]


@pytest.mark.parametrize("step", range(1, STEPS + 1))
async def test_killed_at_any_step_of_a_change_nothing_is_lost_or_doubled(
    step: int, tmp_path: Path
) -> None:
    user, edits = tmp_path / "default/user.md", Edits()
    async with open_notes(tmp_path) as notes:
        await store(notes, memory(1, "The cat is Momo."), memory(2, "Tea."), memory(3, "Blue."))
    save_in_place(user, lambda t: t.replace("Momo", "Kiki").replace("- Blue.", "- Mine\n- Red."))
    command = [*WRITER, "die", tmp_path, str(step), "4", "From an agent."]
    died = (await in_thread(lambda: subprocess.run(command, check=False))).returncode
    assert died == (9 if step < STEPS else 0)
    if died:
        # People go on, whatever was left.
        save_by_rename(user, lambda text: text.replace("Tea.", "Green tea."))
    async with open_notes(tmp_path, edits) as notes:
        await store(notes, memory(4, "From an agent."), attempts=1)
        tea = "Green tea." if died else "Tea."
        texts = ["From an agent.", "Mine", "Red.", tea, "The cat is Kiki."]
        assert sorted(items(user).values()) == sorted(texts)
        if died:
            changes = [("Green tea.", "mem_2"), ("Mine", None), ("Red.", "mem_3")]
            assert sorted(edits.added, key=str) == [*changes, ("The cat is Kiki.", "mem_1")]
        assert edits.removed == []
        await store(notes, memory(4, "From an agent."), attempts=2)
        assert sorted(items(user).values()) == sorted(texts)
    left = {path.name for path in (tmp_path / "default").iterdir()}
    assert left == {"user.md", ".user.md.lock", ".user.md.base"}


async def test_an_editor_that_never_saw_the_ids_doubles_nothing(tmp_path: Path) -> None:
    user, edits = tmp_path / "default/user.md", Edits()
    async with open_notes(tmp_path, edits) as notes:
        await store(notes, memory(1, "Tea."))
        buffer = user.read_text() + "- Mine\n"
        await in_thread(user.write_text, buffer)
        await notes.recall(SCOPE, "mine", 10)
        await in_thread(user.write_text, buffer + "- Mine, too\n")
        await notes.recall(SCOPE, "mine", 10)
    assert sorted(items(user).values()) == ["Mine", "Mine, too", "Tea."]
    assert edits.added == [("Mine", None), ("Mine, too", None)]
    assert edits.removed == []


async def test_copied_pasted_emptied_and_wrapped_lines(tmp_path: Path) -> None:
    user, edits = tmp_path / "default/user.md", Edits()
    async with open_notes(tmp_path, edits) as notes:
        await store(notes, *(memory(n, f"Memory {n} is long enough.") for n in range(1, 5)))

        def change(text: str) -> str:
            text = text.replace("- Memory 1", "- Copy of memory 1 <!-- mem_1 -->\n- Memory 1")
            text = text.replace("- Memory 2 is long enough. <!--", "- <!--")
            text = text.replace("3 is long enough.", "3 is\n  long enough.")
            return (
                text + "- Pasted <!-- mem_0123456789abcdef -->\n- Mine <!-- check this -->\n- -\n"
            )

        await in_thread(save_in_place, user, change)
        await notes.recall(SCOPE, "memory", 10)
    assert edits.removed == ["mem_2"]
    assert edits.added == [
        ("Copy of memory 1", None),
        ("Memory 3 is\nlong enough.", "mem_3"),
        ("Pasted", None),
        ("Mine <!-- check this -->", None),
    ]
    texts = [
        "Copy of memory 1",
        "Memory 1 is long enough.",
        "Memory 3 is\nlong enough.",
        "Memory 4 is long enough.",
        "Pasted",
        "Mine <!-- check this -->",
    ]
    assert list(items(user).values()) == texts
    assert user.read_text().endswith("- -\n")


async def test_a_late_delivery_does_not_bring_back_what_a_person_removed(tmp_path: Path) -> None:
    user, edits = tmp_path / "default/user.md", Edits()
    async with open_notes(tmp_path, edits) as notes:
        await store(notes, memory(1, "Tea."), memory(2, "Coffee."))
        line = "- Tea. <!-- mem_1 -->\n"
        await in_thread(save_in_place, user, replacing((line, "")))
        await notes.recall(SCOPE, "tea", 10)
        await store(notes, memory(1, "Tea."), attempts=1)
        assert list(items(user)) == ["mem_2"]
        await store(notes, memory(1, "Tea."))  # the removal was undone
        assert list(items(user)) == ["mem_2", "mem_1"]
    assert edits.removed == ["mem_1"]


async def test_an_edit_that_the_memory_did_not_take_is_passed_on_later(tmp_path: Path) -> None:
    class Broken(Edits):
        async def add(self, memory: Memory) -> None:
            raise OSError(28, "no space left")

    user, edits = tmp_path / "default/user.md", Edits()
    async with open_notes(tmp_path, Broken()) as notes:
        await store(notes, memory(1, "Tea."))
        await in_thread(save_in_place, user, replacing(then="- Mine\n"))
        with pytest.raises(OSError, match="no space"):
            await notes.recall(SCOPE, "mine", 10)
    async with open_notes(tmp_path, edits) as notes:
        (mine,) = await recalled(notes, "mine", ["Mine"])
    assert [m.id for m in edits.edits if isinstance(m, Memory)] == [mine.memory_id]


# -- and back into the memory


@EDITORS
async def test_what_a_person_writes_is_remembered_once(save: Save, tmp_path: Path) -> None:
    user, edits = tmp_path / "notes/default/user.md", ServiceEdits()
    async with (
        open_notes(tmp_path / "notes", edits) as notes,
        remembering_store(tmp_path, [notes], budget=5.0) as remembering,
    ):
        service = edits.service = remembering.service
        for number, text in enumerate(("The user drinks coffee.", "The cat is Momo."), 1):
            await service.curation.add(msgspec.structs.replace(memory(number, text), sources=()))
        assert await service.wait_delivered(PATIENCE)

        def change(text: str) -> str:
            text = text.replace("coffee", "tea").replace("- The cat is Momo. <!-- mem_2 -->\n", "")
            return text + "- The car is red.\n"

        await in_thread(save, user, change)
        recall = await service.recall(SCOPE, "drinks red cat", 10)
        texts = {result.text for result in recall.memories}
        assert {"The user drinks tea.", "The car is red."} <= texts
        assert await service.wait_delivered(PATIENCE)
        active = {m.text: m for m in await service.curation.newest(SCOPE, 10)}
        assert set(active) == {"The user drinks tea.", "The car is red."}
        assert items(user) == {m.id: m.text for m in active.values()}
        ended = {m.id: m.state for m in await service.curation.newest(SCOPE, 10, ended=True)}
        assert ended == {"mem_1": "replaced", "mem_2": "removed"}
        # A removal by the host is undone, and the line is back.
        operation = await service.curation.remove([active["The car is red."].id, "mem_unknown"])
        assert await service.wait_delivered(PATIENCE)
        assert list(items(user).values()) == ["The user drinks tea."]
        assert await service.curation.undo(operation)
        assert not await service.curation.undo(operation)
        assert await service.wait_delivered(PATIENCE)
        assert set(items(user).values()) == set(active)
        assert await service.failures() == []
        assert len(await service.curation.newest(SCOPE, 10)) == 2


async def test_a_host_with_notes_gives_a_session_what_a_person_wrote(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "memory/default").mkdir(parents=True)
    (home / "config.toml").write_text('[memory]\nproviders = ["notes"]\nwait = 5.0\n')
    (home / "memory/default/user.md").write_text("- I drink green tea.\n")
    model = ScriptedModel([ScriptedReply(text="Tea.")] * 2)
    async with (
        asyncio.timeout(PATIENCE),
        Keryx(model=model, home=home, tools=memory_tools()) as app,
    ):
        texts: list[list[str]] = []
        for _ in range(2):
            session = await app.open()
            await (await session.send("What do I drink?")).result()
            facts = await app.store.events(session.session_id)
            recalls = [fact for fact in facts if isinstance(fact, MemoryRecalled)]
            texts.append([memory.text for fact in recalls for memory in fact.memories])
    assert texts == [["I drink green tea."]] * 2
    assert list(items(home / "memory/default/user.md").values()) == ["I drink green tea."]
