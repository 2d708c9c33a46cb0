"""Files that go with an answer: those that it links to, and those that tools for media made.

Only files of the session's workspace are sent. Their content is stored first, so that a repeated
send has the same content.
"""

from __future__ import annotations

import mimetypes
import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from keryx.app.host_client import HostClient
from keryx.errors import KeryxError
from keryx.gateway.formatting.markdown import links_in
from keryx.ports.platform import OutgoingFile

LARGEST: Final = 50 * 1024 * 1024
"""Bytes: what Telegram takes from a bot."""
MOST: Final = 10


class AttachedFiles:
    """Finds and stores the files of answers."""

    def __init__(self, host_client: HostClient) -> None:
        self._host_client = host_client

    async def of_turn(
        self, session_id: str, markdown: str, new_files: Iterable[tuple[str, str]]
    ) -> list[OutgoingFile]:
        try:
            workspace = (await self._host_client.view(session_id)).settings.workspace
        except KeryxError:  # the session was deleted
            return []
        candidates = [(place or workspace, path) for place, path in new_files]
        candidates += [(workspace, unquote(link)) for link in links_in(markdown)]
        files: list[OutgoingFile] = []
        for folder, path in dict.fromkeys(candidates):
            data = await self._host_client.to_thread(partial(_read, folder, path))
            if data is not None and len(files) < MOST:
                blob = await self._host_client.keep_upload(data)
                media_type = mimetypes.guess_type(path)[0] or "application/octet-stream"
                files.append(OutgoingFile(blob, Path(path).name, media_type))
        return list(dict.fromkeys(files))


def _read(workspace: str, path: str) -> bytes | None:
    """Return the content of a file of the workspace; None if it is none, or too large."""
    if "://" in path or path.startswith(("#", "mailto:")) or "\0" in path:
        return None
    root = os.path.realpath(workspace)
    target = os.path.realpath(Path(root) / path)
    if not target.startswith(root + os.sep) or not os.path.isfile(target):  # noqa: PTH113 (a text)
        return None
    try:
        if os.path.getsize(target) > LARGEST:  # noqa: PTH202 (a text)
            return None
        return Path(target).read_bytes()
    except OSError:
        return None
