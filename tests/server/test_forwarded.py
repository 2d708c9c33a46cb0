"""What proxies say of their clients: believed from those that are trusted, and from nobody else."""

from __future__ import annotations

import logging
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keryx.server.access.forwarded import Forwarded, Outside, Proxies, PublicUrl
from tests.cli.commands import keryx
from tests.server.served_host import served_host

pytestmark = pytest.mark.promise("mended.18")

URL = PublicUrl.read("https://example.com/keryx")
TRUSTED = Proxies(["127.0.0.1", "10.0.0.0/8", "::1", "fd00::/8"], URL)
PASSWORD = "correct horse battery staple"


@pytest.mark.parametrize(
    ("peer", "header", "client"),
    [
        ("127.0.0.1", "203.0.113.7", "203.0.113.7"),
        ("127.0.0.1", "198.51.100.1, 203.0.113.7", "203.0.113.7"),
        ("127.0.0.1", "203.0.113.7, 10.1.2.3", "203.0.113.7"),
        ("::1", "2001:db8::1", "2001:db8::1"),
        ("fd00::5", "[2001:db8::1]:4711", "2001:db8::1"),
        ("::ffff:10.1.1.1", "203.0.113.7:4711", "203.0.113.7"),
        ("127.0.0.1", "10.9.9.9, 10.1.2.3", "10.9.9.9"),
        ("127.0.0.1", "unknown", "127.0.0.1"),
        ("127.0.0.1", "203.0.113.7, unknown", "127.0.0.1"),
        ("127.0.0.1", "", "127.0.0.1"),
        ("127.0.0.1", None, "127.0.0.1"),
        ("192.0.2.9", "203.0.113.7", "192.0.2.9"),
        ("", "203.0.113.7", ""),
    ],
)
def test_the_client_is_the_last_address_that_is_no_proxy_of_ours(
    peer: str, header: str | None, client: str
) -> None:
    assert TRUSTED.look(peer, "h", Forwarded(client=header)).client == client


@given(
    written=st.text() | st.lists(st.ip_addresses().map(str), max_size=30).map(", ".join),
    address=st.ip_addresses(),
)
def test_nothing_that_a_client_writes_changes_what_it_counts_as(written: str, address: Any) -> None:
    """A proxy puts the address that it sees behind what it was sent."""
    proxies = Proxies(["127.0.0.1"])
    plain = proxies.look("127.0.0.1", "h", Forwarded(client=str(address)))
    outside = proxies.look("127.0.0.1", "h", Forwarded(client=f"{written}, {address}"))
    if address != ip_address("127.0.0.1"):
        assert outside == plain


def test_scheme_host_and_path_are_those_that_the_client_sees() -> None:
    said = Forwarded("203.0.113.7", "https", "example.com", "/other")
    assert TRUSTED.look("::1", "127.0.0.1:8377", said) == Outside(
        "203.0.113.7", "example.com", "https", "/other"
    )
    # What no header says is as the address that people use has it.
    silent = TRUSTED.look("127.0.0.1", "example.com", Forwarded("203.0.113.7"))
    assert (silent.scheme, silent.prefix) == ("https", "/keryx")
    assert TRUSTED.look("127.0.0.1", "127.0.0.1:8377", Forwarded()).scheme == "http"
    # Who is not trusted says nothing.
    assert TRUSTED.look("192.0.2.9", "example.com", said) == Outside(
        "192.0.2.9", "example.com", "http", ""
    )


@pytest.mark.parametrize(
    "prefix",
    ["keryx", "//evil", "/a b", "/a;b", "/a\n/b", "/../x", "/api", "/api/x", "/" + "a" * 300],
)
def test_a_path_that_is_none_is_not_believed(prefix: str) -> None:
    assert Proxies(["127.0.0.1"]).look("127.0.0.1", "h", Forwarded(prefix=prefix)).prefix == ""


@pytest.mark.parametrize(
    ("path", "inner"),
    [
        ("/keryx/api/health", "/api/health"),
        ("/api/health", "/api/health"),
        ("/keryx/", "/"),
        ("/keryxen/", "/keryxen/"),
        ("/keryx", "/keryx"),
    ],
)
def test_a_path_that_the_proxy_left_in_is_taken_off(path: str, inner: str) -> None:
    outside = TRUSTED.look("127.0.0.1", "example.com", Forwarded())
    assert TRUSTED.inner_path(path, outside) == inner


async def test_without_a_trusted_proxy_headers_say_nothing_and_the_log_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with served_host(tmp_path, password=PASSWORD) as here:
        browser = here.browser()
        headers = {
            "X-Forwarded-For": "203.0.113.7",
            "X-Forwarded-Proto": "https",
            "X-Forwarded-Host": "evil.example",
            "X-Forwarded-Prefix": "/evil",
        }
        with caplog.at_level(logging.WARNING, "keryx.server"):
            for number in range(5):
                forwarded_headers = headers | {"X-Forwarded-For": f"203.0.113.{number}"}
                body = {"token": "guess"}  # compared at once, so the guesses are quick
                (
                    await browser.ask("POST", "/api/login", json=body, headers=forwarded_headers)
                ).problem(401, "wrong_login")
            body = {"password": PASSWORD}
            answer = await browser.ask("POST", "/api/login", json=body, headers=headers)
        answer.problem(429, "too_many_attempts")
        (said,) = [
            record.getMessage() for record in caplog.records if "proxy" in record.getMessage()
        ]
        assert "--trusted-proxy" in said


async def test_a_trusted_proxy_is_believed_also_over_plain_http(tmp_path: Path) -> None:
    url, trusted = "https://example.com/keryx", ("127.0.0.1",)
    async with served_host(tmp_path, url=url, trusted_proxies=trusted) as here:
        assert here.server.link == f"https://example.com/keryx/#token={here.server.once}"
        client = type(here.client)(here.server.listens, here.client.http)
        through = {"X-Forwarded-Host": "example.com", "X-Forwarded-Proto": "https"}
        body = {"token": here.server.once}
        answer = await client.ask("POST", "/keryx/api/login", json=body, headers=through)
        assert answer.status == 204
        parts = set(answer.headers["set-cookie"].lower().split("; "))
        assert {"secure", "httponly", "path=/keryx/"} <= parts
        foreign = through | {"X-Forwarded-Host": "evil.example"}
        refused = await client.ask("GET", "/api/health", headers=foreign)
        refused.problem(403, "wrong_host")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--trusted-proxy", "nginx"), "'nginx' is not the address of a proxy"),
        (("--url", "example.com/keryx"), "begin with http:// or https://"),
        (("--url", "https://example.com/?a=b"), "no user, query or fragment"),
        (("--url", "https://example.com/api"), "plain names"),
        (("--url", "https://example.com:99999/"), "Port out of range"),
    ],
)
def test_what_is_no_proxy_or_address_is_refused_at_the_start(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    result = keryx(tmp_path, "serve", "--port", "0", *words)
    assert result.returncode == 1
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_the_configuration_says_the_same_as_the_flags(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[server]\ntrusted_proxies = ["nginx"]\n')
    result = keryx(tmp_path, "serve", "--port", "0")
    assert result.returncode == 1
    assert "server.trusted_proxies" in result.stderr
