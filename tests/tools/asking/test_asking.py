"""Tools that ask models: what they send, and what goes wrong."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from keryx import Keryx
from keryx import commands as cm
from keryx import events as ev
from keryx.messages import Json, text_of
from keryx.testing.modelserver import ModelServer, ReceivedRequest, Reply
from tests.tools.hanging_tools import PICTURE, SilentServer
from tests.tools.web.web_session import serving

pytestmark = pytest.mark.promise("kit.3")
PATIENCE = 60.0


def configure(folder: Path, url: str) -> None:
    (folder / "home").mkdir()
    (folder / "workspace").mkdir()
    (folder / "home" / "config.toml").write_text(
        'model = "openai:main"\n'
        f'[providers.openai]\nbase_url = "{url}"\nimages = ["seeing"]\n'
        f'[providers.dead]\nbase_url = "http://127.0.0.1:9/v1"\n'
        '[models.auxiliary]\nvision = "openai:seeing"\n'
    )


async def call(folder: Path, tool: str, **arguments: Any) -> tuple[ev.CallFinished, list[Any]]:
    """Run a tool in a new session; return its end and what was logged of usage."""
    home, workspace = folder / "home", folder / "workspace"
    async with asyncio.timeout(PATIENCE), Keryx(home=home, workspace=workspace) as app:
        session = await app.open()
        async for event in session.run(tool, json.dumps(arguments)):
            if isinstance(event, ev.CallFinished):
                log = await app.store.events(session.session_id)
                return event, [fact for fact in log if isinstance(fact, ev.UsageRecorded)]
    raise AssertionError("the call has no end")


def value_of(ended: ev.CallFinished) -> dict[str, Any]:
    (part,) = ended.result
    assert isinstance(part, Json), ended
    return json.loads(bytes(part.value))


@asynccontextmanager
async def silent_server() -> AsyncGenerator[SilentServer]:
    server = SilentServer()
    await server.open()
    try:
        yield server
    finally:
        await server.close()


async def test_an_image_goes_to_the_model_for_vision_and_the_usage_is_logged(
    tmp_path: Path,
) -> None:
    usage = ev.Usage(input_tokens=30, output_tokens=3)
    async with ModelServer([Reply(text="A pixel.", usage=usage)], models=("seeing",)) as server:
        configure(tmp_path, server.url)
        (tmp_path / "workspace" / "a.png").write_bytes(PICTURE)
        ended, recorded = await call(tmp_path, "vision_analyze", image="a.png", question="What?")
        (request,) = server.asked
    assert value_of(ended)["text"] == "A pixel."
    assert request.body["model"] == "seeing"
    kinds = [part["type"] for part in request.body["messages"][-1]["content"]]
    assert sorted(kinds) == ["image_url", "text"]
    (spent,) = recorded
    assert (spent.purpose, spent.call_id, spent.usage) == ("vision", ended.call_id, usage)


async def test_an_image_at_an_address_goes_to_the_model(tmp_path: Path) -> None:
    async with (
        ModelServer([Reply(text="A pixel.")], models=("seeing",)) as server,
        serving() as site,
    ):
        configure(tmp_path, server.url)
        with (tmp_path / "home" / "config.toml").open("a") as file:
            file.write(f'[tools.web]\nallow_private = ["{site.host}"]\n')

        async def picture(_request: web.BaseRequest) -> web.StreamResponse:
            return web.Response(body=PICTURE, content_type="image/png")

        site.pages["/a.png"] = picture
        ended, _ = await call(tmp_path, "vision_analyze", image=site.url("/a.png"))
    assert value_of(ended)["text"] == "A pixel."


@pytest.mark.parametrize("size", [17, 20])
async def test_a_large_image_goes_to_the_model_whole(tmp_path: Path, size: int) -> None:
    async with ModelServer([Reply(text="A pixel.")], models=("seeing",)) as server:
        configure(tmp_path, server.url)
        (tmp_path / "workspace" / "a.png").write_bytes(PICTURE.ljust(size << 20, b"\0"))
        ended, _ = await call(tmp_path, "vision_analyze", image="a.png")
    assert value_of(ended)["bytes"] == size << 20


@pytest.mark.parametrize(
    ("image", "content", "problem"),
    [
        ("a.png", b"not a picture", "is not a PNG"),
        ("large.png", PICTURE.ljust((20 << 20) + 1, b"\0"), "make it smaller"),
        ("missing.png", None, "missing.png"),
        ("../outside.png", None, "outside"),
        ("http://127.0.0.1:9/a.png", None, "private"),
        ("http://[::ffff:127.0.0.1]/a.png", None, "private"),
    ],
)
@pytest.mark.promise("kit.12")
async def test_a_bad_image_is_a_clear_error_and_asks_nobody(
    tmp_path: Path, image: str, content: bytes | None, problem: str
) -> None:
    async with ModelServer([]) as server:
        configure(tmp_path, server.url)
        if content is not None:
            (tmp_path / "workspace" / image).write_bytes(content)
        ended, _ = await call(tmp_path, "vision_analyze", image=image)
        assert server.asked == []
    assert ended.outcome == "failed"
    assert problem in str(ended.result)


async def test_one_model_of_a_mixture_that_fails_does_not_fail_the_call(tmp_path: Path) -> None:
    def answer(request: ReceivedRequest) -> Reply:
        messages = request.body["messages"]
        if "several answers" in messages[0]["content"]:
            assert "From one." in messages[-1]["content"]
            return Reply(text="Together.")
        return Reply(text="From one.")

    async with ModelServer(answer, models=("main", "one", "two")) as server:
        configure(tmp_path, server.url)
        models = ["openai:one", "nowhere:model", "openai:two"]
        ended, recorded = await call(
            tmp_path, "mixture_of_agents", question="Which?", models=models
        )
    result = value_of(ended)
    assert (result["text"], result["answers"]) == ("Together.", 2)
    assert "nowhere:model" in result["problems"][0]
    assert [spent.purpose for spent in recorded] == ["mixture"] * 3


@pytest.mark.promise("kit.9")
async def test_an_answer_of_a_mixture_is_kept_when_the_call_is_cancelled(tmp_path: Path) -> None:
    answer = "From one. " * 40
    replies = [Reply(text=answer)]
    async with silent_server() as silent, ModelServer(replies, models=("main",)) as server:
        configure(tmp_path, server.url)
        config = tmp_path / "home" / "config.toml"
        config.write_text(
            f'{config.read_text()}[providers.silent]\nbase_url = "http://127.0.0.1:{silent.port}/v1"\n'
        )
        models = ["openai:main", "silent:one"]
        arguments = json.dumps({"question": "Which?", "models": models})
        async with (
            asyncio.timeout(PATIENCE),
            Keryx(home=tmp_path / "home", workspace=tmp_path / "workspace") as app,
        ):
            session = await app.open()
            async for event in session.run("mixture_of_agents", arguments):
                if isinstance(event, ev.CallOutput) and "From one." in event.text:
                    await session.tell(cm.CancelCall, call_id=event.call_id)
                elif isinstance(event, ev.CallFinished):
                    assert (event.outcome, event.reason) == ("cancelled", "interrupt")
                    assert answer.strip() in text_of(event.result)


async def test_a_mixture_without_any_answer_says_why(tmp_path: Path) -> None:
    async with ModelServer([]) as server:
        configure(tmp_path, server.url)
        ended, _ = await call(tmp_path, "mixture_of_agents", question="Which?", models=["no:model"])
    assert ended.outcome == "failed"
    assert "no model answered" in str(ended.result)


async def test_without_a_model_for_search_the_excerpts_are_the_result(tmp_path: Path) -> None:
    async with ModelServer(
        lambda _request: Reply(text="Noted: the kettle."), models=("main",)
    ) as server:
        configure(tmp_path, server.url)
        home, workspace = tmp_path / "home", tmp_path / "workspace"
        async with asyncio.timeout(PATIENCE), Keryx(home=home, workspace=workspace) as app:
            session = await app.open()
            await (await session.send("Remember the kettle")).result()
        count_before = len(server.asked)
        ended, _ = await call(tmp_path, "session_search", words="kettle", question="Which?")
        assert len(server.asked) == count_before
    result = value_of(ended)
    assert {row["session"] for row in result["matches"]} == {session.session_id}
    assert "answer" not in result
