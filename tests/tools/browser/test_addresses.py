"""Which addresses may be opened, as which host a person sees them, and the references of a page."""

from __future__ import annotations

from pathlib import Path

import pytest

from keryx.errors import ToolFailedError
from keryx.messages import Needs
from keryx.tools.browser.addresses import address_risk, parse_address
from keryx.tools.browser.worker.downloads import safe_name
from keryx.tools.browser.worker.references import References, excerpt


@pytest.mark.parametrize(
    ("text", "kind", "url", "host"),
    [
        ("https://example.com", "web", "https://example.com/", "example.com"),
        ("example.com/a?b=c#d", "web", "https://example.com/a?b=c#d", "example.com"),
        ("HTTP://EXAMPLE.com:80/x y".replace(" ", "%20"), "web", None, "example.com"),
        ("http://bücher.example/ä", "web", None, "xn--bcher-kva.example"),
        ("localhost:8000", "local", "http://localhost:8000/", "localhost"),
        ("http://app.localhost/", "local", None, "app.localhost"),
        ("http://127.0.0.1:9/", "local", "http://127.0.0.1:9/", "127.0.0.1"),
        ("http://[::1]:9/", "local", "http://[::1]:9/", "[::1]"),
        ("http://[::ffff:127.0.0.1]/", "local", None, "[::ffff:7f00:1]"),
        ("http://0.0.0.0/", "local", None, "0.0.0.0"),
        ("http://example.com./", "web", "http://example.com/", "example.com"),
        (" https://example.com/\n", "web", "https://example.com/", "example.com"),
        ("about:blank", "blank", "about:blank", ""),
    ],
)
def test_an_address_is_read_as_chromium_reads_it(
    text: str, kind: str, url: str | None, host: str
) -> None:
    address = parse_address(text)
    assert (address.kind, address.host) == (kind, host)
    assert url is None or address.url == url


@pytest.mark.parametrize(
    "text",
    [
        "",
        "javascript:alert(1)",
        "data:text/html,x",
        "chrome://settings",
        "view-source:https://example.com",
        "ftp://example.com",
        "https://good.example\\@evil.example/",
        "https://user:password@example.com/",
        "https://exa mple.com/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://127.1/",
        "http://example.com:port/",
        "http:///path",
        "https://-bad.example/",
        "x" * 10_000,
    ],
)
def test_what_could_mean_another_host_is_refused(text: str) -> None:
    with pytest.raises(ToolFailedError, match="cannot be opened"):
        parse_address(text)


def test_only_the_network_needs_consent() -> None:
    workspace = Path("/work")
    risk = address_risk("https://example.com/x", workspace, network=False)
    assert (risk.needs, risk.patterns) == (Needs(network=True), ("example.com",))
    assert not address_risk("localhost:3000", workspace, network=False).needs
    assert address_risk("localhost:3000", workspace, network=True).needs == Needs(network=True)
    assert not address_risk("file:a.html", workspace, network=False).needs
    outside = address_risk("file:///etc/passwd", workspace, network=False)
    assert outside.needs == Needs(reads=("/etc/passwd",))
    assert address_risk("file:/work/../secret", workspace, network=False).needs


def test_references_stand_before_the_role_and_are_never_used_twice() -> None:
    references = References()
    page = '- button "Save [ref=e9]" [active] [ref=e1] [cursor=pointer]: text\n  - text: "[ref=e1]"'
    first = references.text(page)
    assert first == [
        '- [e1] button "Save [ref=e9]" [active] [cursor=pointer]: text',
        '  - text: "[ref=e1]"',
    ]
    assert references.text("- button [ref=e1]\n- link [ref=f1e2]") == [
        "- [e1] button",
        "- [e2] link",
    ]
    references.forget(frames_only=True)
    assert (references.find("e1"), references.find("e2")) == ("e1", None)
    references.forget()
    assert references.find("[e1]") is None
    assert references.text("- 'button \"a: b\" [ref=e1]'") == ["- '[e3] button \"a: b\"'"]


def test_an_excerpt_says_how_much_follows() -> None:
    assert excerpt(["aa", "bb", "cc"], 1, 6) == ("aa\nbb", 1)
    assert excerpt(["aa", "bb", "cc"], 3, 6) == ("cc", 0)
    assert excerpt(["a" * 100], 1, 6) == ("a" * 100, 0)
    assert excerpt(["a" * 300], 1, 6) == ("a" * 200 + "… [100 characters left out]", 0)
    assert excerpt([], 9, 6) == ("", 0)


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("report.pdf", "report.pdf"),
        ("../../etc/passwd", "passwd"),
        (".bashrc", "bashrc"),
        ("-rf $(x);`y`", "rf _x_y_"),
        ("...", "download"),
        ("a\nb.txt", "a_b.txt"),
    ],
)
def test_a_download_gets_a_safe_name(name: str, safe: str) -> None:
    assert safe_name(name) == safe


def test_a_second_download_gets_a_number() -> None:
    assert safe_name("a.tar.gz", 2) == "a.tar-2.gz"
    assert safe_name("README", 3) == "README-3"
