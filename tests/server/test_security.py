"""Requests that a browser is made to send, and those that no client would: all refused."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import pytest

from keryx.server.page import Page
from tests.server.served_host import PATIENCE, Answer, Client, ServedHost, in_thread, served_host

pytestmark = pytest.mark.promise("server.5")


async def logged_in(here: ServedHost) -> Client:
    browser = here.browser()
    answer = await browser.ask("POST", "/api/login", json={"token": here.server.once})
    assert answer.status == 204
    return browser


def refused(answer: Answer, kind: str) -> None:
    answer.problem(403, kind)
    assert "access-control-allow-origin" not in answer.headers


# -- rebinding

FOREIGN_HOSTS = (
    "evil.example",
    "evil.example:{port}",
    "127.0.0.1",
    "127.0.0.1:1",
    "127.0.0.1:{port}.evil.example",
    "localhost.evil.example:{port}",
    "192.168.0.1:{port}",
    "",
)


async def test_a_host_that_is_not_ours_gets_nothing(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        for host in FOREIGN_HOSTS:
            port = here.client.url.rpartition(":")[2]
            headers = {"Host": host.format(port=port)}
            for path in ("/", "/api/health", "/api/sessions", "/api/events"):
                refused(await here.client.ask("GET", path, headers=headers), "wrong_host")
            answer = await here.client.ask("POST", "/api/login", headers=headers, json={})
            refused(answer, "wrong_host")


async def test_our_own_names_are_known(tmp_path: Path) -> None:
    async with served_host(tmp_path, allowed_hosts=("keryx.example", "other:99")) as here:
        port = here.client.url.rpartition(":")[2]
        for host in (
            f"127.0.0.1:{port}",
            f"localhost:{port}",
            f"LocalHost:{port}",
            f"[::1]:{port}",
            "keryx.example",
            f"keryx.example:{port}",
            "other:99",
        ):
            answer = await here.client.ask("GET", "/api/health", headers={"Host": host})
            assert answer.status == 200, host


# -- other sites


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://127.0.0.1"},
        {"Origin": "http://evil.example", "Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {},
    ],
)
async def test_what_another_site_sends_with_our_cookie_is_refused(
    tmp_path: Path, headers: dict[str, str]
) -> None:
    async with served_host(tmp_path) as here:
        browser = await logged_in(here)
        name = await here.client.open()
        for method, path in (
            ("POST", "/api/sessions"),
            ("PATCH", f"/api/sessions/{name}"),
            ("DELETE", f"/api/sessions/{name}"),
            ("PUT", f"/api/sessions/{name}/draft"),
            ("POST", "/api/logout"),
            ("POST", "/api/uploads"),
        ):
            answer = await browser.ask(method, path, json={}, headers=headers)
            refused(answer, "wrong_origin")
        assert len((await here.client.get("/api/sessions"))["sessions"]) == 1


async def test_our_own_page_may_do_everything(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        browser = await logged_in(here)
        for headers in ({"Origin": here.client.url}, {"Sec-Fetch-Site": "same-origin"}):
            answer = await browser.ask("POST", "/api/sessions", json={}, headers=headers)
            assert answer.status == 201
            sent = await browser.ask(
                "POST",
                f"/api/sessions/{answer.body['summary']['session_id']}/messages",
                json={"text": "Hello"},
                headers=headers,
            )
            assert sent.status == 202


async def test_another_site_cannot_read_nor_log_in(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        body = {"token": here.server.once}
        foreign = {"Origin": "http://evil.example"}
        stranger = here.browser()
        refused(
            await stranger.ask("POST", "/api/login", json=body, headers=foreign), "wrong_origin"
        )
        browser = await logged_in(here)  # the token was not used up
        for site in ("cross-site", "same-site"):
            headers = {"Sec-Fetch-Site": site}
            refused(await browser.ask("GET", "/api/sessions", headers=headers), "wrong_origin")
            refused(await browser.ask("GET", "/api/events", headers=headers), "wrong_origin")
        preflight = await browser.ask("OPTIONS", "/api/sessions", headers=foreign)
        assert not [name for name in preflight.headers if name.startswith("access-control")]


async def test_a_program_with_a_token_needs_no_origin(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        assert await here.client.open()


# -- bytes that no client would send


async def raw(here: ServedHost, request: bytes) -> bytes:
    host, port = here.client.url.split("/")[2].split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(request.replace(b"HOST", f"{host}:{port}".encode()))
    async with asyncio.timeout(PATIENCE):
        answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


TARGETS = [
    b"/../../etc/passwd",
    b"/%2e%2e/%2e%2e/etc/passwd",
    b"/assets/..%2f..%2f..%2fpyproject.toml",
    b"/api/../api/sessions",
    b"/api/sessions/%2e%2e/%2e%2e/events",
    b"//api/sessions",
    b"/api%2fsessions",
    b"/%00",
    b"/..\\..\\x.txt",
]


async def test_no_path_leads_to_files_or_around_the_door(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        for target in TARGETS:
            answer = await raw(
                here, b"GET " + target + b" HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n"
            )
            head, _, body = answer.partition(b"\r\n\r\n")
            status = int(head.split()[1])
            assert status in (200, 307, 400, 401, 404)
            assert b"root:" not in body
            assert b"[project]" not in body
            assert b'"sessions"' not in body
            if status == 200:
                assert b"text/html" in head.lower()


async def test_two_hosts_or_two_tokens_fit_nothing(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        close = b"Connection: close\r\n"
        hosts = b"Host: HOST\r\nHost: evil.example\r\n"
        twice = b"GET /api/health HTTP/1.1\r\n" + hosts + close + b"\r\n"
        assert b" 403 " in (await raw(here, twice)).partition(b"\r\n")[0]
        token = f"Authorization: Bearer {here.token}\r\n".encode()
        tokens = (
            b"GET /api/models HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n"
            + token
            + token
            + b"\r\n"
        )
        assert b" 401 " in (await raw(here, tokens)).partition(b"\r\n")[0]
        nobody = b"GET /api/health HTTP/1.0\r\n\r\n"
        assert b" 403 " in (await raw(here, nobody)).partition(b"\r\n")[0]


async def test_every_answer_has_the_headers_that_protect_it(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        name = await here.client.open()
        for path in ("/", "/api/health", "/api/sessions", "/api/nothing", f"/api/sessions/{name}"):
            answer = await here.client.ask("GET", path)
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["x-frame-options"] == "DENY"
            assert answer.headers["referrer-policy"] == "no-referrer"
            assert "default-src 'none'" in answer.headers["content-security-policy"]
            assert "unsafe" not in answer.headers["content-security-policy"]
            assert "server" not in answer.headers
            assert answer.headers["date"].endswith("GMT")
        assert answer.headers["cache-control"] == "no-store"


# -- what went wrong inside


async def test_an_unforeseen_error_is_told_by_an_id_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with served_host(tmp_path) as here:

        async def broken(session_id: str, **_: object) -> None:
            raise LookupError("an inner secret of " + session_id)

        monkeypatch.setattr(here.host_client.store, "usage", broken)
        answer = await here.client.ask("GET", "/api/usage")
        problem = answer.problem(500, "internal")
        assert b"inner secret" not in answer.raw
        assert problem["detail"].rpartition(" ")[2].strip(")") in caplog.text
        assert "inner secret" in caplog.text


# -- the page


class Answered:
    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.body = b""

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], dict(message["headers"])
        else:
            self.body += message["body"]


async def served(page: Page, path: str, method: str = "GET") -> Answered:
    answered = Answered()
    await page.serve(method, path, answered.send)
    return answered


async def test_the_page_is_served_with_what_may_be_kept(tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html>")
    (tmp_path / "assets" / "main-1a2b3c4d.js").write_text("let x")
    (tmp_path.parent / "outside.txt").write_text("outside")
    (tmp_path / "assets" / "link.txt").symlink_to(tmp_path.parent / "outside.txt")
    page = await in_thread(Page.read, tmp_path)
    for path in ("/", "/index.html"):
        index = await served(page, path)
        assert (index.status, index.body) == (200, b"<!doctype html>")
        assert index.headers[b"cache-control"] == b"no-cache"
    # All that the page asks for is named from where it is, so it is at one address only.
    for path, up in (("/sessions", b"./"), ("/sessions/s-1", b"../"), ("/a/b/", b"../../")):
        elsewhere = await served(page, path)
        assert (elsewhere.status, elsewhere.headers[b"location"]) == (307, up)
    script = await served(page, "/assets/main-1a2b3c4d.js")
    assert b"immutable" in script.headers[b"cache-control"]
    assert script.headers[b"content-type"].startswith(b"text/javascript")
    assert (await served(page, "/", "HEAD")).body == b""
    assert (await served(page, "/", "POST")).status == 405
    for path in ("/assets/nothing.js", "/assets/link.txt", "/../outside.txt"):
        assert (await served(page, path)).status == 404


async def test_only_the_script_that_was_built_into_the_document_may_run(tmp_path: Path) -> None:
    script = "fetch('api/sessions')"
    (tmp_path / "index.html").write_text(f"<!doctype html><script>{script}</script>")
    (tmp_path / "plain.js").write_text("let x")
    page = await in_thread(Page.read, tmp_path)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (await served(page, "/")).headers[b"content-security-policy"].decode()
    assert f"script-src 'self' 'sha256-{digest}';" in policy
    for path in ("/plain.js", "/missing.js"):
        other = (await served(page, path)).headers[b"content-security-policy"].decode()
        assert "script-src 'self';" in other


async def test_a_page_that_is_not_built_says_so(tmp_path: Path) -> None:
    answered = await served(await in_thread(Page.read, tmp_path / "nothing"), "/")
    assert answered.headers[b"content-type"].startswith(b"text/plain")
    assert b"make setup" in answered.body
