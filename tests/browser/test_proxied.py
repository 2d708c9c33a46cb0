"""Behind a real nginx with https and a sub-path: the page works, each client counts for itself."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urljoin

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import Browser, FilePayload, expect

from keryx.testing.modelserver import ModelServer, Reply
from tests.browser.browser_user import person
from tests.browser.conftest import House
from tests.browser.nginx_proxy import Proxy
from tests.browser.page_server import PageServer
from tests.browser.scripted_replies import ScriptedReplies

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.promise("mended.18")]

PASSWORD = "correct horse battery staple"


class Proxied(House):
    """A house behind a proxy."""

    @property
    def origin(self) -> str:
        return self.served.url.rsplit("/", 2)[0]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def proxied(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Proxied]:
    stage, folder = ScriptedReplies(), tmp_path_factory.mktemp("proxied")
    proxy = Proxy(tmp_path_factory.mktemp("nginx"))
    secret = folder / "password"
    secret.write_text(PASSWORD)
    url = f"{proxy.origin}/keryx"
    words = ("--url", url, "--trusted-proxy", "127.0.0.1", "--password-file", str(secret))
    async with ModelServer(stage.answer, keeps_asked=False) as model:
        served = PageServer(folder, model.url, words=words)
        await served.start()
        try:
            assert served.url == f"{url}/"
            port = int(served.listens.rstrip("/").rpartition(":")[2])
            with proxy.before(port):
                yield Proxied(served, stage, {})
        finally:
            await served.stop()
            proxy.close()


async def test_the_page_works_below_a_path_with_https(chromium: Browser, proxied: Proxied) -> None:
    proxied.stage.on("Said through a proxy", Reply(text="Heard through a proxy."))
    url = proxied.served.url
    async with person(chromium, url, ignore_https_errors=True) as somebody:
        tab = await somebody.opens(proxied.served.link)
        await expect(tab.box).to_be_visible()
        await expect(tab.page).to_have_url(url)
        (cookie,) = await somebody.context.cookies()
        assert cookie.get("secure") is True
        assert cookie.get("httpOnly") is True
        assert (cookie.get("path"), cookie.get("sameSite")) == ("/keryx/", "Strict")
        async with tab.page.expect_file_chooser() as choosing:
            await tab.button("Attach").click()
        notes = FilePayload(name="notes.txt", mimeType="text/plain", buffer=b"x" * 2_000_000)
        await (await choosing.value).set_files(notes)
        await tab.say("Said through a proxy")
        # Told by the streams, of the session and of the list.
        await expect(tab.replies).to_have_text(["Heard through a proxy."])
        await expect(tab.session("Said through a proxy")).to_be_visible()
        await tab.page.reload()
        await expect(tab.replies).to_have_text(["Heard through a proxy."])
        link = tab.said.first.get_by_role("link", name="Download notes.txt")
        address = await link.evaluate("(link) => link.href")
        assert address.startswith(url)
        assert len(await (await somebody.context.request.get(address)).body()) == 2_000_000
        await tab.list.get_by_role("button", name="Sign out").click()
        somebody.watch.expects("401")
        await expect(tab.page.get_by_role("form", name="Sign in to Keryx")).to_be_visible()
        assert await somebody.context.cookies() == []
        await tab.page.get_by_role("radio", name="Password").check()
        await tab.page.get_by_role("textbox", name="Password").fill(PASSWORD)
        await tab.page.keyboard.press("Enter")
        await expect(tab.session("Said through a proxy")).to_be_visible()


@asynccontextmanager
async def client(address: str, url: str) -> AsyncGenerator[aiohttp.ClientSession]:
    """Somebody at this address of loopback; nginx tells it apart from others."""
    connector = aiohttp.TCPConnector(local_addr=(address, 0), ssl=False)
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(url, connector=connector, cookie_jar=jar) as http:
        yield http


async def log_in(http: aiohttp.ClientSession, password: str, **headers: str) -> int:
    body = {"password": password}
    async with http.post("api/login", json=body, headers=headers) as answer:
        return answer.status


async def test_who_guesses_passwords_keeps_nobody_else_out(proxied: Proxied) -> None:
    url = proxied.served.url
    async with client("127.0.0.2", url) as guesser, client("127.0.0.3", url) as other:
        statuses = [await log_in(guesser, f"guess {number}") for number in range(5)]
        assert statuses == [401] * 5
        # Each wrong one makes the wait longer; on a busy machine the first waits may be over.
        while (status := await log_in(guesser, "one more guess")) != 429:
            assert status == 401
            statuses.append(status)
            assert len(statuses) < 12
        assert await log_in(guesser, PASSWORD, **{"X-Forwarded-For": "203.0.113.7"}) == 429
        assert await log_in(other, PASSWORD) == 204
        async with other.get("api/sessions") as answer:
            assert answer.status == 200


@pytest.mark.parametrize("path", ["/keryx/", "/left-in/", "/one/more/"])
async def test_all_that_the_page_names_is_there(proxied: Proxied, path: str) -> None:
    async with client("127.0.0.4", proxied.origin + path) as http:
        async with http.get("") as answer:
            page = await answer.text()
        links = re.findall(r'(?:src|href)="([^"]+)"', page)
        assert len(links) >= 4
        for link in links:
            async with http.get(urljoin(path, link)) as answer:
                assert answer.status == 200, link
        assert await log_in(http, PASSWORD) == 204
        (cookie,) = http.cookie_jar
        assert (cookie["path"], cookie["secure"]) == (path, True)
        async with http.get("api/sessions") as answer:
            assert answer.status == 200
        async with http.get("some/where", allow_redirects=False) as answer:
            where = urljoin(f"{path}some/where", answer.headers["location"])
            assert (answer.status, where) == (307, path)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"X-Forwarded-Host": "evil.example"}, 401),
        ({"X-Forwarded-Proto": "http", "X-Forwarded-Prefix": "/;evil"}, 401),
    ],
)
async def test_what_a_client_writes_itself_counts_for_nothing(
    proxied: Proxied, headers: dict[str, Any], status: int
) -> None:
    async with client("127.0.0.5", proxied.served.url) as http:
        assert await log_in(http, "wrong", **headers) == status
        # Not counted on to the next of these.
        assert await log_in(http, PASSWORD) == 204
