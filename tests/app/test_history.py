"""Forks, undone turns, drafts, attachments, profiles, and the feed of changes, as a program sees
them."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from keryx import NO_EFFECTS, Keryx, ToolContext, tool
from keryx import commands as cm
from keryx import events as ev
from keryx.app import SessionHandle
from keryx.errors import UserMustActError
from keryx.messages import File, Image, Text, UserMessage
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply, history_of
from keryx.ports.model import ModelRequest
from keryx.ports.view import Typed


def counting() -> ScriptedModel:
    return ScriptedModel(lambda request: ScriptedReply(text=f"reply {len(request.history)}"))


def texts_of(message: UserMessage) -> list[str]:
    return [part.text for part in message.content if isinstance(part, Text)]


def writing() -> ScriptedModel:
    """Writes what it is told to, then rests."""

    def reply(request: ModelRequest) -> ScriptedReply:
        last = history_of(request)[-1]
        if not isinstance(last, UserMessage):
            return ScriptedReply(text="Written.")
        text = texts_of(last)[0].partition("\n")[2]
        calls = [
            ScriptedCall("write_file", {"path": "notes.txt", "content": text, "overwrite": True})
        ]
        return ScriptedReply(text="", calls=calls)

    return ScriptedModel(reply)


async def said(session: SessionHandle, text: str, **options: Any) -> str:
    turn = await session.send(text, **options)
    assert (await turn.result()).outcome == "completed"
    return turn.turn_id


def spoken(request: ModelRequest) -> str:
    return "\n".join(str(message) for message in history_of(request))


# -- forks


async def test_a_fork_shares_the_past_up_to_a_turn_and_goes_its_own_way(tmp_path: Path) -> None:
    model = counting()
    async with Keryx(model=model, home=tmp_path / "home", workspace=tmp_path) as app:
        session = await app.open()
        first = await said(session, "one")
        await said(session, "two")
        fork = await session.fork(first)
        await said(fork, "three")
        prompt = spoken(model.asked[-1])
        assert "one" in prompt
        assert "three" in prompt
        assert "two" not in prompt
        await app.delete(session.session_id)
        rows = await app.store.transcript(fork.session_id)
        texts = [row.event.text for row in rows if isinstance(row.event, ev.MessageAccepted)]
        assert texts == ["one", "three"]
        view = await fork.view()
        assert (view.settings.title, view.turn, view.queue) == ("one (fork)", None, ())


async def test_what_was_queued_does_not_run_a_second_time_in_the_fork(tmp_path: Path) -> None:
    async with Keryx(model=counting(), home=tmp_path / "home", workspace=tmp_path) as app:
        session = await app.open()
        first = await said(session, "one")
        queued = await session.tell(cm.SendMessage, text="two")
        del queued
        fork = await session.fork(first)
        rows = await app.store.transcript(fork.session_id)
        assert [type(row.event) for row in rows] == [ev.MessageAccepted, ev.StepReplied]


async def test_a_fork_at_a_turn_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    async with Keryx(model=counting(), home=tmp_path / "home", workspace=tmp_path) as app:
        session = await app.open()
        with pytest.raises(UserMustActError, match="end of a turn"):
            await session.fork("t_nowhere")


# -- undo


async def test_an_undone_turn_leaves_nothing_on_the_disk_nor_in_the_prompt(tmp_path: Path) -> None:
    workspace = tmp_path / "work"
    workspace.mkdir()
    model = writing()
    async with Keryx(model=model, home=tmp_path / "home", workspace=workspace) as app:
        session = await app.open(approvals="never")
        await said(session, "alpha")
        second = await said(session, "beta")
        assert (workspace / "notes.txt").read_text() == "beta"
        await session.undo(second)
        assert (workspace / "notes.txt").read_text() == "alpha"
        await session.undo(second)  # a second time does nothing
        await said(session, "gamma")
        assert "beta" not in spoken(model.asked[-1])
        rows = await app.store.transcript(session.session_id)
        texts = [row.event.text for row in rows if isinstance(row.event, ev.MessageAccepted)]
        assert texts == ["alpha", "gamma"]


async def test_an_undo_that_would_lose_an_edit_is_refused_and_changes_nothing(
    tmp_path: Path,
) -> None:
    workspace = tmp_path / "work"
    workspace.mkdir()
    async with Keryx(model=writing(), home=tmp_path / "home", workspace=workspace) as app:
        session = await app.open(approvals="never")
        turn = await said(session, "alpha")
        (workspace / "notes.txt").write_text("by hand")
        with pytest.raises(UserMustActError, match="someone edited it since"):
            await session.undo(turn)
        assert (workspace / "notes.txt").read_text() == "by hand"
        assert len(await app.store.transcript(session.session_id)) > 0
        await session.undo(turn, files=False)
        assert (workspace / "notes.txt").read_text() == "by hand"
        assert await app.store.transcript(session.session_id) == []


async def test_only_a_turn_that_is_over_can_be_undone(tmp_path: Path) -> None:
    async with Keryx(model=counting(), home=tmp_path / "home", workspace=tmp_path) as app:
        session = await app.open()
        with pytest.raises(UserMustActError, match="that has ended"):
            await session.undo("t_nowhere")


# -- what is typed


async def test_what_was_typed_is_there_after_a_restart_and_gone_with_its_session(
    tmp_path: Path,
) -> None:
    async with Keryx(model=counting(), home=tmp_path / "home", workspace=tmp_path) as app:
        session = await app.open()
        await session.tell(cm.SetDraft, text="half a sen")
        await session.tell(cm.SetDraft, text="half a sentence")
        session_id = session.session_id
    async with Keryx(model=counting(), home=tmp_path / "home", workspace=tmp_path) as app:
        session = await app.open(session_id)
        assert (await session.view()).draft == Typed("half a sentence")
        await app.delete(session_id)
        assert await app.store.records(f"session/{session_id}/") == {}


async def test_a_session_at_rest_looks_the_same_before_and_after_it_is_opened(
    tmp_path: Path,
) -> None:
    async with Keryx(model=counting(), home=tmp_path / "home", workspace=tmp_path) as app:
        session = await app.open(effort="high", personality="formal")
        await said(session, "one")
        await session.change(title="Mine", model="scripted:two", pinned=True)
        turn = await session.send("two")
        await turn.result()
        await session.undo(turn.turn_id)
        await session.tell(cm.SetDraft, text="half a sentence")
        session_id = session.session_id
        loaded = await session.view()
    async with Keryx(model=counting(), home=tmp_path / "home", workspace=tmp_path) as app:
        at_rest = await app.host_client.view(session_id)
        await (await app.open(session_id)).tell(cm.SetDraft, text="half a sentence")
        again = await app.host_client.view(session_id)
    assert at_rest == again == loaded


# -- attachments


@pytest.mark.promise("004.8")
async def test_an_image_goes_as_an_image_to_a_model_that_sees(tmp_path: Path) -> None:
    model = ScriptedModel([ScriptedReply(text="A cat.")], sees_images=True)
    async with Keryx(model=model, home=tmp_path / "home", workspace=tmp_path) as app:
        session = await app.open()
        image = await app.upload(b"\x89PNG\r\n\x1a\n...", "cat.png", "image/png")
        await said(session, "what is this?", attachments=[image])
        (message,) = history_of(model.asked[0])
        assert isinstance(message, UserMessage)
        assert image in message.content
        rows = await app.store.transcript(session.session_id)
        accepted = rows[0].event
        assert isinstance(accepted, ev.MessageAccepted)
        assert accepted.attachments == (Image(image.blob, "image/png", "cat.png"),)
        assert await app.store.blob(image.blob) == b"\x89PNG\r\n\x1a\n..."


@pytest.mark.promise("004.8")
async def test_a_file_is_where_tools_and_commands_find_it(tmp_path: Path) -> None:
    def reply(request: ModelRequest) -> ScriptedReply:
        if len(request.history) > 1:
            return ScriptedReply(text="Read.")
        (message,) = history_of(request)
        assert isinstance(message, UserMessage)
        path = texts_of(message)[1]
        path = path.removeprefix("[attached: ").removesuffix("]")
        return ScriptedReply(
            calls=[
                ScriptedCall("read_file", {"path": path}),
                ScriptedCall("terminal", {"command": f'cat "{path}"'}),
                ScriptedCall("write_file", {"path": path, "content": "no"}),
            ]
        )

    async with Keryx(model=ScriptedModel(reply), home=tmp_path / "home", workspace=tmp_path) as app:
        session = await app.open(approvals="never")
        file = await app.upload(b"quarterly figures\n", "../Q3 report;.txt", "text/plain")
        turn = await session.send("read it", attachments=[file])
        result = await turn.result()
    ended = {call.tool: call for call in result.calls}
    assert b"quarterly figures" in ev.encode(ended["read_file"])
    assert b"quarterly figures" in ev.encode(ended["terminal"])
    assert ended["write_file"].outcome == "failed"
    assert b"as a person sent it" in ev.encode(ended["write_file"])


@pytest.mark.promise("004.8")
async def test_an_attachment_that_was_never_uploaded_is_refused(tmp_path: Path) -> None:
    async with Keryx(model=counting(), home=tmp_path / "home", workspace=tmp_path) as app:
        session = await app.open()
        nowhere = File("0" * 64, "text/plain", "x")
        with pytest.raises(UserMustActError, match="upload it again"):
            await session.send("read it", attachments=[nowhere])
        assert await app.store.transcript(session.session_id) == []


# -- profiles


@pytest.mark.promise("004.6", "004.7")
async def test_a_profile_brings_its_personality_and_an_unknown_one_a_warning(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text("[profiles.work.personalities]\nformal = 'Be formal.'\n")
    model = counting()
    async with Keryx(model=model, home=home, workspace=tmp_path) as app:
        at_work = await app.open(profile="work", personality="formal")
        await said(at_work, "hi")
        assert "Be formal." in model.asked[-1].system
        at_home = await app.open(personality="formal")
        await said(at_home, "hi")
        assert "Be formal." not in model.asked[-1].system
        gone = await app.open(profile="gone")
        await said(gone, "hi")
        log = await app.store.events(gone.session_id)
    (started,) = [event for event in log if isinstance(event, ev.TurnStarted)]
    assert "there is no profile 'gone'" in started.warnings[0]


# -- titles


def titling(request: ModelRequest) -> ScriptedReply:
    if "title of three to six words" in spoken(request):
        return ScriptedReply(text='**"Cats and their _names_."**')
    return ScriptedReply(text="Yes.")


async def titles_of(app: Keryx, session: SessionHandle, count: int) -> list[str]:
    """The titles that the session had, once it had that many."""
    titles = list[str]()
    async with aclosing(session.events()) as stream:
        async for event in stream:
            if isinstance(event, ev.SessionChanged) and isinstance(event.title, str):
                titles.append(event.title)
            if len(titles) == count:
                return titles
    raise AssertionError("the stream ended")


@pytest.mark.promise("004.9")
async def test_a_title_comes_at_once_and_is_improved_once(tmp_path: Path) -> None:
    model = ScriptedModel(titling)
    async with Keryx(model=model, home=tmp_path / "home", workspace=tmp_path, titles=True) as app:
        session = await app.open()
        await said(session, "how shall I call my cat?\nit is grey")
        expected = ["how shall I call my cat?", "Cats and their names"]
        assert await titles_of(app, session, 2) == expected
        await said(session, "and the second one?")
        assert len(model.asked) == 3
        log = await app.store.events(session.session_id)
        assert [event.purpose for event in log if isinstance(event, ev.UsageRecorded)] == ["title"]


@pytest.mark.promise("004.9")
async def test_a_person_s_own_title_stays(tmp_path: Path) -> None:
    model = ScriptedModel(titling)
    async with Keryx(model=model, home=tmp_path / "home", workspace=tmp_path, titles=True) as app:
        session = await app.open()
        await session.change(title="Mine")
        await said(session, "how shall I call my cat?")
        await said(session, "well?")
        assert (await session.view()).settings.title == "Mine"
        assert len(model.asked) == 2


# -- the feed


async def test_the_feed_tells_of_each_session_that_changes_and_of_those_that_go(
    tmp_path: Path,
) -> None:
    async with Keryx(model=counting(), home=tmp_path / "home", workspace=tmp_path) as app:
        before = await app.open()
        async with aclosing(app.host_client.changes(after=0)) as changes:
            first = await anext(changes)
            assert first.session_id == before.session_id
            after = await app.open()
            await said(after, "hello")
            seen = dict[str, str]()
            async for change in changes:
                assert change.row is not None
                seen[change.session_id] = change.row.title
                if change.row.title == "hello" and change.row.state == "idle":
                    break
            assert seen == {after.session_id: "hello"}
            await app.delete(before.session_id)
            async for change in changes:
                if change.session_id == before.session_id:
                    assert change.row is None
                    break


async def test_who_leaves_the_feed_at_any_point_comes_back_to_all_that_they_missed(
    tmp_path: Path,
) -> None:
    async with Keryx(model=counting(), home=tmp_path / "home", workspace=tmp_path) as app:
        twice, once = await app.open(), await app.open()
        start = max(row.position for row in await app.store.sessions())
        async with aclosing(app.host_client.changes(after=start)) as changes:
            reading = asyncio.ensure_future(anext(changes))
            await twice.change(title="a")
            position = (await reading).upto or start
            # All three are noted before the next one is read.
            for session, title in ((twice, "b"), (once, "c"), (twice, "d")):
                await session.change(title=title)
            change = await anext(changes)
            assert (change.session_id, change.upto) == (twice.session_id, None)
            assert change.row is not None
            assert change.row.title == "d"
        # Whoever was cut off here has heard of a later change than the one that they missed.
        async with aclosing(app.host_client.changes(after=position)) as changes:
            missed = [(await anext(changes)) for _ in range(2)]
        titles = {item.row.title for item in missed if item.row is not None}
        assert titles == {"c", "d"}
        assert missed[-1].upto == max(row.position for row in await app.store.sessions())


async def test_a_view_is_whole_and_the_stream_goes_on_from_it(tmp_path: Path) -> None:
    gate = asyncio.Event()
    model = ScriptedModel([ScriptedReply(text="Hm.", hold=gate.wait)])
    async with Keryx(model=model, home=tmp_path / "home", workspace=tmp_path) as app:
        session = await app.open(effort="high")
        turn = await session.send("one")
        await session.send("two")
        view = await session.view()
        gate.set()
        numbers = list[int]()
        async with aclosing(session.events(after=view.seq)) as stream:
            async for event in stream:
                numbers += [seq] if (seq := getattr(event, "seq", None)) else []
                if isinstance(event, ev.TurnFinished):
                    break
        await turn.result()
        assert view.turn is not None
        assert (view.turn.turn_id, [m.text for m in view.queue]) == (turn.turn_id, ["two"])
        assert numbers == list(range(view.seq + 1, view.seq + 1 + len(numbers)))
        assert view.settings.effort == "high"
        assert msgspec.json.decode(msgspec.json.encode(view), type=type(view)) == view


async def test_who_comes_late_is_shown_what_runs(tmp_path: Path) -> None:
    printed, gate = asyncio.Event(), asyncio.Event()

    @tool(effects=NO_EFFECTS)
    async def child() -> str:
        """Be called."""
        return "x"

    @tool(effects=NO_EFFECTS, container=True)
    async def long(context: ToolContext) -> str:
        """Print, call, and wait."""
        context.emit("half way\n")
        context.progress(1, 2, "half")
        await context.call("child", {})
        printed.set()
        await gate.wait()
        return "done"

    model = ScriptedModel(
        [ScriptedReply(calls=[ScriptedCall("long", {})]), ScriptedReply(text="Good.")]
    )
    async with Keryx(
        model=model, tools=[long, child], home=tmp_path / "h", workspace=tmp_path
    ) as app:
        session = await app.open()
        turn = await session.send("go")
        await printed.wait()
        view = await session.view()
        assert [call.tool for call in view.calls] == ["long"]
        seen = list[ev.CallsSnapshot]()
        async with aclosing(session.events(after=view.seq)) as stream:
            async for event in stream:
                if isinstance(event, ev.CallsSnapshot):
                    seen.append(event)
                    break
        (running,) = seen[0].running
        assert (running.tool, running.output, running.note) == ("long", "half way\n", "half")
        nested = running.nested
        assert nested is not None
        assert (nested.began, nested.ended, nested.completed) == (1, 1, 1)
        (shown,) = nested.calls
        assert (shown.tool, shown.outcome) == ("child", "completed")
        assert shown.call_id == f"{running.call_id}.1"
        gate.set()
        await turn.result()
        async with aclosing(session.events()) as stream:
            async for event in stream:
                assert not isinstance(event, ev.CallsSnapshot)
                if isinstance(event, ev.TurnFinished):
                    break
