"""A view is of one instant, whatever is committed while it is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from keryx.events import Usage
from keryx.models.scripted import ScriptedReply
from keryx.ports.view import SessionView
from tests.server.served_host import ServedHost, StreamedEvent, scripted, served_host

USED = Usage(input_tokens=10, output_tokens=3, cached_tokens=2, reasoning_tokens=1)


def costly(text: str) -> ScriptedReply:
    return ScriptedReply(text=f"You said: {text}", usage=USED)


async def said(here: ServedHost, name: str, text: str) -> list[StreamedEvent]:
    """A whole turn; all that the session told up to its end."""
    sent = await here.client.say(name, text)
    return await here.client.until(name, "turn.finished", turn_id=sent["turn_id"])


async def test_a_view_counts_what_was_spent_up_to_its_own_fact_however_busy_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served_host(tmp_path, model=scripted(costly)) as here:
        name = await here.client.open()
        await said(here, name, "before anyone looks")
        look = here.host_client.view
        looks: list[SessionView] = []

        async def look_while_others_talk(session_id: str) -> SessionView:
            await said(here, name, "just before the look")
            looks.append(await look(session_id))
            await said(here, name, "just after the look")
            return looks[-1]

        monkeypatch.setattr(here.host_client, "view", look_while_others_talk)
        view = await here.client.get(f"/api/sessions/{name}")
        events = await said(here, name, "when it was read")

        assert [look.seq for look in looks] == [view["seq"]]
        replies = [event.data for event in events if event.type == "step.replied"]
        counted = [event for event in replies if event["seq"] <= view["seq"]]
        assert (len(counted), len(replies)) == (2, 4)
        for kind in ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens"):
            assert view["usage"][kind] == sum(event["usage"][kind] for event in counted)
