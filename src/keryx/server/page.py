"""Serves the built page from memory: the path of a request never reaches the disk."""

from __future__ import annotations

import base64
import gzip
import hashlib
import mimetypes
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from pathlib import Path
from typing import Any, Final

import msgspec

from keryx.server.guards import FRAME_HEADERS, PAGE_HEADERS, Headers, page_headers

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

FOLDER: Final = Path(__file__).parent / "page"
INDEX: Final = "index.html"
DIAGRAMS: Final = "diagram.html"
"""The frame in which the page draws diagrams. It has a policy of its own."""
# A file name with the hash of its content, as bundlers write it: name-1a2b3c4d.js
_HASHED: Final = re.compile(r"[.-][A-Za-z0-9_-]{8,}\.[a-z0-9]+$")
# A script inside the document, which has no attributes.
_SCRIPT: Final = re.compile(rb"<script>(.*?)</script>", re.DOTALL)
_NOT_ACCEPTED: Final = re.compile(r"q=0(\.0*)?")
_FOREVER: Final = b"public, max-age=31536000, immutable"
_NOT_BUILT: Final = (
    b"The page of this Keryx is not built: `make setup` builds it.\n"
    b"The API works all the same; /api/openapi.json describes it.\n"
)


class Asset(msgspec.Struct):
    body: bytes
    media_type: str
    cached: bytes
    headers: Headers
    _packed: bytes | None = None

    @property
    def packed(self) -> bytes | None:
        """The compressed body; None if compression saves nothing.

        It is made at the first request, because most files of the page are rarely asked for.
        """
        if self._packed is None:
            packed = gzip.compress(self.body, compresslevel=6, mtime=0)
            self._packed = packed if len(packed) < len(self.body) else b""
        return self._packed or None


class Page:
    """All files of the page. Only `read` uses the disk."""

    def __init__(self, assets: Mapping[str, Asset]) -> None:
        self._assets = assets

    @classmethod
    def read(cls, folder: Path = FOLDER) -> Page:
        assets: dict[str, Asset] = {}
        for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
            if path.is_file() and not path.is_symlink():
                name = path.relative_to(folder).as_posix()
                assets[name] = _asset(path, name)
        return cls(assets)

    async def serve(self, method: str, path: str, send: Send, encodings: str = "") -> None:
        """Answer a request for the page; `encodings` is its Accept-Encoding header."""
        if method not in ("GET", "HEAD"):
            await _answer(send, 405, b"", [*PAGE_HEADERS, (b"allow", b"GET, HEAD")])
            return
        asset = self._assets.get(path.lstrip("/") or INDEX)
        if asset is None and INDEX in self._assets and "." not in path.rpartition("/")[2]:
            # The page has one address, because its files have relative addresses. The redirect is
            # relative too: a proxy may have added a prefix to the path.
            up = "../" * (path.count("/") - 1) or "./"
            await _answer(send, 307, b"", [*PAGE_HEADERS, (b"location", up.encode()), *_PLAIN])
            return
        if asset is None:
            body = b"There is no page at this address.\n" if INDEX in self._assets else _NOT_BUILT
            await _answer(send, 404, body if method == "GET" else b"", [*PAGE_HEADERS, *_PLAIN])
            return
        body = asset.body
        headers: Headers = [
            *asset.headers,
            (b"content-type", asset.media_type.encode()),
            (b"cache-control", asset.cached),
            (b"vary", b"accept-encoding"),
        ]
        if _accepts_gzip(encodings) and (packed := asset.packed) is not None:
            body = packed
            headers.append((b"content-encoding", b"gzip"))
        headers.append((b"content-length", str(len(body)).encode()))
        await _answer(send, 200, body if method == "GET" else b"", headers)


_PLAIN: Final[Headers] = [
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"cache-control", b"no-store"),
]


def _accepts_gzip(encodings: str) -> bool:
    for encoding in encodings.split(","):
        name, _, weight = encoding.partition(";")
        if name.strip().lower() == "gzip":
            return _NOT_ACCEPTED.fullmatch(weight.strip()) is None
    return False


def _asset(path: Path, name: str) -> Asset:
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    if kind.startswith("text/") or kind.endswith(("javascript", "json")):
        kind += "; charset=utf-8"
    cached = _FOREVER if _HASHED.search(path.name) else b"no-cache"
    body = path.read_bytes()
    return Asset(body, kind, cached, _headers(name, body))


def _headers(name: str, body: bytes) -> Headers:
    if name == DIAGRAMS:
        return FRAME_HEADERS
    if name != INDEX:
        return PAGE_HEADERS
    # The hash is of the script as it was built, so nothing that gets into the document later runs.
    return page_headers(_script_hash(script) for script in _SCRIPT.findall(body))


def _script_hash(script: bytes) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode()}"


async def _answer(send: Send, status: int, body: bytes, headers: Headers) -> None:
    start = {"type": "http.response.start", "status": status, "headers": headers}
    await send(start)
    await send({"type": "http.response.body", "body": body})
