"""How many commits a turn takes, and how often its tools are encoded."""

from __future__ import annotations

from pathlib import Path

import pytest

from keryx import NO_EFFECTS, Keryx, tool
from keryx import events as ev
from keryx.models.openai.model import OpenAIModel
from keryx.models.scripted import ScriptedCall, ScriptedReply, history_of
from keryx.ports.model import ModelRequest, ToolSpec
from keryx.testing.modelserver import MODEL, Call, ModelServer, Reply
from tests.app.hosts import Answers, result_of
from tests.engine.sessions import Recording, SessionHost, until

pytestmark = pytest.mark.promise("mended.21")
STEPS = 20


@tool(effects=NO_EFFECTS)
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def script(request: ModelRequest) -> ScriptedReply:
    if len(history_of(request)) > 2 * STEPS:
        return ScriptedReply(text="done")
    return ScriptedReply(text="I add.", calls=[ScriptedCall("add", {"a": 1, "b": 2})])


async def test_a_step_with_a_call_takes_two_commits() -> None:
    session_host = SessionHost(script, tools=[add])
    session = await session_host.open()
    assert isinstance(session_host.store, Recording)
    before = len(session_host.store.commits)
    await session_host.send(session, "go")
    await until(session, ev.TurnFinished)
    assert len(session_host.store.commits) - before == 2 + 2 * STEPS
    await session_host.close()


async def test_the_tools_of_a_session_are_encoded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[str] = []
    describe_tool = OpenAIModel.describe_tool  # counted, not replaced

    def counted(spec: ToolSpec) -> object:
        encoded.append(spec.name)
        return describe_tool(spec)

    monkeypatch.setattr(OpenAIModel, "describe_tool", staticmethod(counted))
    home = tmp_path / "home"
    home.mkdir()
    calls = [Reply(calls=(Call("add", {"a": 1, "b": 2}),)) for _ in range(3)]
    async with ModelServer(Answers(*calls, always=Reply(text="Fine."))) as server:
        (home / "config.toml").write_text(f'[providers.one]\nbase_url = "{server.url}"\n')
        async with Keryx(model=f"one:{MODEL}", tools=[add], home=home, workspace=tmp_path) as app:
            for _ in range(3):
                session = await app.open()
                for _ in range(2):
                    assert (await result_of(await session.send("go"))).outcome == "completed"
    assert encoded == ["add"]
