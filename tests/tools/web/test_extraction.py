"""From bytes to readable text: pages, PDFs, encodings, and everything that is broken."""

from __future__ import annotations

import io
import random

import pypdf
import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from keryx.errors import ToolFailedError
from keryx.tools.web.extraction import Page, extract
from keryx.tools.web.fetching import Fetched, FetchLimits
from tests.tools.web.web_session import WebSession, article, serving

pytestmark = pytest.mark.promise("kit.1")


def read(body: bytes, content_type: str = "text/html", charset: str | None = None) -> Page:
    fetched = Fetched("http://site.example/", content_type, charset, body, truncated=False)
    return extract(fetched, lambda: None)


def pdf(*texts: str, title: str = "", password: str = "") -> bytes:
    """A PDF with one line of text on each page."""
    writer = pypdf.PdfWriter()
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        }
    )
    for text in texts:
        page = writer.add_blank_page(300, 300)
        content = DecodedStreamObject()
        content.set_data(f"BT /F1 12 Tf 20 200 Td ({text}) Tj ET".encode())
        page[NameObject("/Contents")] = writer._add_object(content)  # pyright: ignore[reportPrivateUsage] (the library has no other way)
        fonts = DictionaryObject({NameObject("/F1"): font})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
    if title:
        writer.add_metadata({"/Title": title})
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


def test_an_article_is_read_without_its_menus() -> None:
    page = read(article("The herald", "He came at dawn.").encode())
    assert (page.title, page.kind, page.truncated) == ("The herald", "html", False)
    assert "He came at dawn." in page.text
    assert "Imprint" not in page.text


def test_a_page_without_an_article_gives_its_words() -> None:
    html = b"<title>List</title><script>var x = 1</script><style>a{}</style><p>one<div>two</div>"
    page = read(html)
    assert page.title == "List"
    assert page.text.split() == ["one", "two"]


@pytest.mark.parametrize(
    ("encoding", "declared", "in_page"),
    [
        ("utf-8", "utf-8", ""),
        ("utf-8", None, ""),
        ("iso-8859-1", "iso-8859-1", ""),
        ("windows-1252", None, "windows-1252"),
        ("windows-1252", None, ""),
        ("windows-1252", "utf-8", ""),  # the server is wrong
        ("utf-8", "no-such-encoding", ""),
        ("utf-8", "punycode", ""),
        ("utf-8", "unicode_escape", "base64"),
        ("utf-16", "utf-8", ""),  # its first bytes say what it is
        ("utf-8-sig", None, "iso-8859-1"),
    ],
)
def test_an_encoding_is_recognized_even_if_it_is_declared_wrongly(
    encoding: str, declared: str | None, in_page: str
) -> None:
    html = article("Müller", "Grüße aus Köln für Zoë.")
    if in_page:
        html = html.replace("<head>", f'<head><meta charset="{in_page}">')
    page = read(html.encode(encoding), charset=declared)
    assert "Grüße aus Köln für Zoë." in page.text
    assert page.title == "Müller"


def test_an_asian_encoding_is_read() -> None:
    html = article("見出し", "これは日本語の文章です。" * 20)
    assert "これは日本語の文章です。" in read(html.encode("shift_jis"), charset="Shift_JIS").text


def test_plain_text_and_data_are_returned_as_they_are() -> None:
    text = '{"a": [1, 2],\n  "b": "ü"}'
    for content_type in ("application/json", "text/plain", "application/vnd.x+json", "text/csv"):
        page = read(text.encode(), content_type)
        assert (page.text, page.kind) == (text, "text")


def test_what_it_is_is_seen_by_its_bytes_if_the_server_does_not_say() -> None:
    assert read(article("Page", "Words.").encode(), "").kind == "html"
    assert read(pdf("Words"), "application/octet-stream").kind == "pdf"
    assert read(b"just words", "application/octet-stream").kind == "text"
    assert read(b"<!-- 1 --> <!-- 2 -->\n<html><p>Words.</p></html>", "").kind == "html"
    with pytest.raises(ToolFailedError, match="holds no text"):
        read(b"PK\x03\x04\x00\x00\x00\x00", "application/zip")


@pytest.mark.promise("kit.12")
def test_many_comments_before_something_else_are_read_once() -> None:
    # Tried in every combination, they would take longer than anybody lives.
    assert read(b"<!---->" * 500 + b" words", "application/octet-stream").kind == "text"


@pytest.mark.parametrize(
    "html",
    [
        "",
        "<",
        "\0\0\0",
        "<html><head></head>",
        "<div>" * 100_000 + "words",
        "<b>" * 5_000 + "words",
        "<a href=x>words" * 30_000,
        "<p>some words" * 50_000,
        "<table><tr><td>" * 10_000,
        "<script>" + "x" * 100_000,
        "<" * 200_000,
        "<!--" * 50_000,
        "&#x110000;&#0;&bogus;&#xD800;words",
        "<div " + "a=b " * 100_000 + ">words",
        '<meta charset="utf-8"><meta charset="utf-16">words</html></html></body>words',
        "<?xml version='1.0' encoding='utf-32'?><html><p>words</p></html>",
        "<svg><title>t</title></svg><math><mi>words",
    ],
    ids=lambda html: repr(html[:20]),
)
@pytest.mark.promise("kit.12")
def test_malformed_html_gives_what_can_be_read(html: str) -> None:
    page = read(html.encode())
    assert ("words" in page.text) == ("words" in html)
    page.text.encode()


@settings(max_examples=40)
@given(
    st.binary(max_size=2_000), st.sampled_from(["text/html", "application/pdf", "text/plain", ""])
)
@pytest.mark.promise("kit.12")
def test_any_bytes_give_a_page_or_a_reason(body: bytes, content_type: str) -> None:
    try:
        read(body, content_type).text.encode()
    except ToolFailedError as error:
        assert ";" in str(error)  # noqa: PT017 (either is right)


def test_a_pdf_is_read_page_by_page() -> None:
    page = read(pdf("First words", "Second words", title="A report"), "application/pdf")
    assert (page.title, page.kind) == ("A report", "pdf")
    assert page.text.split("\n") == ["[page 1]", "First words", "", "[page 2]", "Second words"]


def test_a_broken_pdf_has_a_reason_or_gives_what_can_be_read() -> None:
    whole = pdf(*(f"Words {number}" for number in range(20)))
    chance = random.Random(1)
    damaged = [whole[:100], whole[: len(whole) // 2], b"%PDF-1.7\n", b"%PDF-" + b"\0" * 1_000]
    for _ in range(60):
        body = bytearray(whole)
        for _ in range(20):
            body[chance.randrange(8, len(body))] = chance.randrange(256)
        damaged.append(bytes(body))
    for body in damaged:
        try:
            read(body, "application/pdf").text.encode()
        except ToolFailedError as error:
            assert "PDF" in str(error)  # noqa: PT017 (either is right)


def test_a_pdf_with_a_password_or_without_text_has_a_reason() -> None:
    with pytest.raises(ToolFailedError, match="password"):
        read(pdf("Words", password="secret"), "application/pdf")
    with pytest.raises(ToolFailedError, match="no text"):
        read(pdf(""), "application/pdf")
    with pytest.raises(ToolFailedError, match="it is none"):
        read(b"<html>", "application/pdf")


async def test_a_pdf_that_is_too_large_is_refused() -> None:
    async def answer(request: web.BaseRequest) -> web.Response:
        return web.Response(body=pdf("x" * 20_000), content_type="application/pdf")

    limits = FetchLimits(size=5_000)
    async with serving() as site, WebSession(site.host, limits=limits) as session:
        site.pages["/"] = answer
        assert "larger than" in await session.refusal(site.url())
