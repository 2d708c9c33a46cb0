"""What a model needs is imported in a thread; a turn waits for it and does not block the loop."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from keryx import Keryx
from keryx.app.models import Models
from keryx.testing.modelserver import MODEL, ModelServer, Reply

pytestmark = pytest.mark.promise("mended.21")

PATIENCE = 30.0
"""Only reached by a test that fails."""


async def test_the_first_turn_waits_for_the_imports_of_its_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end = threading.Event()
    load = Models.load

    def held(models: Models) -> None:
        assert may_end.wait(PATIENCE)
        load(models)

    monkeypatch.setattr(Models, "load", held)
    async with ModelServer([Reply(text="Here.")]) as server:
        (tmp_path / "config.toml").write_text(
            f'[providers.one]\nbase_url = "{server.url}"\napi_key = "none"\n'
        )
        async with Keryx(model=f"one:{MODEL}", tools=[], home=tmp_path, workspace=tmp_path) as app:
            session = await app.open()
            sending = asyncio.ensure_future(session.send("hi"))
            # The loop goes round while the import is held, and the turn has not begun.
            done, _ = await asyncio.wait([sending], timeout=0.2)
            assert not done
            assert not server.asked
            may_end.set()
            async with asyncio.timeout(PATIENCE):
                result = await (await sending).result()
    assert result.text == "Here."
