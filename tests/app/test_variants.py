"""Other answers to the same message: replaced, restored and continued from."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from keryx import Keryx
from keryx import events as ev
from keryx.app import SessionHandle
from keryx.app.portable.conversation import readable
from keryx.errors import UserMustActError
from keryx.models.scripted import ScriptedModel, ScriptedReply
from keryx.ports.model import ModelRequest
from tests.app.test_history import said, spoken, writing

pytestmark = pytest.mark.promise("page20.5")


def numbering() -> ScriptedModel:
    """Answers with a number that rises, so that each answer is another."""
    count = 0

    def reply(request: ModelRequest) -> ScriptedReply:
        nonlocal count
        del request
        count += 1
        return ScriptedReply(text=f"Answer {count}.")

    return ScriptedModel(reply)


async def shown(app: Keryx, session: SessionHandle) -> list[str]:
    """What a person reads, in a few words."""
    rows = await app.store.transcript(session.session_id)
    texts = [getattr(row.event, "text", None) for row in rows]
    return [text for text in texts if text is not None]


async def test_an_answer_is_replaced_and_comes_back_with_what_followed_it(tmp_path: Path) -> None:
    model = numbering()
    async with Keryx(model=model, home=tmp_path / "home", workspace=tmp_path) as app:
        session = await app.open()
        first = await said(session, "one")
        await said(session, "two")
        second = await said(session, "one again", replaces=first)
        assert await shown(app, session) == ["one again", "Answer 3."]
        assert "two" not in spoken(model.asked[-1])
        await said(session, "three")
        await session.restore(first)
        assert await shown(app, session) == ["one", "Answer 1.", "two", "Answer 2."]
        # The session goes on from there, and the other branch is still there too.
        await said(session, "four")
        prompt = spoken(model.asked[-1])
        assert ("two" in prompt, "one again" in prompt, "three" in prompt) == (True, False, False)
        await session.restore(second)
        assert await shown(app, session) == ["one again", "Answer 3.", "three", "Answer 4."]
        # Twice is once.
        await session.restore(second)
        log = await app.store.events(session.session_id)
        assert [entry.text for entry in readable(log).entries if entry.kind == "person"] == [
            "one again",
            "three",
        ]
        variants = [event.variants for event in log if isinstance(event, ev.TurnRestored)]
        assert variants[0] == (first, second)


async def test_the_answers_are_the_same_after_a_restart_and_in_a_fork(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with Keryx(model=numbering(), home=home, workspace=tmp_path) as app:
        session = await app.open()
        first = await said(session, "one")
        second = await said(session, "one", replaces=first)
        third = await said(session, "one", replaces=second)
        await session.restore(first)
    model = numbering()
    async with Keryx(model=model, home=home, workspace=tmp_path) as app:
        session = await app.open(session.session_id)
        assert (await shown(app, session))[:2] == ["one", "Answer 1."]
        await said(session, "on")
        assert "Answer 1." in spoken(model.asked[-1])
        await session.restore(third)
        assert (await shown(app, session))[:2] == ["one", "Answer 3."]
        fork = await session.fork(third)
        await fork.restore(second)
        assert (await shown(app, fork))[:2] == ["one", "Answer 2."]
        assert (await shown(app, session))[:2] == ["one", "Answer 3."]


async def test_a_summary_made_meanwhile_does_not_hide_a_restored_answer(tmp_path: Path) -> None:
    model = numbering()
    async with Keryx(model=model, home=tmp_path / "home", workspace=tmp_path) as app:
        session = await app.open()
        first = await said(session, "the first words " + "so long " * 400)
        second = await said(session, "other words " + "so long " * 400, replaces=first)
        await said(session, "more " + "so long " * 400)
        await session.compact()
        await session.restore(first)
        await said(session, "on")
        prompt = spoken(model.asked[-1])
        assert ("the first words" in prompt, "other words" in prompt) == (True, False)
        await session.restore(second)
        await said(session, "on again")
        prompt = spoken(model.asked[-1])
        assert ("the first words" in prompt, "other words" in prompt) == (False, True)


async def test_files_are_reverted_only_if_that_was_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    async with Keryx(model=writing(), home=tmp_path / "home", workspace=tmp_path) as app:
        session = await app.open(approvals="never")
        first = await said(session, "one")
        second = await said(session, "two", replaces=first)
        assert file.read_text() == "two"
        await said(session, "three", replaces=second, revert=True)
        assert file.read_text() == "three"
        log = await app.store.events(session.session_id)
        assert [e.before is None for e in log if isinstance(e, ev.FilesChanged) and e.turn_id][
            :2
        ] == [True, False]
        file.write_text("edited by a person")
        last = [e.turn_id for e in log if isinstance(e, ev.TurnFinished)][-1]
        with pytest.raises(UserMustActError, match="someone edited it since"):
            await session.send("again", replaces=last, revert=True)
        assert file.read_text() == "edited by a person"
        assert (await shown(app, session))[0] == "three"


async def test_what_cannot_be_replaced_or_restored_is_refused_with_what_to_do(
    tmp_path: Path,
) -> None:
    release = asyncio.Event()

    slowly = ScriptedReply(text="Slow.", hold=release.wait)
    model = ScriptedModel([ScriptedReply(text="Done."), slowly, ScriptedReply(text="More.")])
    async with Keryx(model=model, home=tmp_path / "home", workspace=tmp_path) as app:
        session = await app.open()
        first = await said(session, "one")
        slow = await session.send("two")
        for refused in (session.send("one", replaces=first), session.restore(first)):
            with pytest.raises(UserMustActError, match="a turn is running; stop it"):
                await refused
        release.set()
        await slow.result()
        with pytest.raises(UserMustActError, match="can be replaced; read the transcript"):
            await session.send("x", replaces="t-nobody")
        with pytest.raises(UserMustActError, match="no such turn"):
            await session.restore("t-nobody")
        await session.undo(slow.turn_id)
        with pytest.raises(UserMustActError, match="was undone, not replaced"):
            await session.restore(slow.turn_id)
        with pytest.raises(UserMustActError, match="can be replaced"):
            await session.send("x", replaces=slow.turn_id)


async def test_the_same_key_replaces_once(tmp_path: Path) -> None:
    async with Keryx(model=numbering(), home=tmp_path / "home", workspace=tmp_path) as app:
        session = await app.open()
        first = await said(session, "one")
        turns = [await session.send("one", replaces=first, key="k") for _ in range(2)]
        assert turns[0].turn_id == turns[1].turn_id
        await turns[0].result()
        assert await shown(app, session) == ["one", "Answer 2."]
