"""What goes wrong in one session stays there, has an outcome, and the session goes on."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import tempfile
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import hypothesis
import pytest
from hypothesis import strategies as st

from keryx import NO_EFFECTS, Keryx, tool
from keryx import events as ev
from keryx.aio.loops import run_loop
from keryx.app import SessionHandle
from keryx.app.host.homes.home import STORE
from keryx.app.host.homes.host_address import TMP_PREFIX
from keryx.errors import InvalidCommandError, SessionDamagedError, UserMustActError
from keryx.messages import Text, UserMessage
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply, history_of
from keryx.ports.model import ModelRequest
from keryx.ports.tool_context import ToolContext
from tests.app.hosts import check_log, result_of

TEXTS: Final = st.text(st.characters(exclude_categories=()), max_size=30)


def echo(request: ModelRequest) -> ScriptedReply:
    last = history_of(request)[-1]
    calls = [ScriptedCall("look")] if isinstance(last, UserMessage) and request.tools else []
    return ScriptedReply(text="well", calls=calls)


@asynccontextmanager
async def hosting(home: Path, **options: Any) -> AsyncGenerator[Keryx]:
    options = {"model": ScriptedModel(echo), "tools": [], "workspace": home.parent, **options}
    async with Keryx(home=home, **options) as app:
        yield app


async def goes_on(session: SessionHandle) -> None:
    result = await result_of(await session.send("still there?"))
    assert (result.outcome, result.text) == ("completed", "well")


# -- a defect in a turn


def remove_temporary_folder_of(session_id: str) -> None:
    (uploads,) = Path(tempfile.gettempdir()).glob(f"{TMP_PREFIX}*/*/{session_id}")
    shutil.rmtree(uploads.parent.parent)


@pytest.mark.promise("mended.1")
async def test_a_removed_temporary_folder_does_not_stop_an_attachment(tmp_path: Path) -> None:
    async with hosting(tmp_path / "home") as app:
        session = await app.open()
        for name in ("a.txt", "b.txt"):
            part = await app.upload(name.encode(), name, "text/plain")
            result = await result_of(await session.send("see", attachments=[part]))
            assert result.outcome == "completed"
            remove_temporary_folder_of(session.session_id)
        await goes_on(session)


@pytest.mark.promise("mended.1", "mended.11")
@pytest.mark.parametrize("schema", ["not json {", "[]", '"text"', '{"type": 5}'])
async def test_a_bad_schema_is_refused_by_send(schema: str, tmp_path: Path) -> None:
    async with hosting(tmp_path / "home") as app:
        session = await app.open()
        with pytest.raises(UserMustActError, match="schema"):
            await session.send("x", schema=schema)
        await goes_on(session)


@pytest.mark.promise("mended.1")
async def test_a_model_with_a_defect_fails_its_turn_and_says_what_to_do(tmp_path: Path) -> None:
    class Broken(ScriptedModel):
        is_broken = True

        def encode(self, message: Any) -> bytes:
            if self.is_broken:
                raise ZeroDivisionError("a defect")
            return super().encode(message)

    model = Broken(echo)
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    async with hosting(tmp_path / "home", model=model) as app:
        session = await app.open()
        result = await result_of(await session.send("hello"))
        assert result.outcome == "failed"
        assert result.error is not None
        assert (result.error.kind, "a defect" in result.error.message) == ("internal", True)
        assert "send the message again" in result.error.hint
        model.is_broken = False
        await goes_on(session)
        check_log(await app.store.events(session.session_id))


# -- what enters


@pytest.mark.promise("mended.11")
@pytest.mark.parametrize(
    ("method", "arguments", "options"),
    [
        ("send", (None,), {}),
        ("send", (123,), {}),
        ("send", ("x",), {"key": 5}),
        ("send", ("x",), {"schema": {"type": "object"}}),
        ("send", ("x",), {"workspace": 5}),
        ("send", ("x",), {"attachments": ["a.txt"]}),
        ("steer", (b"x",), {}),
        ("change", (), {"title": 5}),
        ("change", (), {"tools": "x"}),
        ("change", (), {"approvals": "yolo"}),
        ("change", (), {"model": 5}),
        ("change", (), {"pinned": "yes"}),
        ("undo", (5,), {}),
        ("revert", (["x"],), {}),
        ("answer", ("a", "perhaps"), {}),
        ("answer_question", ("q", 5), {}),
    ],
)
async def test_a_wrongly_typed_argument_is_refused_and_damages_nothing(
    method: str, arguments: tuple[Any, ...], options: dict[str, Any], tmp_path: Path
) -> None:
    home = tmp_path / "home"
    async with hosting(home) as app:
        session = await app.open()
        with pytest.raises(InvalidCommandError, match="was refused"):
            await getattr(session, method)(*arguments, **options)
        await goes_on(session)
    async with hosting(home) as app:
        await goes_on(await app.open(session.session_id))


def speaking(text: str) -> tuple[ScriptedModel, Any]:
    """A model and a tool that say this in every way there is."""

    @tool(effects=NO_EFFECTS)
    async def look(context: ToolContext) -> Any:
        """Look."""
        context.emit(text)
        context.progress(1, 2, text)
        if len(text) % 3 == 0:
            raise ValueError(text)
        return text if len(text) % 3 == 1 else [Text(text)]

    def say(request: ModelRequest) -> ScriptedReply:
        is_first = isinstance(history_of(request)[-1], UserMessage)
        calls = [ScriptedCall("look")] if is_first else []
        return ScriptedReply(text=text or "-", reasoning=text, calls=calls)

    return ScriptedModel(say), look


@pytest.mark.promise("mended.6")
@hypothesis.given(text=TEXTS)
@hypothesis.settings(max_examples=25)
def test_any_text_from_a_model_or_a_tool_is_logged_and_read_back(
    text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("texts") / "home"

    async def speak() -> None:
        model, look = speaking(text)
        async with hosting(home, model=model, tools=[look]) as app:
            session = await app.open()
            result = await result_of(await session.send("look"))
            assert result.outcome == "completed"
            (call,) = result.calls
            assert call.outcome == ("failed" if len(text) % 3 == 0 else "completed")
            log = await app.store.events(session.session_id)
            assert [ev.decode_logged(ev.encode(event)) for event in log] == log

    run_loop(speak())


@pytest.mark.promise("mended.6")
async def test_a_file_name_that_is_not_utf8_is_shown_with_an_escape(tmp_path: Path) -> None:
    @tool(effects=NO_EFFECTS)
    async def look() -> str:
        """Look."""
        return b"caf\xe9.txt".decode(errors="surrogateescape")

    async with hosting(tmp_path / "home", tools=[look]) as app:
        result = await result_of(await (await app.open()).send("look"))
        assert result.calls[0].result == (Text("caf\\udce9.txt"),)


# -- one session that cannot be read


def spoil(home: Path, session_id: str, body: bytes) -> None:
    connection = sqlite3.connect(home / STORE)
    with connection:
        connection.execute(
            "UPDATE events SET body = ? WHERE seq = 3"
            " AND no = (SELECT no FROM sessions WHERE session_id = ?)",
            (body, session_id),
        )
    connection.close()


OUT_OF_ORDER: Final = ev.encode(
    ev.MessageDelivered(session_id="s", seq=3, at=0.0, turn_id="t", message_id="never accepted")
)


@pytest.mark.promise("mended.7")
@pytest.mark.parametrize("body", [b"{", b"\xff", OUT_OF_ORDER], ids=["cut", "bytes", "order"])
async def test_one_unreadable_session_is_shown_as_damaged_and_the_rest_works(
    body: bytes, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    hanging = ScriptedModel([ScriptedReply(text="so", hold=asyncio.Event().wait)])
    async with hosting(home, model=hanging) as app:
        bad = await app.open()
        turn = await bad.send("wait")
        async with aclosing(turn.events()) as events:
            async for event in events:
                if isinstance(event, ev.TextDelta):
                    break
    spoil(home, bad.session_id, body)
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    async with hosting(home) as app:  # which wants to go on with the unfinished turn
        with pytest.raises(SessionDamagedError, match="the other sessions work"):
            await app.open(bad.session_id)
        await goes_on(await app.open())
        row = await app.store.session(bad.session_id)
        assert row is not None
        assert row.state == "damaged"
        assert await app.delete(bad.session_id)


# -- costs


@pytest.mark.promise("mended.9")
async def test_a_reply_that_was_cut_while_it_reasoned_has_an_unknown_cost(tmp_path: Path) -> None:
    thinking = ScriptedReply(reasoning="hm", hold=asyncio.Event().wait)
    async with hosting(tmp_path / "home", model=ScriptedModel([thinking])) as app:
        session = await app.open()
        turn = await session.send("think")
        async with aclosing(turn.events()) as events:
            async for event in events:
                if isinstance(event, ev.ReasoningDelta):
                    break
        stopped = await turn.cancel()
        assert stopped.cost is None
        (usage,) = await app.store.usage(session.session_id)
        assert usage.cost is None
