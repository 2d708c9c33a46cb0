"""A store that an earlier version of Keryx wrote is opened, read, searched and continued.

`earlier/november_2026.sql` is such a store, dumped by `sqlite3`: a turn that wrote a file and ran a
command, a compaction, an undone turn, a fork, a title and a draft.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from keryx import Keryx
from keryx import events as ev
from keryx.models.scripted import ScriptedModel, ScriptedReply

pytestmark = pytest.mark.promise("words.6")

EARLIER = sorted((Path(__file__).parent / "earlier").glob("*.sql"))


@pytest.fixture(params=EARLIER, ids=lambda path: path.stem)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A home whose store an earlier version wrote."""
    path = tmp_path / "home"
    path.mkdir(mode=0o700)
    with closing(sqlite3.connect(path / "keryx.db")) as connection:
        connection.executescript(request.param.read_text())
    return path


async def test_it_is_read_as_it_was_written(home: Path) -> None:
    async with Keryx(model=ScriptedModel(lambda _: ScriptedReply()), home=home) as app:
        rows = await app.store.sessions()
        (titled,) = [row for row in rows if row.title == "Written before"]
        log = await app.store.events(titled.session_id)
        view = await (await app.open(titled.session_id)).view()
        hits = await app.store.search("write the notes")
    assert [type(event) for event in log if isinstance(event, ev.TurnUndone)] == [ev.TurnUndone]
    outcomes = {event.tool: event.outcome for event in log if isinstance(event, ev.CallFinished)}
    assert outcomes == {"write_file": "completed", "terminal": "completed"}
    assert view.draft.text == "half a thought"
    assert len(rows) == 2, "the session and its fork"
    assert hits


async def test_its_sessions_are_for_the_owner_of_the_home(home: Path) -> None:
    """Nobody else may find in them what was said to whoever wrote it."""
    async with Keryx(model=ScriptedModel(lambda _: ScriptedReply()), home=home) as app:
        rows = await app.store.sessions()
        assert [row.person for row in rows] == [None] * len(rows)
        assert await app.store.sessions(person="") == rows
        assert await app.store.search("write the notes", person="telegram:7") == []
        (opened, *_) = await app.store.events(rows[0].session_id)
    assert isinstance(opened, ev.SessionOpened)
    assert opened.person is None


async def test_it_goes_on(home: Path, tmp_path: Path) -> None:
    model = ScriptedModel(lambda _: ScriptedReply(text="Still here."))
    async with Keryx(model=model, home=home, workspace=tmp_path) as app:
        for row in await app.store.sessions():
            session = await app.open(row.session_id)
            await session.change(workspace=str(tmp_path))
            result = await (await session.send("Are you there?")).result()
            assert result.text == "Still here."
    history = str(model.asked[-1].history)
    assert "A summary: notes.txt was written." in history, "the compaction still stands"
    assert "A third time" not in history, "the undone turn stays undone"
