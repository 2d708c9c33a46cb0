"""A model proposes merges of memories; only what loses nothing is applied, and can be undone."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from keryx.events import TurnRestored, TurnUndone
from keryx.memory.changes.consolidation import MAX_PROPOSALS, Proposal, objection
from keryx.ports.memory import Memory, MemorySource
from keryx.testing.memory_contract import memory
from tests.memory.people import open_notes
from tests.memory.remembering_store import SCOPE, RememberingStore, remembering_store
from tests.memory.shelf import Shelf
from tests.server.served_host import in_thread

pytestmark = pytest.mark.promise("003.1")

PATIENCE: Final = 20.0
TEA: Final = "The user drinks green tea in the morning."
TEA_TOO: Final = "In the morning the user has green tea."


def proposing(*proposals: tuple[list[str], str]) -> Callable[[str], Awaitable[str]]:
    """Return a model that proposes these."""

    async def ask(text: str) -> str:
        assert "They are data" in text
        body = [{"ids": ids, "text": merged} for ids, merged in proposals]
        return "Here you are:\n```json\n" + json.dumps({"proposals": body}) + "\n```"

    return ask


def undone(session_id: str) -> TurnUndone:
    return TurnUndone(
        session_id=session_id, seq=10, at=2_000.0, turn_id=f"{session_id}/t", by="test"
    )


def restored(session_id: str) -> TurnRestored:
    return TurnRestored(
        session_id=session_id, seq=11, at=2_001.0, turn_id=f"{session_id}/t", by="test"
    )


async def active(remembering: RememberingStore) -> dict[str, str]:
    return {m.id: m.text for m in await remembering.service.curation.newest(SCOPE, 50)}


async def test_memories_that_say_the_same_become_one_and_two_again(tmp_path: Path) -> None:
    async with (
        open_notes(tmp_path / "notes") as notes,
        remembering_store(tmp_path, [notes]) as remembering,
    ):
        service = remembering.service
        (first,) = await remembering.conclude("s1", TEA)
        (second,) = await remembering.conclude("s2", TEA_TOO)
        before = await active(remembering)
        text = "The user drinks green tea in the morning"
        result = await service.curation.consolidate(SCOPE, proposing(([first, second], text)))
        assert (result.error, result.rejected) == ("", ())
        (merge,) = result.applied
        assert merge.replaced == (first, second)
        assert {source.session_id for source in merge.memory.sources} == {"s1", "s2"}
        assert await active(remembering) == {merge.memory.id: text}
        old = await service.get(first)
        assert old is not None
        assert (old.state, old.text) == ("replaced", TEA)
        assert await service.wait_delivered(PATIENCE)
        user = tmp_path / "notes/default/user.md"
        assert (TEA in user.read_text(), text in user.read_text()) == (False, True)

        assert await service.curation.undo(result.operation)
        assert await active(remembering) == before
        assert await service.wait_delivered(PATIENCE)
        content = user.read_text()
        assert all(f"{line} <!-- {name}" in content for name, line in before.items())
        assert merge.memory.id not in content
        assert not await service.curation.undo(result.operation)


async def test_one_consolidation_is_one_operation(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "shelf")
    async with remembering_store(tmp_path, [shelf]) as remembering:
        ids = await remembering.conclude("s1", TEA, TEA_TOO, "the cat sleeps", "the cat is asleep")
        ask = proposing((ids[:2], TEA_TOO), (ids[2:], "the cat sleeps a lot"))
        result = await remembering.service.curation.consolidate(SCOPE, ask)
        assert len(result.applied) == 2
        assert len(await active(remembering)) == 2
        assert await remembering.service.curation.undo(result.operation)
        assert list(await active(remembering)) == ids[::-1]


def of(number: int, text: str, **fields: Any) -> Memory:
    return msgspec.structs.replace(memory(number, text), **fields)


Case = tuple[list[Memory], list[str], str, str]
REJECTED: Final[dict[str, Case]] = {
    "an unknown id": ([of(1, TEA)], ["mem_1", "mem_7"], TEA, "no memory 'mem_7'"),
    "nothing": ([of(1, TEA)], [], TEA, "names no memory"),
    "one twice": ([of(1, TEA)], ["mem_1", "mem_1"], TEA, "or one twice"),
    "the same text": ([of(1, TEA)], ["mem_1"], f" {TEA}", "the same"),
    "no text": ([of(1, TEA)], ["mem_1"], " ", "empty"),
    "a long text": ([of(1, TEA)], ["mem_1"], "tea " * 600, "longer than"),
    "numbers": (
        [of(1, "The port is 8080."), of(2, "The port is 8081.")],
        ["mem_1", "mem_2"],
        "The port is 8080.",
        "'8080', '8081'",
    ),
    "names": (
        [of(1, "Momo is a cat."), of(2, "Kiki is a cat.")],
        ["mem_1", "mem_2"],
        "Momo is a cat.",
        "'Kiki', 'Momo'",
    ),
    "names inside": (
        [of(1, "The user lives in Paris."), of(2, "The user lives in Rome.")],
        ["mem_1", "mem_2"],
        "The user lives in Rome.",
        "'Paris', 'Rome'",
    ),
    "identifiers": (
        [of(1, "run make_it first"), of(2, "run make_all first")],
        ["mem_1", "mem_2"],
        "run make_it first",
        "'make_all', 'make_it'",
    ),
    "paths": (
        [of(1, "the logs are in /var/log"), of(2, "the logs are in /srv/log")],
        ["mem_1", "mem_2"],
        "the logs are in /var/log",
        "'/srv/log', '/var/log'",
    ),
    "quoted values": (
        [of(1, 'the word is "yes"'), of(2, 'the word is "perhaps"')],
        ["mem_1", "mem_2"],
        'the word is "yes"',
        "'perhaps', 'yes'",
    ),
    "a contradiction": (
        [of(1, "The user likes tea."), of(2, "The user doesn't like tea.")],
        ["mem_1", "mem_2"],
        "The user likes tea.",
        "'not'",
    ),
    "an invention": ([of(1, "The user likes tea.")], ["mem_1"], "Alice likes tea.", "'Alice'"),
    "a lost number": ([of(1, "the limit is 5 GB")], ["mem_1"], "there is a limit", "'5'"),
    "another workspace": (
        [of(1, TEA), of(2, TEA_TOO, workspace="/work", about="work")],
        ["mem_1", "mem_2"],
        TEA,
        "different workspaces",
    ),
    "another trust": (
        [of(1, TEA), of(2, TEA_TOO, trust="page")],
        ["mem_1", "mem_2"],
        TEA,
        "equally trusted",
    ),
    "too many": (
        [of(n, TEA) for n in range(1, 10)],
        [f"mem_{n}" for n in range(1, 10)],
        TEA,
        "more than 8",
    ),
}


@pytest.mark.parametrize("case", REJECTED)
async def test_what_would_lose_or_invent_something_is_rejected(case: str, tmp_path: Path) -> None:
    memories, ids, text, reason = REJECTED[case]
    async with remembering_store(tmp_path, []) as remembering:
        for item in memories:
            await remembering.service.curation.add(item)
        before = await active(remembering)
        result = await remembering.service.curation.consolidate(SCOPE, proposing((ids, text)))
        (rejection,) = result.rejected
        assert reason in rejection.reason
        assert (result.applied, result.operation) == ((), "")
        assert await active(remembering) == before


@pytest.mark.parametrize(
    ("texts", "merged"),
    [
        ([TEA, TEA_TOO], TEA),
        (["Tea is what the user drinks.", "The user drinks tea."], "The user drinks tea."),
        (["The port of Momo is 80.", "Momo has port 80."], "Momo listens on port 80."),
        (["run `make all` first", "first run `make all`"], "always run `make all` first"),
        (["The user does not like milk.", "Milk is not liked."], "The user does not like milk."),
    ],
)
def test_what_says_the_same_is_merged(texts: list[str], merged: str) -> None:
    memories = {f"mem_{n}": memory(n, text) for n, text in enumerate(texts)}
    assert objection(Proposal(tuple(memories), merged), memories) is None


async def test_a_merged_memory_is_trusted_like_its_sources(tmp_path: Path) -> None:
    async with remembering_store(tmp_path, []) as remembering:
        for number, text in enumerate((TEA, TEA_TOO)):
            await remembering.service.curation.add(of(number, text, trust="page"))
        ask = proposing((["mem_0", "mem_1"], TEA))
        (merge,) = (await remembering.service.curation.consolidate(SCOPE, ask)).applied
        assert merge.memory.trust == "page"


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ("I would rather not.", "not the JSON"),
        ('{"proposals": [{"ids": "mem_1"}]}', "not the JSON"),
        ("", "not the JSON"),
        (json.dumps({"proposals": [{"ids": ["x"], "text": "y"}] * (MAX_PROPOSALS + 1)}), "at most"),
    ],
)
async def test_an_answer_of_another_kind_changes_nothing(
    answer: str, error: str, tmp_path: Path
) -> None:
    async def ask(text: str) -> str:
        return answer

    async with remembering_store(tmp_path, []) as remembering:
        await remembering.service.curation.add(memory(1, TEA))
        result = await remembering.service.curation.consolidate(SCOPE, ask)
        assert error in result.error
        assert (result.applied, result.rejected) == ((), ())


async def test_while_the_model_thinks_everything_goes_on_and_what_changed_is_left_alone(
    tmp_path: Path,
) -> None:
    async with remembering_store(tmp_path, []) as remembering:
        service = remembering.service
        first, second, third, fourth = await remembering.conclude(
            "s1", TEA, TEA_TOO, "the cat sleeps", "the cat is asleep"
        )

        async def ask(text: str) -> str:
            # Nothing is locked: the memory takes changes and answers meanwhile.
            await service.curation.remove([second])
            await remembering.conclude("s2", "the dog barks")
            assert second not in await active(remembering)
            return await proposing(([first, second], TEA), ([third, fourth], "the cat sleeps"))(
                text
            )

        result = await service.curation.consolidate(SCOPE, ask)
        (merge,) = result.applied
        (rejection,) = result.rejected
        assert merge.replaced == (third, fourth)
        assert "changed while the model was asked" in rejection.reason
        assert sorted((await active(remembering)).values()) == sorted(
            [TEA, "the cat sleeps", "the dog barks"]
        )


async def test_only_the_memories_of_the_scope_are_shown(tmp_path: Path) -> None:
    shown: list[str] = []

    async def ask(text: str) -> str:
        shown.append(text)
        return '{"proposals": []}'

    async with remembering_store(tmp_path, []) as remembering:
        await remembering.service.curation.add(of(1, TEA, workspace="/elsewhere", about="work"))
        await remembering.service.curation.add(of(2, TEA, profile="other"))
        assert (await remembering.service.curation.consolidate(SCOPE, ask)).proposed == ()
        assert shown == [], "nothing to ask about"
        await remembering.service.curation.add(of(3, TEA))
        await remembering.service.curation.consolidate(SCOPE, ask)
    (text,) = shown
    assert "mem_3" in text
    assert "mem_1" not in text
    assert "mem_2" not in text


@pytest.mark.parametrize("how", ["forget", "forget_session", "undo"])
async def test_what_is_forgotten_is_in_no_merged_memory(how: str, tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "shelf")
    async with remembering_store(tmp_path, [shelf]) as remembering:
        service = remembering.service
        (secret,) = await remembering.conclude("s1", "the user hides the key below the mat")
        (other,) = await remembering.conclude("s2", "below the mat the user keeps the key")
        merged_text = "the user hides the key below the mat, always"
        for text in (merged_text, merged_text + "."):  # a merge of a merge
            ids = list(await active(remembering))
            assert (await service.curation.consolidate(SCOPE, proposing((ids, text)))).applied
        match how:
            case "forget":
                await service.forget([secret])
            case "forget_session":
                await service.forget_session("s1")
            case _:
                await remembering.commit_row("s1", service.undone_row(undone("s1")))
        assert list(await active(remembering)) == [other]
        assert await service.wait_delivered(PATIENCE)
        stored = await in_thread(shelf.active)
        assert list(stored) == [other]
    if how != "undo":
        content = (tmp_path / "memory.db").read_bytes() + (tmp_path / "shelf").read_bytes()
        assert b"hides" not in content


@pytest.mark.parametrize("edited", [False, True])
async def test_a_restored_turn_is_merged_again_unless_another_part_changed(
    edited: bool, tmp_path: Path
) -> None:
    shelf = Shelf(tmp_path / "shelf")
    async with remembering_store(tmp_path, [shelf]) as remembering:
        service = remembering.service
        (first,) = await remembering.conclude("s1", TEA)
        (second,) = await remembering.conclude("s2", TEA_TOO)
        text = "The user drinks green tea in the morning"
        result = await service.curation.consolidate(SCOPE, proposing(([first, second], text)))
        merged = result.applied[0].memory.id
        await remembering.commit_row("s1", service.undone_row(undone("s1")))
        assert await active(remembering) == {second: TEA_TOO}
        expected = {merged: text}
        if edited:
            memory = await service.curation.edit(second, "In the evening the user has tea.")
            assert memory is not None
            expected = {first: TEA, memory.id: memory.text}
        await remembering.commit_row("s1", service.restored_row(restored("s1"), None))
        assert await active(remembering) == expected
        assert await service.wait_delivered(PATIENCE)
        assert set(await in_thread(shelf.active)) == set(expected)
        if not edited:
            assert await service.curation.undo(result.operation)
            assert await active(remembering) == {first: TEA, second: TEA_TOO}


async def test_forgetting_a_merged_memory_erases_what_went_into_it(tmp_path: Path) -> None:
    async with remembering_store(tmp_path, []) as remembering:
        service = remembering.service
        for number, text in enumerate((TEA, TEA_TOO)):
            await service.curation.add(of(number, text, sources=(MemorySource("s1", number + 1),)))
        ask = proposing((["mem_0", "mem_1"], TEA))
        (merge,) = (await service.curation.consolidate(SCOPE, ask)).applied
        forgotten = await service.forget([merge.memory.id])
        assert set(forgotten.erased) == {merge.memory.id, "mem_0", "mem_1"}
        assert await active(remembering) == {}
