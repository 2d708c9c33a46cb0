"""Serves the built page from memory: the path of a request never reaches the disk."""

from __future__ import annotations

import gzip
import mimetypes
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from pathlib import Path
from typing import Any, Final

import msgspec

from keryx.server.guards import PAGE_HEADERS, Headers

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

FOLDER: Final = Path(__file__).parent / "page"
INDEX: Final = "index.html"
# A file name with the hash of its content, as bundlers write it: name-1a2b3c4d.js
_HASHED: Final = re.compile(r"[.-][A-Za-z0-9_-]{8,}\.[a-z0-9]+$")
_NOT_ACCEPTED: Final = re.compile(r"q=0(\.0*)?")
_FOREVER: Final = b"public, max-age=31536000, immutable"
_NOT_BUILT: Final = (
    b"The page of this Keryx is not built: `make setup` builds it.\n"
    b"The API works all the same; /api/openapi.json describes it.\n"
)


class Asset(msgspec.Struct, frozen=True):
    body: bytes
    packed: bytes | None
    """The compressed body; None if compression saves nothing."""
    media_type: str
    cached: bytes


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
                assets[name] = _asset(path)
        return cls(assets)

    async def serve(self, method: str, path: str, send: Send, encodings: str = "") -> None:
        """Answer a request for the page; `encodings` is its Accept-Encoding header."""
        if method not in ("GET", "HEAD"):
            await _answer(send, 405, b"", [(b"allow", b"GET, HEAD")])
            return
        asset = self._assets.get(path.lstrip("/") or INDEX)
        if asset is None and INDEX in self._assets and "." not in path.rpartition("/")[2]:
            # The page has one address, because its files have relative addresses. The redirect is
            # relative too: a proxy may have added a prefix to the path.
            up = "../" * (path.count("/") - 1) or "./"
            await _answer(send, 307, b"", [(b"location", up.encode()), *_PLAIN])
            return
        if asset is None:
            body = b"There is no page at this address.\n" if INDEX in self._assets else _NOT_BUILT
            await _answer(send, 404, body if method == "GET" else b"", _PLAIN)
            return
        body = asset.body
        headers: Headers = [
            (b"content-type", asset.media_type.encode()),
            (b"cache-control", asset.cached),
            (b"vary", b"accept-encoding"),
        ]
        if asset.packed is not None and _accepts_gzip(encodings):
            body = asset.packed
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


def _asset(path: Path) -> Asset:
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    if kind.startswith("text/") or kind.endswith(("javascript", "json")):
        kind += "; charset=utf-8"
    body = path.read_bytes()
    packed = gzip.compress(body, mtime=0)
    return Asset(
        body,
        packed if len(packed) < len(body) else None,
        kind,
        _FOREVER if _HASHED.search(path.name) else b"no-cache",
    )


async def _answer(send: Send, status: int, body: bytes, headers: Headers) -> None:
    start = {"type": "http.response.start", "status": status, "headers": [*PAGE_HEADERS, *headers]}
    await send(start)
    await send({"type": "http.response.body", "body": body})
