"""Values of secrets reach no model, no log, no event, also when a tool prints them in pieces."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from keryx import NO_EFFECTS, Keryx, ToolContext, tool
from keryx import events as ev
from keryx.aio.bridge import Bridge
from keryx.aio.scope import Scope
from keryx.errors import ToolFailedError
from keryx.testing.modelserver import Call, ModelServer, Reply

pytestmark = pytest.mark.promise("tools.7")

SECRET = "sk-0123456789-very-secret"
HALF = len(SECRET) // 2


@tool(effects=NO_EFFECTS)
async def print_it(context: ToolContext) -> dict[str, str]:
    """Print the secret in two halves, show it, ask about it, and return it too."""
    context.progress(1, 2, f"uses {SECRET}")
    await context.ask(f"May I use {SECRET}?", (SECRET, "no"))
    context.emit(f"key: {SECRET[:HALF]}")
    await asyncio.sleep(0)
    context.emit(f"{SECRET[HALF:]}\n")
    return {"key": SECRET}


@tool(effects=NO_EFFECTS)
async def fail_with_it() -> None:
    """Fail with the secret in the text of the error."""
    raise ToolFailedError(f"the server refused the key {SECRET}")


def stored(home: Path) -> bytes:
    return b"".join(file.read_bytes() for file in home.glob("keryx.db*"))


async def test_a_secret_that_tools_print_return_and_fail_with_is_seen_nowhere(
    tmp_path: Path,
) -> None:
    replies = [
        Reply(calls=(Call("print_it"), Call("fail_with_it"))),
        Reply(text="Hm."),
    ]
    async with ModelServer(replies, key=SECRET) as server:
        (tmp_path / "config.toml").write_text(
            'model = "openai:test-model"\n[providers.openai]\n'
            f'base_url = "{server.url}"\napi_key = "{SECRET}"\n'
        )
        events: list[ev.Event] = []
        async with Keryx(tools=[print_it, fail_with_it], home=tmp_path, workspace="/") as app:
            session = await app.open()
            turn = await session.send(f"My key is {SECRET}, use it", attended=False)
            events = [event async for event in turn.events()]
            assert (await turn.result()).outcome == "completed"
        shown = b"\n".join(map(ev.encode, events))
        assert SECRET.encode() not in shown
        assert SECRET[HALF:].encode() not in shown
        assert b"[redacted: the key of openai]" in shown
        for request in server.asked:
            assert SECRET.encode() not in request.raw
            assert request.headers["Authorization"] == f"Bearer {SECRET}", "it is still used"
        sent_messages = msgspec.json.decode(server.asked[1].raw)["messages"]
        assert "[redacted: the key of openai]" in str(sent_messages)
        scope = Scope("reader")
        bridge = Bridge(scope)
        assert SECRET.encode() not in await bridge.to_thread(stored, tmp_path)
        await bridge.close()
        scope.close()
