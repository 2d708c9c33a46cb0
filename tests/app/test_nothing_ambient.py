"""A hundred turns at once, in workspaces and profiles of their own: the process around them is the
same before, during and after, and no turn sees anything of another."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import msgspec
import pytest

from keryx import Keryx
from keryx import events as ev
from keryx.app import SessionHandle
from keryx.messages import Json
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply
from keryx.ports.model import ModelRequest

TURNS = 100
PROFILES = ("red", "green", "blue")
LOOK = 'echo "$KERYX_WORKSPACE|$KERYX_SESSION_ID|$PWD|$OTHER"'


def services() -> tuple[dict[bytes, bytes], str]:
    """What a whole process shares."""
    return dict(os.environb), str(Path.cwd())


class Together:
    """A model whose first replies all wait for one another."""

    def __init__(self) -> None:
        self.all_there = asyncio.Event()
        self.go_on = asyncio.Event()
        self._there = 0

    async def hold(self) -> None:
        self._there += 1
        if self._there == TURNS:
            self.all_there.set()
        await self.go_on.wait()

    def reply(self, asked: ModelRequest) -> ScriptedReply:
        if len(asked.history) > 1:
            return ScriptedReply(text=asked.system)
        return ScriptedReply(calls=[ScriptedCall("terminal", {"command": LOOK})], hold=self.hold)


async def turn_of(session: SessionHandle) -> tuple[str, str]:
    """What the turn's command saw, and the prompt that it ran with."""
    result = await (await session.send("look around")).result()
    assert result.outcome == "completed", result.error
    (call,) = result.calls
    (part,) = call.result
    assert isinstance(part, Json)
    return msgspec.json.decode(part.value)["output"].strip(), result.text


@pytest.mark.promise("004.4", "server.3")
async def test_a_hundred_turns_leave_the_process_as_it_is(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    told = "\n".join(f"[profiles.{p}.personalities]\nown = 'I am {p}.'" for p in PROFILES)
    (home / "config.toml").write_text(told)
    together = Together()
    before = services()
    async with Keryx(model=ScriptedModel(together.reply), home=home, workspace=tmp_path) as app:
        expected = list[tuple[str, str]]()
        running = list[asyncio.Task[tuple[str, str]]]()
        for number in range(TURNS):
            workspace = tmp_path / f"work-{number}"
            workspace.mkdir()
            (workspace / "AGENTS.md").write_text(f"This is number {number}.")
            profile = PROFILES[number % len(PROFILES)]
            session = await app.open(profile=profile, personality="own", approvals="never")
            await session.change(workspace=str(workspace))
            seen = f"{workspace}|{session.session_id}|{workspace}|"
            expected.append((seen, f"This is number {number}.\n\nI am {profile}."))
            running.append(asyncio.create_task(turn_of(session)))
        await together.all_there.wait()
        assert services() == before
        together.go_on.set()
        found = [await task for task in running]
        during = services()
        rows = await app.store.sessions(limit=TURNS)
        assert {type(row.title) for row in rows} == {str}
    assert during == before
    assert services() == before
    for (seen, prompt), (wanted, told_of) in zip(found, expected, strict=True):
        assert seen == wanted
        assert prompt.endswith(told_of)
    assert capfd.readouterr() == ("", "")


@pytest.mark.promise("004.5")
async def test_each_message_keeps_the_workspace_that_it_was_sent_with(tmp_path: Path) -> None:
    gate = asyncio.Event()

    def reply(asked: ModelRequest) -> ScriptedReply:
        calls = [ScriptedCall("terminal", {"command": "pwd"})]
        if len(asked.history) % 4 == 1:
            return ScriptedReply(calls=calls, hold=gate.wait)
        return ScriptedReply(text="Done.")

    places = [tmp_path / name for name in ("one", "two", "three")]
    for place in places:
        place.mkdir()
    async with Keryx(model=ScriptedModel(reply), home=tmp_path / "h", workspace=tmp_path) as app:
        session = await app.open(approvals="never")
        turns = [await session.send("where?", workspace=str(place)) for place in places]
        await session.change(workspace=str(tmp_path))
        gate.set()
        for turn, place in zip(turns, places, strict=True):
            (call,) = (await turn.result()).calls
            assert str(place).encode() in ev.encode(call)
        log = await app.store.events(session.session_id)
    texts = [event.text for event in log if isinstance(event, ev.MessageAccepted)]
    assert texts == ["where?"] * 3, "what a person said holds no tag"
