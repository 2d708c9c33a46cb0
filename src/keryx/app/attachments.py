"""Attachments on this machine: uploads wait in the home, and lie in each session's own folder."""

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
KEPT: Final = 7 * 24 * 3600.0
"""Seconds that an upload waits for a message that names it."""
MOST_IMAGES: Final = 64 * 1024 * 1024
"""Bytes of images at hand; encoded for a model they are kept elsewhere."""


class Images:
    """Images at hand for models, which ask for them in the middle of synchronous work."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._size = 0

    def __contains__(self, hash_: str) -> bool:
        return hash_ in self._kept

    def keep(self, hash_: str, data: bytes) -> None:
        if hash_ not in self._kept:
            self._kept[hash_] = data
            self._size += len(data)
        while self._size > MOST_IMAGES and len(self._kept) > 1:
            self._size -= len(self._kept.popitem(last=False)[1])

    def load(self, hash_: str) -> bytes:
        """`LookupError` if it is not at hand."""
        return self._kept[hash_]


class Uploads:
    """What was uploaded to a home and is in no message yet."""

    def __init__(self, home: Path, bridge: Bridge) -> None:
        self._folder = home / UPLOADS
        self._bridge = bridge

    async def keep(self, data: bytes) -> str:
        """Durable once this returns; the name is the hash of the content."""
        name = blob_hash(data)
        await self._bridge.to_thread(self._write, self._folder / name, data)
        return name

    async def read(self, name: str) -> bytes | None:
        return await self._bridge.to_thread(_read, self._folder / Path(name).name)

    async def sweep(self) -> None:
        """Remove what nobody sent for long."""
        await self._bridge.to_thread(self._sweep)

    @staticmethod
    def _write(path: Path, data: bytes) -> None:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        _place(path, data)

    def _sweep(self) -> None:
        if not self._folder.is_dir():
            return
        before = time.time() - KEPT
        for path in self._folder.iterdir():
            if path.stat().st_mtime < before:
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
        """`folder` makes the one for a session's attachments, in a thread."""
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
                continue  # the session that named it is being deleted
            if isinstance(part, Image):
                self._images.keep(part.blob, data)
            await self._bridge.to_thread(self._lay, session_id, file_name(part), data)

    def _lay(self, session_id: str, name: str, data: bytes) -> None:
        folder = self._folder(session_id)
        if not (folder / name).exists():
            _place(folder / name, data)


def _place(path: Path, data: bytes) -> None:
    """All of it or nothing, whoever looks meanwhile."""
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
