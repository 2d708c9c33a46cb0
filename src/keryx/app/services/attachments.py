"""Attachments: uploads wait in the home for a message, and are copied to the session's folder."""

from __future__ import annotations

import os
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from keryx.aio.bridge import Bridge
from keryx.messages import File, Image
from keryx.ports.files import file_name
from keryx.ports.store import Store, blob_hash

UPLOADS: Final = "uploads"
UPLOAD_LIFETIME: Final = 7 * 24 * 3600.0
"""Seconds after which an upload that no message names is removed."""
MAX_IMAGE_BYTES: Final = 64 * 1024 * 1024
"""The size of the cache; what is encoded for a model is cached elsewhere."""


class Images:
    """A cache of images and documents in memory: models need them in synchronous code."""

    def __init__(self) -> None:
        self._images: OrderedDict[str, bytes] = OrderedDict()
        self._size = 0

    def __contains__(self, hash_: str) -> bool:
        return hash_ in self._images

    def keep(self, hash_: str, data: bytes) -> None:
        if hash_ not in self._images:
            self._images[hash_] = data
            self._size += len(data)
        while self._size > MAX_IMAGE_BYTES and len(self._images) > 1:
            self._size -= len(self._images.popitem(last=False)[1])

    def load(self, hash_: str) -> bytes:
        """Return an image; `LookupError` if it is not in the cache."""
        return self._images[hash_]


class Uploads:
    """The files that were uploaded to a home and are in no message yet."""

    def __init__(self, home: Path, bridge: Bridge) -> None:
        self._folder = home / UPLOADS
        self._bridge = bridge

    async def keep(self, data: bytes) -> str:
        """Store an upload; durable once this returns. Return its name, the hash of the content."""
        name = blob_hash(data)
        await self._bridge.to_thread(self._write, self._folder / name, data)
        return name

    async def read(self, name: str) -> bytes | None:
        return await self._bridge.to_thread(_read, self._folder / Path(name).name)

    async def sweep(self) -> None:
        """Remove old uploads that are in no message."""
        await self._bridge.to_thread(self._sweep)

    @staticmethod
    def _write(path: Path, data: bytes) -> None:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        _write_atomically(path, data)

    def _sweep(self) -> None:
        if not self._folder.is_dir():
            return
        oldest = time.time() - UPLOAD_LIFETIME
        for path in self._folder.iterdir():
            if path.stat().st_mtime < oldest:
                path.unlink(missing_ok=True)


class HostAttachments:
    """The attachments of the sessions of this host."""

    def __init__(
        self,
        store: Store,
        bridge: Bridge,
        uploads: Uploads,
        images: Images,
        folder: Callable[[str], Path],
    ) -> None:
        """`folder` returns the folder for a session's attachments; called in a thread."""
        self._store = store
        self._bridge = bridge
        self._uploads = uploads
        self._images = images
        self._folder = folder

    async def uploaded(self, hash_: str) -> bytes | None:
        return await self._uploads.read(hash_)

    async def prepare(self, session_id: str, parts: Sequence[Image | File]) -> None:
        for part in parts:
            data = await self._store.blob(part.blob)
            if data is None:
                continue  # the session is being deleted
            if _is_readable(part):
                self._images.keep(part.blob, data)
            await self._bridge.to_thread(self._copy, session_id, file_name(part), data)

    async def load(self, parts: Sequence[Image | File]) -> None:
        for part in parts:
            if _is_readable(part) and part.blob not in self._images:
                data = await self._store.blob(part.blob)
                if data is not None:  # else the session is being deleted
                    self._images.keep(part.blob, data)

    def _copy(self, session_id: str, name: str, data: bytes) -> None:
        folder = self._folder(session_id)
        if not (folder / name).exists():
            _write_atomically(folder / name, data)


def _is_readable(part: Image | File) -> bool:
    """Return whether some model can read this itself; tools read all other files."""
    return isinstance(part, Image) or part.media_type == "application/pdf"


def _write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that readers see all of it or nothing."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
