"""What calls change in the memory: each change once, with an honest outcome, in its own scope."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from keryx import ToolContext, tool
from keryx import events as ev
from keryx.errors import DeveloperMustActError
from keryx.memory.changes.curation import MemoryFilter, page
from keryx.memory.intake import apply_rows
from keryx.memory.intake_rows import changed_row, restored_row, undone_row
from keryx.memory.memory_file import create_tables
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply
from keryx.ports.memory_access import MemoryNote
from keryx.ports.store import OutboxRow
from tests.memory.test_sessions import ask, call, facts, home, remembering, results, said

assert home  # a fixture

pytestmark = pytest.mark.promise("003.3")
TEA, COFFEE = "The user drinks tea.", "The user drinks coffee."


@tool(replay="keyed")
async def remove_again(id: str, context: ToolContext) -> str:  # noqa: A002 (as the tool `memory`)
    """Remove a memory as a call does that is run again after a crash: its change is logged."""
    await context.memory.remove(id)
    await context.memory.remove(id)
    return "removed"


@tool(replay="keyed")
async def replace_again(id: str, context: ToolContext) -> str:  # noqa: A002 (as the tool `memory`)
    """Replace a memory as a call does that is run again after a crash."""
    first = await context.memory.remember([MemoryNote(text=COFFEE, target=id)])
    assert await context.memory.remember([MemoryNote(text=COFFEE, target=id)]) == first
    return "replaced"


@pytest.mark.parametrize(("again", "rest"), [(remove_again, []), (replace_again, [COFFEE])])
async def test_a_change_that_runs_again_after_a_crash_has_succeeded(
    home: Path, again: Callable[..., Any], rest: list[str]
) -> None:
    replies = [call("memory", action="add", text=TEA), said()]
    async with remembering(ScriptedModel(replies), home, again) as app:
        session = await app.open()
        await ask(session, "I drink tea")
        (added,) = await facts(app, session, ev.MemoryChanged)
        replies += [call(again.__name__, id=added.memory_id), said()]
        await ask(session, "No more")
        outcomes = [fact.outcome for fact in await facts(app, session, ev.CallFinished)]
        assert outcomes == ["completed", "completed"], await results(app, session)
        assert [memory.text for memory in await app.memory.export()] == rest
        assert len(await facts(app, session, ev.MemoryChanged)) == 2


async def test_of_two_calls_that_replace_the_same_memory_at_once_one_fails(home: Path) -> None:
    replies = [call("memory", action="add", text=TEA), said()]
    async with remembering(ScriptedModel(replies), home) as app:
        session = await app.open()
        await ask(session, "I drink tea")
        (added,) = await facts(app, session, ev.MemoryChanged)
        replace = {"action": "replace", "id": added.memory_id}
        drinks = [f"The user drinks {drink}." for drink in ("coffee", "water", "milk")]
        calls = [ScriptedCall("memory", {**replace, "text": text}) for text in drinks]
        replies += [ScriptedReply(calls=calls), said()]
        await ask(session, "No, coffee; no, water; no, milk")
        outcomes = [fact.outcome for fact in await facts(app, session, ev.CallFinished)][1:]
        assert sorted(outcomes) == ["completed", "failed", "failed"]
        (memory,) = await app.memory.export()
        assert (memory.text in drinks, memory.replaces) == (True, added.memory_id)


def changed(
    session_id: str, memory_id: str, text: str, target: str | None = None, turn: str | None = None
) -> OutboxRow:
    """What a call of a session leaves in the outbox."""
    return changed_row(
        ev.MemoryChanged(
            session_id=session_id,
            seq=1,
            at=1_000.0,
            memory_id=memory_id,
            change="add" if target is None else "replace",
            target=target,
            call_id="c1",
            turn_id=turn,
            text=text,
            kind="fact",
            profile="default",
            workspace="/work",
        )
    )


def undone(session_id: str, turn: str, seq: int = 2) -> OutboxRow:
    return undone_row(
        ev.TurnUndone(session_id=session_id, seq=seq, at=2_000.0, turn_id=turn, by="x")
    )


def restored(session_id: str, turn: str, seq: int = 3) -> OutboxRow:
    event = ev.TurnRestored(session_id=session_id, seq=seq, at=3_000.0, turn_id=turn, by="x")
    return restored_row(event, None)


def active(connection: sqlite3.Connection) -> dict[str, str | None]:
    """Return the memories that count, each with the one that it contradicts."""
    listed = page(connection, MemoryFilter(), 10, None).memories
    return {memory.id: memory.conflicts_with for memory in listed}


def test_two_sessions_that_replaced_the_same_memory_are_shown_as_a_conflict() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        create_tables(connection)
        rows = [
            changed("s1", "mem_tea", TEA),
            changed("s2", "mem_coffee", COFFEE, target="mem_tea"),
            changed("s3", "mem_water", "The user drinks water.", target="mem_tea"),
        ]
        apply_rows(connection, rows, ())
        assert active(connection) == {"mem_coffee": None, "mem_water": "mem_coffee"}
        # The first of the two is replaced in turn: the person has decided.
        apply_rows(connection, [changed("s2", "mem_cocoa", "Cocoa.", target="mem_coffee")], ())
        assert active(connection) == {"mem_cocoa": None, "mem_water": None}


def test_a_memory_that_two_sessions_replaced_is_back_once_both_are_undone() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        create_tables(connection)
        rows = [
            changed("s1", "mem_tea", TEA),
            changed("s2", "mem_coffee", COFFEE, target="mem_tea", turn="t2"),
            changed("s3", "mem_water", "The user drinks water.", target="mem_tea", turn="t3"),
        ]
        apply_rows(connection, rows, ())
        apply_rows(connection, [undone("s2", "t2")], ())
        assert active(connection) == {"mem_water": None}
        apply_rows(connection, [restored("s2", "t2")], ())
        assert active(connection) == {"mem_coffee": None, "mem_water": "mem_coffee"}
        apply_rows(connection, [undone("s2", "t2", seq=4), undone("s3", "t3")], ())
        assert active(connection) == {"mem_tea": None}


def test_a_restored_replacement_is_the_one_that_ends_what_it_replaced() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        create_tables(connection)
        rows = [
            changed("s1", "mem_tea", TEA),
            changed("s2", "mem_coffee", COFFEE, target="mem_tea", turn="t2"),
            changed("s3", "mem_water", "The user drinks water.", target="mem_coffee", turn="t3"),
        ]
        apply_rows(connection, rows, ())
        apply_rows(connection, [undone("s2", "t2"), restored("s2", "t2"), undone("s3", "t3")], ())
        assert active(connection) == {"mem_coffee": None}
        apply_rows(connection, [undone("s2", "t2", seq=4)], ())
        assert active(connection) == {"mem_tea": None}


async def test_a_fact_about_one_workspace_stays_there_when_it_is_replaced(
    home: Path, tmp_path: Path
) -> None:
    replies = [call("memory", action="add", about="work", text="The port is 80."), said()]
    (tmp_path / "other").mkdir()
    async with remembering(ScriptedModel(replies), home) as app:
        session = await app.open()
        await ask(session, "The port is 80")
        (added,) = await facts(app, session, ev.MemoryChanged)
        correction = {"action": "replace", "id": added.memory_id, "text": "The port is 81."}
        replies += [call("memory", **correction), said()]
        await ask(session, "No, 81")
        (memory,) = await app.memory.export()
        assert (memory.text, memory.about) == ("The port is 81.", "work")
        replies += [call("recall", words="port"), said()]
        elsewhere = await app.open()
        turn = await elsewhere.send("Which port?", workspace=str(tmp_path / "other"))
        await asyncio.wait_for(turn.result(), 20)
        assert await facts(app, elsewhere, ev.MemoryRecalled) == []
        assert (await results(app, elsewhere))[-1]["memories"] == []


async def test_a_deleted_session_takes_nothing_away_that_others_taught(home: Path) -> None:
    replies = [call("memory", action="search", text="drinks"), said()]
    async with remembering(ScriptedModel(replies), home) as app:
        tea = await app.memory.add(TEA)
        session = await app.open()
        replies.insert(1, call("memory", action="replace", id=tea.id, text=COFFEE))
        await ask(session, "No, coffee")
        assert [memory.text for memory in await app.memory.export()] == [COFFEE]
        await app.delete(session.session_id)
        assert await app.memory.export() == []
        ended = (await app.memory.list(ended=True)).memories
        assert [(memory.id, memory.state) for memory in ended] == [(tea.id, "replaced")]


async def test_an_undone_replacement_brings_nothing_back_that_is_outdated(home: Path) -> None:
    replies = [call("memory", action="add", text=TEA), said()]
    async with remembering(ScriptedModel(replies), home) as app:
        first = await app.open()
        await ask(first, "I drink tea")
        (tea,) = await facts(app, first, ev.MemoryChanged)
        replies += [call("memory", action="replace", id=tea.memory_id, text=COFFEE), said()]
        second = await app.open()
        turn = await second.send("No, coffee")
        await turn.result()
        (coffee,) = await facts(app, second, ev.MemoryChanged)
        water = await app.memory.edit(coffee.memory_id, "The user drinks water.")
        await second.undo(turn.turn_id)
        assert [memory.id for memory in await app.memory.export()] == [water.id]
        states = {m.id: m.state for m in (await app.memory.list(ended=True)).memories}
        assert states == {tea.memory_id: "replaced", coffee.memory_id: "removed"}


async def test_wrong_input_of_a_program_is_refused_by_name_and_changes_nothing(home: Path) -> None:
    async with remembering(ScriptedModel([]), home) as app:
        memory: Any = app.memory
        tea = await memory.add(TEA)
        wrong = [
            ("text", memory.add(5)),
            ("profile", memory.add(TEA, profile=5)),
            ("about", memory.add(TEA, about="all")),
            ("ids", memory.forget(tea.id)),
            ("ids", memory.forget([tea.id, 5])),
            ("limit", memory.list(limit=0)),
            ("limit", memory.search("tea", limit=2**70)),
            ("before", memory.list(before=-1)),
            ("places", memory.retry([2**70])),
            ("words", memory.search(None)),
            ("operation", memory.undo(b"x")),
        ]
        for name, request in wrong:
            with pytest.raises(DeveloperMustActError, match=f"`{name}`"):
                await request
        assert [memory.text for memory in await memory.export()] == [TEA]
        half = await memory.add("A name \udc80 of a file", profile="\udc80")
        assert (half.text, half.profile) == (r"A name \udc80 of a file", r"\udc80")
        assert await memory.search("file", profile="\udc80")
        assert (await memory.forget(["\udc80"])).erased == ()
