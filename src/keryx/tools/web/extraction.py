"""From the bytes of a page to readable text: HTML, PDF, and plain text. For threads; it blocks.

Broken input gives what can be read of it, or a `ToolFailedError`, and no other error.
"""

from __future__ import annotations

import importlib
import importlib.util
import io
import re
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from keryx.errors import KeryxError, ToolFailedError
from keryx.tools.web.decoding import decode
from keryx.tools.web.fetching import Fetched

# The extractor needs up to a second for each million characters. Text begins early in a page.
MAX_HTML: Final = 2_000_000
MAX_TEXT: Final = 2_000_000
MAX_TAGS: Final = 40_000
"""With more tags the extractor could take minutes; then only the plain text is taken."""
MAX_PDF_PAGES: Final = 1_000
MAX_PDF_SECONDS: Final = 30.0
# A shorter result for a page with far more words means that the extractor found the wrong part.
SHORT_TEXT: Final = 250
_TEXT_TYPES: Final = (
    "json",
    "xml",
    "yaml",
    "javascript",
    "ecmascript",
    "csv",
    "toml",
    "x-sh",
    "sql",
)
# A comment ends with the first `-->`, so that there is one way only to read many of them.
_HTML_START: Final = re.compile(
    rb"\s*(?:<!--(?:(?!-->).)*-->\s*)*"
    rb"<(?:!doctype html|html|head|body|title|meta|div|p|h1|table|a)\b",
    re.IGNORECASE | re.DOTALL,
)
# Each of these reads every character once, whatever the input is.
_SCRIPT: Final = re.compile(r"<(script|style)\b[^<]*(?:<(?!/\1)[^<]*)*", re.IGNORECASE)
_TAG: Final = re.compile(r"<[^<>]*>")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_BLANK_LINES: Final = re.compile(r"[ \t]*\n(?:[ \t]*\n){2,}")
_SPACES: Final = re.compile(r"[ \t\u00a0]{2,}")

CheckCancelled = Callable[[], None]
"""Raises if the call was cancelled."""


class Page(msgspec.Struct, frozen=True):
    """A page as text."""

    url: str
    """Where the redirects ended."""
    title: str
    text: str
    kind: str
    """`html`, `pdf` or `text`."""
    truncated: bool
    """Whether the page is larger than what was read of it."""


def missing() -> str | None:
    """Return what to install; None if everything is there."""
    packages = [name for name in ("trafilatura", "pypdf") if importlib.util.find_spec(name) is None]
    return f"{' and '.join(packages)}: pip install 'keryx[web]'" if packages else None


def extract(fetched: Fetched, check_cancelled: CheckCancelled) -> Page:
    """Return the page as text; `ToolFailedError` if it has none."""
    kind = _kind(fetched)
    if kind == "pdf":
        return _read_pdf(fetched, check_cancelled)
    text = decode(fetched.body, fetched.charset, is_html=kind == "html")
    if kind == "html":
        return _read_html(fetched, text, check_cancelled)
    text = _CONTROL.sub("", text)
    return Page(fetched.url, "", text[:MAX_TEXT], "text", fetched.truncated or len(text) > MAX_TEXT)


def _kind(fetched: Fetched) -> str:
    """Return `html`, `pdf` or `text`, by what the server says and what the bytes are."""
    content_type, body = fetched.content_type, fetched.body
    if body[:1024].lstrip().startswith(b"%PDF-"):
        return "pdf"
    if content_type == "application/pdf":
        raise ToolFailedError("the server calls it a PDF, but it is none; try another page")
    if content_type in ("text/html", "application/xhtml+xml"):
        return "html"
    if content_type in ("", "application/octet-stream") and _HTML_START.match(body[:4096]):
        return "html"
    if content_type.startswith("text/") or content_type.endswith(_TEXT_TYPES):
        return "text"
    if b"\0" not in body[:4096]:
        return "text"
    raise ToolFailedError(
        f"it is {content_type or 'binary data'}, which holds no text; use another tool"
    )


def _read_html(fetched: Fetched, html: str, check_cancelled: CheckCancelled) -> Page:
    html = _CONTROL.sub(" ", html)
    truncated = fetched.truncated or len(html) > MAX_HTML
    html = html[:MAX_HTML]
    tree = _parse(html)
    title, text = "", ""
    if tree is not None:
        check_cancelled()
        title = _title(tree)
        text = _main_text(tree, fetched.url) if html.count("<") <= MAX_TAGS else ""
        check_cancelled()
        if len(text) < SHORT_TEXT:
            whole = _whole_text(tree)
            text = whole if len(whole) > 2 * len(text) else text
    # The parser drops what is nested too deeply.
    text = text or _without_tags(html)
    text = _BLANK_LINES.sub("\n\n", text).strip()
    return Page(fetched.url, title, text[:MAX_TEXT], "html", truncated or len(text) > MAX_TEXT)


def _parse(html: str) -> Any:
    """Return the tree of an HTML document; None if there is nothing in it."""
    etree: Any = importlib.import_module("lxml.etree")  # heavy; loaded with the first page
    lxml_html: Any = importlib.import_module("lxml.html")
    parser = lxml_html.HTMLParser(encoding="utf-8", recover=True, remove_comments=True)
    try:
        return lxml_html.document_fromstring(html.encode(errors="replace"), parser=parser)
    except (etree.LxmlError, ValueError, AssertionError):
        return None


def _title(tree: Any) -> str:
    for path in ("//meta[@property='og:title']/@content", "//title//text()", "//h1//text()"):
        words = " ".join("".join(map(str, tree.xpath(path)[:20])).split())
        if words:
            return words[:300]
    return ""


def _main_text(tree: Any, url: str) -> str:
    """Return the text of the page without menus and footers, as Markdown; "" if none is seen."""
    trafilatura: Any = importlib.import_module("trafilatura")
    try:
        text = trafilatura.extract(
            tree,
            url=url,
            output_format="markdown",
            include_tables=True,
            include_links=True,
            include_comments=True,
            favor_recall=True,
        )
    except Exception:  # noqa: BLE001 (a library's own faults with broken pages; the plain text remains)
        return ""
    return text or ""


def _whole_text(tree: Any) -> str:
    """Return all text of the page, without scripts and styles, line by line."""
    blocks = {"p", "div", "li", "tr", "br", "h1", "h2", "h3", "h4", "h5", "h6", "section", "title"}
    silent = {"script", "style", "noscript", "template", "svg", "head"}
    pieces: list[str] = []
    skipping = 0
    etree: Any = importlib.import_module("lxml.etree")
    for event, element in etree.iterwalk(tree, events=("start", "end")):
        tag = element.tag if isinstance(element.tag, str) else ""
        if event == "start":
            skipping += tag in silent
            if tag in blocks:
                pieces.append("\n")
            if not skipping and tag and element.text:
                pieces.append(element.text.replace("\n", " "))
        else:
            skipping -= tag in silent
            if not skipping and element.tail:
                pieces.append(element.tail.replace("\n", " "))
    lines = (_SPACES.sub(" ", line).strip() for line in "".join(pieces).split("\n"))
    return "\n".join(line for line in lines if line)


def _without_tags(html: str) -> str:
    from html import unescape  # noqa: PLC0415 (a large table, for few pages)

    words = unescape(_TAG.sub(" ", _SCRIPT.sub(" ", html))).split()
    return " ".join(words)


def _read_pdf(fetched: Fetched, check_cancelled: CheckCancelled) -> Page:
    if fetched.truncated:
        raise ToolFailedError(
            f"the PDF is larger than {len(fetched.body) // 1_000_000} MB, and a part of a PDF "
            "cannot be read; download it with `terminal`, or find a smaller one"
        )
    texts: list[str] = []
    title, truncated = "", False
    try:
        reader = _open_pdf(fetched.body)
        title = str((reader.metadata and reader.metadata.title) or "")
        truncated = _read_pdf_pages(reader, texts, check_cancelled)
    except KeryxError:
        raise
    except Exception as error:
        # pypdf raises errors of many kinds for broken files, also some of the standard library.
        if not any(texts):
            raise ToolFailedError(
                f"the PDF is damaged ({type(error).__name__}); try another page"
            ) from error
        truncated = True
    if not any(texts):
        raise ToolFailedError("the PDF has no text, only images; it needs a tool that sees them")
    pages = (f"[page {number}]\n{text}" for number, text in enumerate(texts, 1))
    text = _CONTROL.sub("", "\n\n".join(pages)).encode(errors="replace").decode()
    title = _CONTROL.sub("", title).encode(errors="replace").decode()
    return Page(fetched.url, title[:300], text[:MAX_TEXT], "pdf", truncated)


def _open_pdf(body: bytes) -> Any:
    pypdf: Any = importlib.import_module("pypdf")
    reader = pypdf.PdfReader(io.BytesIO(body), strict=False)
    if reader.is_encrypted and not reader.decrypt(""):
        raise ToolFailedError("the PDF needs a password; try another page")
    return reader


def _read_pdf_pages(reader: Any, texts: list[str], check_cancelled: CheckCancelled) -> bool:
    """Add the text of each page; return whether pages are left out because of a limit."""
    until = time.monotonic() + MAX_PDF_SECONDS
    size = 0
    for number, page in enumerate(reader.pages):
        check_cancelled()
        if number >= MAX_PDF_PAGES or size > MAX_TEXT or time.monotonic() > until:
            return True
        texts.append(page.extract_text().strip())
        size += len(texts[-1])
    return False
