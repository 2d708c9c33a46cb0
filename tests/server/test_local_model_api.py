"""The tiny model of the server's machine, over HTTP: never the default before somebody chose it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import pytest

from keryx import Keryx
from keryx.server.access.tokens import Tokens
from keryx.server.serve import Settings, serving
from tests.models.embedded.smollm2 import NAME, home_with_model
from tests.server.served_host import PATIENCE, Client, in_thread

pytestmark = pytest.mark.promise("model.4")


@pytest.mark.parametrize("is_here", [True, False], ids=["pulled", "not pulled"])
async def test_it_is_chosen_only_when_it_is_here(is_here: bool, tmp_path: Path) -> None:
    home = home_with_model(tmp_path) if is_here else tmp_path / "home"
    async with (
        asyncio.timeout(PATIENCE),
        Keryx(home=home, workspace=tmp_path) as app,
        serving(app.host_client, Settings(port=0, workspace=tmp_path)) as server,
    ):
        token = await in_thread(Tokens(home).make, "test")
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as http:
            client = Client(server.url, http)
            before = await client.get("/api/setup")
            local = await client.get("/api/setup/local")
            answer = await client.ask("POST", "/api/setup/model", json={"model": NAME})
            after = await client.get("/api/setup")
    assert (before["configured"], before["model"]) == (False, None)
    assert (local["state"], local["model"]) == ("ready" if is_here else "absent", NAME)
    if is_here:
        assert (after["configured"], after["model"]) == (True, NAME)
    else:
        answer.problem(422, "refused")
        assert "POST /api/setup/local" in answer.body["hint"]
        assert after == before
