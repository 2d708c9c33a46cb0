"""People talk to the agent through a bot."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gateway.chat_home import ANN, EVE, chatting


async def test_a_message_is_answered(tmp_path: Path) -> None:
    async with chatting(tmp_path) as (api, _, _):
        api.say(ANN, "Hello")
        await api.wait(lambda: api.texts(ANN) == ["You said: Hello"])
        (sent,) = api.sent(ANN)
        assert sent.buttons == {}
        assert await api.wait(lambda: not api.updates)


@pytest.mark.promise("chat.2")
async def test_a_stranger_gets_nothing(tmp_path: Path) -> None:
    async with chatting(tmp_path) as (api, _, app):
        api.say(EVE, "Hello")
        api.say(EVE, "/start")
        api.say(ANN, "Hello")
        await api.wait(lambda: api.texts(ANN) == ["You said: Hello"])
        assert api.sent(EVE) == []
        assert len(await app.store.sessions()) == 1
