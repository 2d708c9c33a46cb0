"""Files that pages download: saved under safe names in one folder, and reported once."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from typing import Any

from playwright.async_api import Download, Error

MOST = 50
"""Downloads of one browser: a page can start them without being asked."""
LONGEST_NAME = 100
_UNSAFE = re.compile(r"[^\w.\- ]+")
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def safe_name(name: str, number: int = 1) -> str:
    """Return a name that is safe in any shell; from the second attempt on with a number."""
    name = _UNSAFE.sub("_", os.path.basename(name)).strip(" .-") or "download"  # noqa: PTH119 (a text)
    stem, dot, ending = name[-LONGEST_NAME:].rpartition(".")
    if number == 1:
        return name[-LONGEST_NAME:].lstrip(" .-") or "download"
    return f"{stem}-{number}.{ending}" if dot else f"{ending}-{number}"


class Downloads:
    """Saves what pages download."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._count = 0
        self._saving: set[asyncio.Task[None]] = set()
        self._report: list[dict[str, Any]] = []
        self.started = asyncio.Event()

    def take(self, download: Download) -> None:
        """Save it in the background."""
        self._count += 1
        self.started.set()
        saving = asyncio.ensure_future(self._save(download))  # noqa: TID251 (this process has no scopes)
        self._saving.add(saving)
        saving.add_done_callback(self._saving.discard)

    async def report(self, seconds: float) -> list[dict[str, Any]]:
        """Return the downloads that ended since the last report; wait a moment for the others."""
        if self._saving:
            await asyncio.wait(self._saving, timeout=seconds)
        report, self._report = self._report, []
        return [*report, *({"running": True} for _ in self._saving)]

    async def _save(self, download: Download) -> None:
        entry: dict[str, Any] = {"url": download.url[:500], "name": download.suggested_filename}
        try:
            if self._count > MOST:
                await download.cancel()
                entry["error"] = f"a browser saves at most {MOST} files; close it and open it again"
            else:
                path = await download.path()
                entry.update(
                    await asyncio.get_running_loop().run_in_executor(
                        None, self._copy, path, download.suggested_filename
                    )
                )
                await download.delete()
        except (Error, OSError) as error:
            entry["error"] = str(error).splitlines()[0]
        self._report.append(entry)

    def _copy(self, source: Any, name: str) -> dict[str, Any]:
        """Copy the file to a free name. The folder must not be a link that leads elsewhere."""
        os.makedirs(self._folder, exist_ok=True)  # noqa: PTH103 (a text)
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            free_name, fd = _create(folder, name)
        finally:
            os.close(folder)
        with os.fdopen(fd, "wb") as file, open(source, "rb") as data:  # noqa: PTH123 (a text)
            shutil.copyfileobj(data, file)
            size = file.tell()
        return {"path": os.path.join(self._folder, free_name), "size": size}  # noqa: PTH118 (a text)


def _create(folder: int, name: str) -> tuple[str, int]:
    """Create a file under the first free name; return the name and its descriptor."""
    number = 1
    while True:
        free_name = safe_name(name, number)
        try:
            return free_name, os.open(free_name, _FLAGS, 0o666, dir_fd=folder)
        except FileExistsError:
            number += 1
