"""Who may use the server: links that work once, passwords, cookies, tokens; and rate limits."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path

import pytest

from keryx import Keryx
from keryx.aio.bridge import Bridge
from keryx.aio.clock import FakeClock
from keryx.aio.scope import Scope
from keryx.errors import UserMustActError
from keryx.server import stream as streaming
from keryx.server.access.login_link import AGAIN, Link
from keryx.server.access.logins import LASTS, Logins
from keryx.server.access.password import Password
from keryx.server.access.rate_limit import FREE, LONGEST_WAIT, MOST, RateLimit
from keryx.server.access.tokens import Tokens
from keryx.server.serve import Settings, bind, serving
from tests.server.served_host import (
    PATIENCE,
    Answer,
    Client,
    ServedHost,
    in_thread,
    scripted,
    served_host,
)

pytestmark = pytest.mark.promise("server.5")


PASSWORD = "correct horse battery staple"


async def logged_in(here: ServedHost) -> Client:
    browser = here.browser()
    answer = await browser.ask("POST", "/api/login", json={"token": here.server.once})
    assert (answer.status, answer.raw) == (204, b"")
    return browser


def origin(here: ServedHost) -> dict[str, str]:
    return {"Origin": here.client.url}


# -- the link


async def test_the_link_logs_in_once(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        assert here.server.link == f"{here.server.url}#token={here.server.once}"
        browser = await logged_in(here)
        assert (await browser.get("/api/sessions"))["sessions"] == []
        second = here.browser()
        again = await second.ask("POST", "/api/login", json={"token": here.server.once})
        again.problem(401, "wrong_login")
        (await second.ask("GET", "/api/sessions")).problem(401, "not_logged_in")


@pytest.mark.promise("mended.19")
async def test_the_whole_link_is_as_good_as_its_token(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        browser = here.browser()
        wrong = f"{here.server.url}#token=nothing"
        (await browser.ask("POST", "/api/login", json={"token": wrong})).problem(401, "wrong_login")
        body = {"token": f" {here.server.link}\n"}
        assert (await browser.ask("POST", "/api/login", json=body)).status == 204
        assert (await browser.get("/api/sessions"))["sessions"] == []


SECRET = "a secret that only this browser knows"


async def test_the_browser_that_used_the_link_asks_again_when_the_answer_was_lost(
    tmp_path: Path,
) -> None:
    async with served_host(tmp_path) as here:
        body = {"token": here.server.once, "browser": SECRET}
        lost = await here.browser().ask("POST", "/api/login", json=body)
        assert lost.status == 204
        thief = here.browser()
        for other in ({}, {"browser": SECRET[::-1]}, {"browser": None}):
            answer = await thief.ask("POST", "/api/login", json={**body, "browser": None, **other})
            answer.problem(401, "wrong_login")
        wrong = await thief.ask("POST", "/api/login", json={"token": "no", "browser": SECRET})
        wrong.problem(401, "wrong_login")

        browser = here.browser()
        assert (await browser.ask("POST", "/api/login", json=body)).status == 204
        assert (await browser.ask("GET", "/api/sessions")).status == 200
        # It has arrived: from now on the link is over, also for who knows the secret.
        again = await here.browser().ask("POST", "/api/login", json=body)
        again.problem(401, "wrong_login")


async def test_who_is_in_may_show_the_link_again(tmp_path: Path) -> None:
    """As a page does that is loaded anew before it could take the token out of its address."""
    async with served_host(tmp_path) as here:
        browser, headers = await logged_in(here), origin(here)

        async def shows(token: str) -> Answer:
            return await browser.ask("POST", "/api/login", json={"token": token}, headers=headers)

        assert (await browser.ask("GET", "/api/sessions")).status == 200
        assert (await shows(here.server.once)).status == 204
        assert (await browser.ask("GET", "/api/sessions")).status == 200
        (await shows("no")).problem(401, "wrong_login")
        await browser.ask("POST", "/api/logout", headers=headers)
        (await shows(here.server.once)).problem(401, "wrong_login")


async def test_a_secret_that_could_be_guessed_is_refused(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        body = {"token": here.server.once, "browser": "short"}
        refused = await here.browser().ask("POST", "/api/login", json=body)
        refused.problem(400, "bad_request")
        assert (await logged_in(here)).http is not None


async def test_a_lost_answer_can_be_asked_for_only_for_a_while(clock: FakeClock) -> None:
    link = Link(clock)
    assert link.opens(link.token, SECRET)
    clock.advance(AGAIN - 0.5)
    assert link.opens(link.token, SECRET)
    clock.advance(0.5)
    assert not link.opens(link.token, SECRET)


async def test_a_link_that_was_used_without_a_secret_is_over(clock: FakeClock) -> None:
    link = Link(clock)
    assert link.opens(link.token, None)
    assert not link.opens(link.token, None)
    assert not link.opens(link.token, SECRET)


async def test_the_cookie_is_for_this_server_alone(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        body = {"token": here.server.once}
        answer = await here.browser().ask("POST", "/api/login", json=body)
        cookie = answer.headers["set-cookie"].lower()
        assert cookie.startswith("keryx_login=")
        assert {"httponly", "samesite=strict", "path=/"} <= set(cookie.split("; "))
        assert "domain" not in cookie
        stored = (here.home / "logins.json").read_text()
        value = answer.headers["set-cookie"].partition("=")[2].partition(";")[0]
        assert value not in stored
        assert stat.S_IMODE((here.home / "logins.json").stat().st_mode) == 0o600


async def test_a_login_survives_a_restart_and_ends_with_logging_out(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        browser = await logged_in(here)
        jar = {cookie.key: cookie.value for cookie in browser.http.cookie_jar}
    async with served_host(tmp_path) as here:
        browser = here.browser()
        cookies = {"Cookie": f"keryx_login={jar['keryx_login']}"}
        assert (await browser.ask("GET", "/api/sessions", headers=cookies)).status == 200
        out = await browser.ask("POST", "/api/logout", headers={**cookies, **origin(here)})
        assert out.status == 204
        (await browser.ask("GET", "/api/sessions", headers=cookies)).problem(401, "not_logged_in")
    async with served_host(tmp_path) as here:
        answer = await here.browser().ask("GET", "/api/sessions", headers=cookies)
        answer.problem(401, "not_logged_in")


async def test_logging_out_ends_the_streams_of_that_login(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "BEAT", 0.01)
    async with served_host(tmp_path) as here:
        browser = await logged_in(here)
        async with browser.stream("/api/events") as events:
            await browser.ask("POST", "/api/logout", headers=origin(here))
            assert [event async for event in events] == []


async def test_a_login_ends_after_its_time(tmp_path: Path, clock: FakeClock) -> None:
    scope = Scope("test")
    threads = Bridge(scope)
    logins = Logins(tmp_path, threads, clock)
    secret = await logins.begin()
    name = logins.find(secret)
    assert name is not None
    clock.advance(LASTS + 1)
    assert logins.find(secret) is None
    assert not logins.is_valid(name)
    await threads.close()
    scope.close()


# -- tokens


async def test_a_token_made_now_works_now_and_a_revoked_one_no_more(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        tokens = Tokens(here.home)
        secret = await in_thread(tokens.make, "robot")
        headers = {"Authorization": f"Bearer {secret}"}
        browser = here.browser()
        assert (await browser.ask("GET", "/api/models", headers=headers)).status == 200
        (used,) = [token for token in await in_thread(tokens.all) if token.name == "robot"]
        assert used.used is not None
        assert secret not in (here.home / "tokens.json").read_text()
        assert stat.S_IMODE((here.home / "tokens.json").stat().st_mode) == 0o600
        assert await in_thread(tokens.revoke, "robot")
        assert not await in_thread(tokens.revoke, "robot")
        async with asyncio.timeout(PATIENCE):
            while (await browser.ask("GET", "/api/models", headers=headers)).status == 200:
                pass


@pytest.mark.parametrize(
    "authorization",
    ["Bearer wrong", "Bearer ", "Bearer", "Basic dGVzdA==", "bearer kx_", "Bearer \u00ff", ""],
)
async def test_without_the_right_token_nobody_gets_in(tmp_path: Path, authorization: str) -> None:
    async with served_host(tmp_path) as here:
        browser = await logged_in(here)
        headers = {"Authorization": authorization}
        for path in ("/api/sessions", "/api/openapi.json", "/api/events", "/api/nothing"):
            # A wrong token is not made good by a cookie.
            answer = await browser.ask("GET", path, headers=headers)
            answer.problem(401, "not_logged_in")
            assert answer.headers["www-authenticate"] == "Bearer"


async def test_everything_but_health_login_and_page_needs_to_be_let_in(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        document = await here.client.get("/api/openapi.json")
        stranger = here.browser()
        for path, operations in document["paths"].items():
            for method in operations:
                address = path.replace("{", "").replace("}", "")
                answer = await stranger.ask(method.upper(), address, json={})
                opened = address in ("/api/health", "/api/login")
                assert (answer.status == 401) == (not opened or address == "/api/login"), path
        assert (await stranger.ask("GET", "/")).status in (200, 404)


def test_tokens_have_names_of_their_own(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path)
    tokens.make("one")
    for name in ("one", "", "a\nb", "x" * 65, "<script>"):
        with pytest.raises(UserMustActError):
            tokens.make(name)
    assert [token.name for token in tokens.all()] == ["one"]
    (tmp_path / "tokens.json").write_text("{")
    with pytest.raises(UserMustActError, match="cannot be read"):
        tokens.all()


# -- passwords


async def test_the_password_logs_in_and_is_stored_hashed(tmp_path: Path) -> None:
    async with served_host(tmp_path, password=PASSWORD) as here:
        browser = here.browser()
        wrong = await browser.ask("POST", "/api/login", json={"password": "wrong"})
        wrong.problem(401, "wrong_login")
        right = await browser.ask("POST", "/api/login", json={"password": PASSWORD})
        assert right.status == 204
        assert PASSWORD not in (here.home / "password.json").read_text()
        assert stat.S_IMODE((here.home / "password.json").stat().st_mode) == 0o600
    async with served_host(tmp_path) as here:  # it is known from before
        right = await here.browser().ask("POST", "/api/login", json={"password": PASSWORD})
        assert right.status == 204


def test_a_password_has_bounds(tmp_path: Path) -> None:
    for wrong in ("", "short", "x" * 2_000):
        with pytest.raises(UserMustActError, match="characters"):
            Password(tmp_path).load(wrong)
    password = Password(tmp_path)
    assert not password.load(None)
    assert not password.matches("")


async def test_other_machines_need_a_password(tmp_path: Path) -> None:
    async with Keryx(model=scripted(), home=tmp_path, workspace=tmp_path) as app:
        with pytest.raises(UserMustActError, match="KERYX_PASSWORD"):
            async with serving(app.host_client, Settings(host="0.0.0.0", port=0)):
                pass
        settings = Settings(host="0.0.0.0", port=0, password=PASSWORD, workspace=tmp_path)
        async with serving(app.host_client, settings) as server:
            assert server.url.startswith("http://127.0.0.1:")


@pytest.mark.parametrize(
    "body",
    [{}, {"token": None}, {"token": ""}, {"password": ""}, {"token": "x", "password": "x"}],
)
async def test_nothing_is_no_way_to_log_in(tmp_path: Path, body: object) -> None:
    async with served_host(tmp_path) as here:
        answer = await here.browser().ask("POST", "/api/login", json=body)
        answer.problem(401, "wrong_login")
        bad = await here.browser().ask("POST", "/api/login", json={"token": 1})
        bad.problem(400, "bad_request")


# -- how often one may try


async def test_many_failures_have_to_wait(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        browser = here.browser()
        for _ in range(FREE):
            answer = await browser.ask("POST", "/api/login", json={"token": "wrong"})
            answer.problem(401, "wrong_login")
        blocked = await browser.ask("POST", "/api/login", json={"token": here.server.once})
        blocked.problem(429, "too_many_attempts")
        assert int(blocked.headers["retry-after"]) >= 1


def test_waits_grow_and_end(clock: FakeClock) -> None:
    attempts = RateLimit(clock)
    waits: list[float] = []
    for _ in range(FREE + 12):
        attempts.began("10.0.0.1")
        waits.append(attempts.wait("10.0.0.1"))
    assert waits[: FREE - 1] == [0.0] * (FREE - 1)
    assert waits[FREE - 1 : FREE + 3] == [1.0, 2.0, 4.0, 8.0]
    assert waits[-1] == LONGEST_WAIT
    assert attempts.wait("10.0.0.2") == 0.0
    clock.advance(LONGEST_WAIT)
    assert attempts.wait("10.0.0.1") == 0.0
    attempts.succeeded("10.0.0.1")
    attempts.began("10.0.0.1")
    assert attempts.wait("10.0.0.1") == 0.0


def test_what_is_remembered_of_attempts_is_bounded(clock: FakeClock) -> None:
    attempts = RateLimit(clock)
    for number in range(FREE):
        attempts.began(f"2001:db8::{number}")
    assert attempts.wait("2001:db8::ffff") > 0  # one network, one count
    for number in range(MOST + 100):
        attempts.began(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
    assert len(attempts) == MOST


# -- the port


async def test_a_busy_port_moves_to_the_next_free_one() -> None:
    with bind("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with bind("127.0.0.1", port) as second:
            assert second.getsockname()[1] > port
    with pytest.raises(UserMustActError, match="choose another"):
        bind("203.0.113.1", 8377)


async def test_what_lies_in_the_cabinets_is_json(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        await logged_in(here)
        for name in ("tokens.json", "logins.json"):
            assert json.loads((here.home / name).read_bytes())
        assert not [path for path in here.home.iterdir() if path.name.startswith(".")]
