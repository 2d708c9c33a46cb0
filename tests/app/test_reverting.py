"""Taking back what a session changed: refused as often as it must be, in whatever workspace."""

from __future__ import annotations

from pathlib import Path

import pytest

from keryx import Keryx
from keryx import commands as cm
from keryx import events as ev
from keryx.app import SessionHandle
from keryx.errors import UserMustActError
from keryx.ids import new_id
from tests.app.test_history import said, writing


async def changes_of(app: Keryx, session: SessionHandle) -> tuple[int, ...]:
    log = await app.store.events(session.session_id)
    return tuple(event.seq for event in log if isinstance(event, ev.FilesChanged))


@pytest.mark.promise("mended.4")
async def test_a_revert_that_was_refused_is_refused_again(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    async with Keryx(model=writing(), home=tmp_path / "home", workspace=tmp_path) as app:
        session = await app.open(approvals="never")
        await said(session, "written by the agent")
        file.write_text("edited by a person")
        changes = await changes_of(app, session)
        command_id = new_id("c")
        command = cm.RevertFiles(
            command_id=command_id, session_id=session.session_id, by="me", changes=changes
        )
        for _ in range(2):
            with pytest.raises(UserMustActError, match="someone edited it since"):
                await app.host_client.tell(command)
            assert file.read_text() == "edited by a person"
        file.write_text("written by the agent")
        await app.host_client.tell(command)
        assert not file.exists()


@pytest.mark.promise("mended.4")
async def test_an_undo_that_was_refused_is_refused_again(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    async with Keryx(model=writing(), home=tmp_path / "home", workspace=tmp_path) as app:
        session = await app.open(approvals="never")
        turn_id = await said(session, "written by the agent")
        file.write_text("edited by a person")
        command = cm.UndoTurn(
            command_id=new_id("c"), session_id=session.session_id, by="me", turn_id=turn_id
        )
        for _ in range(2):
            with pytest.raises(UserMustActError, match="someone edited it since"):
                await app.host_client.tell(command)
        assert "turn.undone" not in map(ev.type_of, await app.store.events(session.session_id))


@pytest.mark.promise("mended.9")
async def test_a_turn_that_worked_in_another_workspace_is_undone_there(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    async with Keryx(model=writing(), home=tmp_path / "home", workspace=here) as app:
        session = await app.open(approvals="never")
        turn_id = await said(session, "text", workspace=str(there))
        assert (there / "notes.txt").read_text() == "text"
        assert "+text" in await session.diff()
        await session.undo(turn_id)
        assert not (there / "notes.txt").exists()


@pytest.mark.promise("mended.9")
async def test_changes_in_two_workspaces_are_reverted_together_or_not_at_all(
    tmp_path: Path,
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    async with Keryx(model=writing(), home=tmp_path / "home", workspace=here) as app:
        session = await app.open(approvals="never")
        await said(session, "one")
        await said(session, "two", workspace=str(there))
        changes = await changes_of(app, session)
        (there / "notes.txt").write_text("edited")
        with pytest.raises(UserMustActError, match="someone edited it since"):
            await session.revert(changes)
        assert (here / "notes.txt").read_text() == "one"
        (there / "notes.txt").write_text("two")
        await session.revert(changes)
        assert not (here / "notes.txt").exists()
        assert not (there / "notes.txt").exists()
