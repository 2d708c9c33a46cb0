"""Images by address under `/v1`, with OpenAI's client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openai
import pytest
from aiohttp import web

from keryx.ports.store import blob_hash
from tests.server.v1.scripted_agent import ScriptedAgent, served_agent
from tests.tools.hanging_tools import PICTURE
from tests.tools.web.web_session import Site, serving

pytestmark = pytest.mark.promise("page20.30")


def allow(tmp_path: Path, site: Site) -> None:
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "home" / "config.toml").write_text(
        f'[tools.web]\nallow_private = ["{site.host}"]\n'
    )


async def picture(_request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(body=PICTURE, content_type="image/png")


async def test_both_apis_load_an_image_from_its_address(tmp_path: Path) -> None:
    agent = ScriptedAgent()
    async with serving() as site:
        allow(tmp_path, site)
        site.pages["/a.png"] = picture
        url = site.url("/a.png")
        async with served_agent(tmp_path, agent) as (client, _):
            parts: list[Any] = [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": url}},
            ]
            await client.chat.completions.create(
                model="keryx", messages=[{"role": "user", "content": parts}]
            )
            parts = [
                {"type": "input_text", "text": "look"},
                {"type": "input_image", "image_url": url, "detail": "auto"},
            ]
            await client.responses.create(model="keryx", input=[{"role": "user", "content": parts}])
    picture_hash = blob_hash(PICTURE)
    assert [picture_hash in str(request.history) for request in agent.requests] == [True, True]


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("/a.txt", "no PNG, JPEG, GIF or WebP"),
        ("/missing.png", "404"),
        ("http://127.0.0.1:1/a.png", "private"),
        ("http://no-such-host.invalid/a.png", "no host of this name"),
    ],
)
async def test_an_image_that_cannot_be_loaded_is_named(
    tmp_path: Path, path: str, problem: str
) -> None:
    agent = ScriptedAgent()

    async def text(_request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(text="not a picture")

    async with serving() as site:
        allow(tmp_path, site)
        site.pages["/a.png"] = picture
        site.pages["/a.txt"] = text
        url = path if path.startswith("http") else site.url(path)
        images = [
            {"type": "image_url", "image_url": {"url": one}} for one in (site.url("/a.png"), url)
        ]
        async with served_agent(tmp_path, agent) as (client, _):
            with pytest.raises(openai.BadRequestError) as caught:
                await client.chat.completions.create(
                    model="keryx", messages=[{"role": "user", "content": images}]
                )
    assert caught.value.param == "messages[0].content[1].image_url"
    assert problem in caught.value.message
    assert agent.requests == []


async def test_too_many_images_are_refused_before_one_is_asked_for(tmp_path: Path) -> None:
    images = [
        {"type": "input_image", "image_url": f"https://example.invalid/{n}"} for n in range(21)
    ]
    async with served_agent(tmp_path) as (client, _):
        with pytest.raises(openai.BadRequestError) as caught:
            await client.responses.create(
                model="keryx", input=[{"role": "user", "content": images}]
            )
    assert caught.value.param == "input[0].content[20].image_url"
