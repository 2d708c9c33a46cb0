"""A host that is frozen in mid-turn: another one takes its home, and it can write nothing more."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from keryx import Keryx
from keryx import events as ev
from keryx.app.host import remote_host
from keryx.errors import UserMustActError
from keryx.models.scripted import ScriptedReply
from tests.server.served_host import PATIENCE, in_thread, scripted
from tests.server.server_process import served

pytestmark = pytest.mark.promise("sessions.2", "server.7")


async def test_a_frozen_host_loses_its_home_and_writes_nothing_when_it_wakes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_host, "HELLO_TIMEOUT", 0.5)
    home = tmp_path / "home"
    async with asyncio.timeout(3 * PATIENCE), served(tmp_path) as (client, process):
        name = await client.open()
        await client.say(name, "slowly")
        await client.until(name, "text.delta")
        process.send_signal(signal.SIGSTOP)
        with pytest.raises(UserMustActError, match="does not answer"):
            async with Keryx(home=home, workspace=tmp_path):
                pass
        model = scripted(lambda _: ScriptedReply(text="from the new host"))
        async with Keryx(model=model, home=home, workspace=tmp_path, take_over=True) as app:
            session = await app.open(name)
            async for event in session.events():
                if isinstance(event, ev.TurnFinished):
                    break
            second = await (await session.send("and now?")).result()
            assert second.text == "from the new host"
            before = await app.store.events(name)
            process.send_signal(signal.SIGCONT)
            # It notices with its next commit, and whoever reads there is told.
            answer = await client.ask(
                "POST", f"/api/sessions/{name}/messages", json={"text": "too late"}
            )
            assert answer.status in (409, 503), answer
            opened = await client.ask("POST", "/api/sessions", json={})
            assert opened.status in (409, 503), opened
            assert await app.store.events(name) == before
            third = await (await session.send("still there?")).result()
            assert third.outcome == "completed"
            assert process.stdin is not None
            process.stdin.close()
            await in_thread(process.wait)
            # Its end leaves the home to the new host.
            async with Keryx(home=home, workspace=tmp_path) as other:
                assert await other.store.session(name) is not None
                assert (home / "host.json").read_text().find(f'"pid":{os.getpid()}') > 0
        log = [event.seq for event in before]
        assert log == list(range(1, len(log) + 1))
        assert [type(event) for event in before].count(ev.TurnFinished) == 2
