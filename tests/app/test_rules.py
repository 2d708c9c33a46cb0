"""What `always` allows: no more than was said, listed in words, and taken back at once for all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from keryx import NO_EFFECTS, Keryx, tool
from keryx import events as ev
from keryx.app import SessionHandle
from keryx.engine.approvals import rule_in_words
from keryx.engine.approvals.answers import ALWAYS
from keryx.errors import UserMustActError
from keryx.messages import Decision, Reach
from keryx.ports.store import Commit, RecordChange
from keryx.ports.tool import Risk

pytestmark = pytest.mark.promise("mended.15")

PATIENCE = 20.0


@asynccontextmanager
async def careful(home: Path, *folders: Path) -> AsyncGenerator[list[SessionHandle]]:
    """A host, and a session in each folder that asks before it changes anything."""
    async with asyncio.timeout(PATIENCE), Keryx(model="scripted:demo", home=home) as app:
        yield [await opened(app, folder) for folder in folders]


def made(folder: Path) -> str:
    folder.mkdir(exist_ok=True)
    return str(folder)


async def opened(app: Keryx, folder: Path) -> SessionHandle:
    session = await app.open(approvals="ask")
    await session.change(workspace=made(folder))
    return session


async def asks(
    session: SessionHandle,
    name: str,
    decision: Decision = "deny",
    reach: Reach | None = None,
    *,
    tool: str = "write_file",
) -> ev.ApprovalAsked | None:
    """Write that file, or run that command, by hand; what was asked about it and answered so."""
    arguments = {"command": name} if tool == "terminal" else {"path": name, "content": name}
    asked = None
    async for event in session.run(tool, json.dumps(arguments)):
        if isinstance(event, ev.ApprovalAsked):
            asked = event
            await session.answer(event.approval_id, decision, reach=reach)
    return asked


async def test_always_on_one_file_means_that_file_in_that_folder(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    async with careful(tmp_path / "home", here, here, there) as (first, second, elsewhere):
        asked = await asks(first, "app.py", "always")
        assert asked is not None
        assert [(offer.reach, offer.says) for offer in asked.offers] == [
            ("exact", f"write_file: app.py, in sessions that work in {here}"),
            ("folder", f"write_file: everything in {here}, in sessions that work in {here}"),
            ("everywhere", "write_file: every call, in every folder"),
        ]
        assert await asks(first, "app.py") is None
        assert await asks(second, "./lib/../app.py") is None, "the same file, in the same folder"
        assert await asks(first, "other.py") is not None
        assert await asks(second, "lib/app.py") is not None
        assert await asks(elsewhere, "app.py") is not None
        assert await asks(elsewhere, f"{here}/app.py") is not None


async def test_what_is_wider_is_chosen_by_name(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    async with careful(tmp_path / "home", here, here, there) as (first, second, elsewhere):
        assert await asks(first, "app.py", "always", "folder")
        assert await asks(second, "lib/other.py") is None
        assert await asks(elsewhere, "app.py") is not None
        assert await asks(elsewhere, "app.py", "always", "everywhere")
        assert await asks(elsewhere, "lib/other.py") is None
        outside = await asks(first, str(tmp_path / "outside.txt"))
        assert outside is not None, "no rule about files of a folder reaches outside of it"


async def test_consent_for_the_session_is_as_narrow_and_stays_in_it(tmp_path: Path) -> None:
    here = tmp_path / "here"
    async with careful(tmp_path / "home", here, here) as (first, second):
        assert await asks(first, "app.py", "session")
        assert await asks(first, "app.py") is None
        assert await asks(second, "app.py") is not None
        assert await asks(first, "other.py", "session", "folder")
        assert await asks(first, "third.py") is None
        assert await asks(second, "third.py") is not None
        last = first.session_id
    async with Keryx(home=tmp_path / "home") as app:
        again = await app.open(last)
        assert await asks(again, "fourth.py") is None, "a restart forgets no answer"


async def test_a_command_is_allowed_in_its_folder_before_it_is_everywhere(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    async with careful(tmp_path / "home", here, there) as (first, elsewhere):
        asked = await asks(first, "mkdir a", "always", tool="terminal")
        assert asked is not None
        assert [offer.reach for offer in asked.offers] == ["exact", "everywhere"]
        assert await asks(first, "mkdir b", tool="terminal") is None
        assert await asks(elsewhere, "mkdir a", tool="terminal") is not None
        assert await asks(elsewhere, "mkdir a", "always", "everywhere", tool="terminal")
        assert await asks(elsewhere, "mkdir b", tool="terminal") is None


async def test_what_is_not_offered_is_refused_and_the_call_waits_on(tmp_path: Path) -> None:
    async with careful(tmp_path / "home", tmp_path / "here") as (session,):
        async for event in session.run("terminal", '{"command": "mkdir a"}'):
            if isinstance(event, ev.ApprovalAsked):
                with pytest.raises(UserMustActError, match="exact, everywhere"):
                    await session.answer(event.approval_id, "always", reach="folder")
                await session.answer(event.approval_id, "once")
            if isinstance(event, ev.CallFinished):
                assert event.outcome == "completed"


async def test_a_tool_that_says_nothing_of_its_calls_is_allowed_here_first(tmp_path: Path) -> None:
    @tool(effects=NO_EFFECTS, risk=Risk("high", "who knows"))
    async def odd() -> str:
        """Do something."""
        return "done"

    async with asyncio.timeout(PATIENCE), Keryx(home=tmp_path / "home", tools=[odd]) as app:
        here, there = [await opened(app, tmp_path / name) for name in ("here", "there")]

        async def asked(session: SessionHandle) -> list[ev.ApprovalAsked]:
            found: list[ev.ApprovalAsked] = []
            async for event in session.run("odd"):
                if isinstance(event, ev.ApprovalAsked):
                    found.append(event)
                    await session.answer(event.approval_id, "always")
            return found

        (first,) = await asked(here)
        assert [(offer.reach, offer.says) for offer in first.offers] == [
            ("folder", f"odd: every call, in sessions that work in {tmp_path / 'here'}"),
            ("everywhere", "odd: every call, in every folder"),
        ]
        assert await asked(here) == []
        assert len(await asked(there)) == 1


async def test_a_rule_is_removed_for_all_sessions_at_once_also_by_another_process(
    tmp_path: Path,
) -> None:
    here, home = tmp_path / "here", tmp_path / "home"
    async with careful(home, here, here) as (first, second), Keryx(home=home) as attached:
        assert await asks(first, "app.py", "always", "folder")
        assert await asks(second, "app.py") is None
        (rule,) = await attached.host_client.rules()
        assert rule_in_words(rule) == (
            f"write_file: everything in {here}, in sessions that work in {here}"
        )
        assert (rule.session_id, rule.made_at is None) == (first.session_id, False)
        assert await attached.host_client.remove_rule(rule.rule_id) is True
        for session in (first, second):
            assert await asks(session, "app.py") is not None, "also where it was made"
        assert await attached.host_client.remove_rule(rule.rule_id) is False
        assert await attached.host_client.rules() == []
    async with careful(home, here) as (later,):
        assert await asks(later, "app.py") is not None


async def test_rules_of_older_versions_are_listed_as_what_they_are(tmp_path: Path) -> None:
    home, here = tmp_path / "home", tmp_path / "here"
    old = {
        "a-old/0": b'{"verdict":"allow","tool":"write_file","pattern":"*",'
        b'"needs":{"network":false,"reads":[],"writes":[]}}',
        "a-older/1": b'{"verdict":"allow","tool":"terminal","pattern":"git push",'
        b'"needs":{"network":true,"reads":[],"writes":["/srv"]}}',
    }
    async with Keryx(model="scripted:demo", home=home) as app:
        epoch = await app.store.claim("s-old")
        records = tuple(RecordChange(ALWAYS + key, 0, value) for key, value in old.items())
        await app.store.append(Commit(session_id="s-old", epoch=epoch, records=records))
    async with careful(home, here) as (session,), Keryx(home=home) as attached:
        rules = await attached.host_client.rules()
        assert {rule.rule_id: rule_in_words(rule) for rule in rules} == {
            "a-old.0": "write_file: every call, in every folder",
            "a-older.1": "terminal: git push, in every folder, may use the network, may write /srv",
        }
        assert await asks(session, "any.py") is None
        assert await attached.host_client.remove_rule("a-old.0") is True
        assert await asks(session, "any.py") is not None


async def test_each_file_of_a_patch_has_a_rule_with_what_it_needs_itself(tmp_path: Path) -> None:
    here, outside = tmp_path / "here", tmp_path / "outside.txt"
    patch = "".join(f"--- /dev/null\n+++ {name}\n@@ -0,0 +1 @@\n+x\n" for name in ("a", outside))
    async with careful(tmp_path / "home", here) as (session,):
        async for event in session.run("patch", json.dumps({"patch": patch})):
            if isinstance(event, ev.ApprovalAsked):
                await session.answer(event.approval_id, "always")
    async with Keryx(home=tmp_path / "home") as app:
        where = f"in sessions that work in {here}"
        assert {rule_in_words(rule) for rule in await app.host_client.rules()} == {
            f"patch: a, {where}",
            f"patch: {outside}, {where}, may write {outside}",
        }
