"""A session goes on with another model, in any direction, and loses nothing on the way.

Each provider of these tests is a server of its own. It refuses what another one signed, a history
that its API does not take, and a call of its own whose reasoning is missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from keryx import IN_MEMORY, Keryx
from keryx import events as ev
from keryx.app import SessionHandle
from keryx.errors import DeveloperMustActError
from keryx.models.scripted import ScriptedModel, ScriptedReply
from keryx.testing.modelserver import Call, ModelServer, ReceivedRequest, Reply
from tests.app.hosts import PATIENCE, result_of

pytestmark = pytest.mark.promise("model.2")

PICTURE = b"\x89PNG\r\n\x1a\n..."
APIS = ("responses", "anthropic", "gemini", "chat")
CLOSERS = {"responses": b"]}", "chat": b"]}", "anthropic": b"]}]}", "gemini": b"]}]}"}
MODELS = {
    "responses": "gpt-6",
    "anthropic": "claude-opus-9",
    "gemini": "gemini-3-pro",
    "chat": "qwen",
}


class Talker:
    """Answers each message with reasoning and calls, then with reasoning and text."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, request: ReceivedRequest) -> Reply:
        number = request.number
        thought = f"secret thoughts of {self._name} {number}"
        if number % 2 == 0:
            return Reply(reasoning=thought, text=f"{self._name} is done ({number}).")
        # No other server asks for so many lines: each recognizes its own calls.
        lines = 1000 * (APIS.index(self._name) + 1) + number
        calls = (
            Call("read_file", {"path": "cat.png", "lines": lines}),
            Call("read_file", {"path": "notes.txt"}),
        )
        return Reply(reasoning=thought, text=f"{self._name} looks.", calls=calls)


class Providers:
    """One server for each API, and a host that knows them all."""

    def __init__(self, app: Keryx, servers: dict[str, ModelServer]) -> None:
        self.app = app
        self.servers = servers

    async def say(self, session: SessionHandle, text: str) -> str:
        picture = await self.app.upload(PICTURE, "dog.png", "image/png")
        paper = await self.app.upload(b"%PDF-1.4 ...", "paper.pdf", "application/pdf")
        result = await result_of(await session.send(text, attachments=[picture, paper]))
        assert result.outcome == "completed", result.error
        return result.text

    def refusals(self) -> list[str]:
        return [refused.message for server in self.servers.values() for refused in server.refused]


@asynccontextmanager
async def providers(
    folder: Path, scripts: Mapping[str, Any] = MappingProxyType({}), rest: str = ""
) -> AsyncGenerator[Providers]:
    home, workspace = folder / "home", folder / "work"
    home.mkdir()
    workspace.mkdir()
    (workspace / "cat.png").write_bytes(PICTURE + b"cat")
    (workspace / "notes.txt").write_text("notes\n")
    servers: dict[str, ModelServer] = {}
    async with AsyncExitStack() as stack, asyncio.timeout(4 * PATIENCE):
        text = rest
        for api in APIS:
            server = ModelServer(
                scripts.get(api, Talker(api)), key=f"sk-of-{api}-0123", models=(MODELS[api],)
            )
            servers[api] = await stack.enter_async_context(server)
            text += f'\n[providers.{api}]\nbase_url = "{server.url_of(api)}"\nformat = "{api}"\n'
            text += f'api_key = "sk-of-{api}-0123"\nimages = ["*"]\n'
        (home / "config.toml").write_text(text)
        model = f"responses:{MODELS['responses']}"
        app = await stack.enter_async_context(Keryx(model=model, home=home, workspace=workspace))
        yield Providers(app, servers)


def name_of(api: str) -> str:
    return f"{api}:{MODELS[api]}"


def thoughts(*apis: str) -> list[bytes]:
    return [f"secret thoughts of {api}".encode() for api in apis]


async def test_claude_goes_on_after_what_came_before_its_thoughts_has_changed(
    tmp_path: Path,
) -> None:
    async with providers(tmp_path) as here:
        session = await here.app.open()
        await session.change(model=name_of("anthropic"))
        for number, text in enumerate(("one", "two", "three")):
            (tmp_path / "work" / "AGENTS.md").write_text(f"rule {number}\n")
            await here.say(session, text)
        assert here.refusals() == []
        first, *_, last = (asked.body for asked in here.servers["anthropic"].asked)
    assert first["system"] != last["system"]
    assert "secret thoughts of anthropic 1" in str(last["messages"])


async def test_a_session_is_carried_from_provider_to_provider_and_back(tmp_path: Path) -> None:
    route = ("responses", "anthropic", "gemini", "chat", "responses")
    async with providers(tmp_path) as here:
        session = await here.app.open(effort="high")
        for api in route:
            await session.change(model=name_of(api))
            answer = await here.say(session, f"look, {api}")
            assert answer.endswith(f"{api} is done ({here.servers[api].asked[-1].number}).")
        assert here.refusals() == []
        last = here.servers["responses"].asked[-1].body["input"]
        log = await here.app.store.events(session.session_id)
    # Its own reasoning of the first turn and of this one is back; that of nobody else is.
    reasoning = [item["id"] for item in last if item.get("type") == "reasoning"]
    assert reasoning == ["rs_1", "rs_2", "rs_3"]
    assert sum(item.get("type") == "function_call" for item in last) == 10
    text = str(last)
    for api in ("anthropic", "gemini", "chat"):
        assert f"{api} looks." in text
        assert f"{api} is done" in text
    replies = [event for event in log if isinstance(event, ev.StepReplied)]
    signers = [{item.provider.split()[0] for item in reply.opaque} for reply in replies]
    assert signers == [
        *([{"responses"}] * 2),
        *([{"anthropic"}] * 2),
        *([{"gemini"}] * 2),
        *([set[str]()] * 2),
        *([{"responses"}] * 2),
    ]


async def test_every_direction_works_and_nobody_gets_the_reasoning_of_another(
    tmp_path: Path,
) -> None:
    route = [APIS[int(digit)] for digit in "0102031213230"]
    assert len({*pairwise(route)}) == 12, "every provider after every other"
    async with providers(tmp_path) as here:
        session = await here.app.open(effort="high")
        for api in route:
            await session.change(model=name_of(api))
            await here.say(session, "go on")
        assert here.refusals() == []
        for api, server in here.servers.items():
            others = [other for other in APIS if other != api]
            for request in server.asked:
                assert not any(thought in request.raw for thought in thoughts(*others))
                assert b"sk-of-" not in request.raw
    # What each one thought itself came back to it, where the API takes it back.
    for api in ("responses", "anthropic"):
        assert thoughts(api)[0] in here.servers[api].asked[-1].raw


async def test_images_and_documents_reach_every_provider_that_reads_them(tmp_path: Path) -> None:
    seen = {
        "responses": (b"input_image", b"input_file"),
        "anthropic": (b'"type":"image"', b'"type":"document"'),
        "gemini": (b'"mimeType":"image/png"', b'"mimeType":"application/pdf"'),
        "chat": (b'"type":"image_url"',),
    }
    counts = {"responses": 2, "anthropic": 2, "gemini": 2, "chat": 1}
    async with providers(tmp_path) as here:
        for api, marks in seen.items():
            session = await here.app.open(effort="low")
            await session.change(model=name_of(api))
            await here.say(session, "what is this?")
            request = here.servers[api].asked[-1]
            assert all(mark in request.raw for mark in marks), api
            # The person's image, and the one that a tool returned, where the API takes that.
            assert request.raw.count(marks[0]) == counts[api]
        assert here.refusals() == []


async def test_a_fallback_goes_on_with_calls_that_another_model_made(tmp_path: Path) -> None:
    calls = (Call("read_file", {"path": "notes.txt"}),)
    fails = [Reply(reasoning="hm", calls=calls), Reply(status=401, message="the key is gone")]
    works = [
        Reply(reasoning="hm", calls=(Call("list_files", {}),)),
        Reply(reasoning="so", text="Done by another."),
    ]
    for number, (first, second) in enumerate(
        (first, second) for first in APIS for second in APIS if first != second
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        scripts = {first: fails, second: works}
        rest = f'[models]\nfallback = ["{name_of(second)}"]\n'
        async with providers(folder, scripts, rest) as here:
            session = await here.app.open(effort="high")
            await session.change(model=name_of(first))
            result = await result_of(await session.send("go"))
            assert result.outcome == "completed", (first, second, result.error)
            assert result.text.endswith("Done by another.")
            refused = [refused.message for refused in here.servers[second].refused]
            assert refused == []


@pytest.mark.parametrize("api", APIS)
async def test_every_request_of_a_long_turn_begins_with_the_one_before(
    tmp_path: Path, api: str
) -> None:
    def script(request: ReceivedRequest) -> Reply:
        number = request.number
        if number == 21:
            return Reply(reasoning="enough", text="Done.")
        calls = tuple(Call("read_file", {"path": "cat.png", "lines": n}) for n in (1, 2))
        return Reply(reasoning=f"step {number}", text=f"Step {number}.", calls=calls)

    async with providers(tmp_path, {api: script}) as here:
        session = await here.app.open(effort="high")
        await session.change(model=name_of(api))
        await here.say(session, "take twenty steps")
        bodies = [request.raw for request in here.servers[api].asked]
        assert here.refusals() == []
    assert len(bodies) == 21
    for earlier, later in pairwise(bodies):
        assert earlier.endswith(CLOSERS[api])
        assert later.startswith(earlier.removesuffix(CLOSERS[api]))


async def test_a_session_that_is_read_again_sends_back_what_was_signed(tmp_path: Path) -> None:
    """A restart changes nothing: what was signed is in the log, byte for byte."""
    async with providers(tmp_path) as here:
        session = await here.app.open(effort="high")
        for api in APIS:
            await session.change(model=name_of(api))
            await here.say(session, "before")
        home, workspace = tmp_path / "home", tmp_path / "work"
        before = {api: server.asked[-1].raw for api, server in here.servers.items()}
        await here.app.__aexit__(None, None, None)
        async with Keryx(home=home, workspace=workspace) as again:
            opened = await again.open(session.session_id)
            for api in APIS:
                await opened.change(model=name_of(api))
                result = await result_of(await opened.send("after"))
                assert result.outcome == "completed", result.error
                body = here.servers[api].asked[-1].raw
                assert body.startswith(before[api].removesuffix(CLOSERS[api]))
        assert here.refusals() == []
        await here.app.__aenter__()


async def test_a_program_brings_models_of_its_own_and_a_session_names_them(tmp_path: Path) -> None:
    def says(name: str) -> ScriptedModel:
        return ScriptedModel(lambda _: ScriptedReply(text=f"I am {name}."), name=f"mine:{name}")

    async with Keryx(
        model=says("one"), models=[says("two")], tools=[], home=IN_MEMORY, workspace=tmp_path
    ) as app:
        session = await app.open()
        assert (await result_of(await session.send("who?"))).text == "I am one."
        await session.change(model="mine:two")
        assert (await result_of(await session.send("who?"))).text == "I am two."
    for wrong in ("mine:two", ["mine:two"], [None], 5):
        with pytest.raises(DeveloperMustActError, match="models"):
            Keryx(models=wrong)  # pyright: ignore[reportArgumentType] (wrong on purpose)
