"""The web tools are the same from the library, from a script and from the command line."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from keryx import Keryx
from keryx import events as ev
from keryx.aio.bridge import Bridge
from keryx.aio.scope import Scope
from keryx.messages import text_of
from keryx.models.scripted import ScriptedModel
from tests.tools.tool_session import PATIENCE
from tests.tools.web.test_extraction import pdf
from tests.tools.web.web_session import Site, article, serving

pytestmark = pytest.mark.promise("kit.1")

KEY = "a-key-that-nobody-may-see"


async def in_thread(work: Callable[[], Any]) -> Any:
    scope = Scope("test")
    bridge = Bridge(scope)
    try:
        return await bridge.to_thread(work)
    finally:
        await bridge.close()
        scope.close()


async def prepare(home: Path, site: Site) -> None:
    """A page, a search engine that repeats the key that it gets, and their configuration."""
    site.pages["/page"] = article("The herald", "He came at dawn.")

    async def search(request: web.BaseRequest) -> web.Response:
        row = {"title": "The herald", "url": site.url("/page"), "content": f"said {KEY}"}
        return web.json_response({"results": [row]})

    site.pages["/search"] = search
    text = (
        'confinement = "off"\n[tools.web]\n'
        f'searxng_url = "{site.url("")}"\nallow_private = ["{site.host}"]\n'
        f'tavily_api_key = "{KEY}"\n'
    )
    await in_thread(lambda: (home / "config.toml").write_text(text))


async def broken(request: web.BaseRequest) -> web.Response:
    """A PDF whose table of contents is in another place than it says."""
    body = pdf("Words of a broken file").replace(b"startxref\n", b"startxref\n9")
    return web.Response(body=body, content_type="application/pdf")


async def finished(app: Keryx, tool: str, **arguments: Any) -> ev.CallFinished:
    session = await app.open()
    events = [event async for event in session.run(tool, json.dumps(arguments))]
    last = events[-1]
    assert isinstance(last, ev.CallFinished)
    return last


async def test_from_the_library_and_from_a_script(tmp_path: Path) -> None:
    code = """
from keryx_tools import parallel, web_extract, web_search
(hit,) = web_search("herald")["results"]
pages = parallel(web_extract, [[hit["url"]]] * 5)
print(hit["title"], *(page["results"][0]["title"] for page in pages), sep="|")
print("He came at dawn." in str(pages[0]))
"""
    async with serving() as site, asyncio.timeout(PATIENCE):
        await prepare(tmp_path, site)
        async with Keryx(model=ScriptedModel([]), home=tmp_path, workspace=tmp_path) as app:
            page = await finished(app, "web_extract", urls=[site.url("/page")])
            assert (page.outcome, "He came at dawn" in text_of(page.result)) == ("completed", True)
            hits = text_of((await finished(app, "web_search", query="herald")).result)
            assert "The herald" in hits
            assert KEY not in hits
            run = await finished(app, "execute_code", code=code)
            output = text_of(run.result)
            assert "|".join(["The herald"] * 6) in output
            assert "True" in output


async def test_from_the_command_line(tmp_path: Path) -> None:
    async with serving() as site, asyncio.timeout(PATIENCE):
        await prepare(tmp_path, site)
        program = str(Path(sys.executable).with_name("keryx"))
        urls = [site.url("/page"), "http://127.0.0.1:1/", site.url("/page", host="localhost")]
        site.pages["/broken"] = broken
        arguments = msgspec.json.encode({"urls": [*urls, site.url("/broken")]})
        process = await asyncio.create_subprocess_exec(
            *(program, "tools", "--home", str(tmp_path), "call", "web_extract", arguments.decode()),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        output, errors = await process.communicate()
        assert process.returncode == 0, errors
        assert b"He came at dawn" in output
        assert b"127.0.0.1 is not a public address" in output
        # The system's own lookup is used here.
        assert re.search(rb"localhost \((127|::1).*\) is not a public address", output)
        assert b"The herald" in errors  # each page is printed as it comes
        assert b"Words of a broken file" in output
        assert (
            b"keryx: " not in errors
        )  # the libraries that read pages report nothing by themselves
