"""Files that go with an answer: those that it links to, and those that tools for media made.

Only files of the session's workspace are sent; the answer names what is not, and why. Their content
is stored first, so that a repeated send has the same content.
"""

from __future__ import annotations

import mimetypes
import os
import re
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import msgspec

from keryx.app.host_client import HostClient
from keryx.errors import KeryxError
from keryx.gateway.formatting.markdown import links_in
from keryx.ports.platform import OutgoingFile

LARGEST: Final = 50 * 1024 * 1024
"""Bytes: what Telegram takes from a bot."""
MOST: Final = 10


# Names in the line about what is not sent, and characters of each.
MOST_NAMES: Final = 10
LONGEST_NAME: Final = 80
MISSING: Final = "there is no such file in the workspace"
TOO_MANY: Final = f"an answer has {MOST} files at most"
TOO_LARGE: Final = f"larger than {LARGEST // 1024 // 1024} MB"
_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//|[#?]")


class AnswerFiles(msgspec.Struct, frozen=True):
    """The files of an answer, and a line that names those which are not sent, and why."""

    files: list[OutgoingFile]
    not_sent: str = ""


class AttachedFiles:
    """Finds and stores the files of answers."""

    def __init__(self, host_client: HostClient) -> None:
        self._host_client = host_client

    async def of_turn(
        self, session_id: str, markdown: str, new_files: Iterable[tuple[str, str]]
    ) -> AnswerFiles:
        try:
            workspace = (await self._host_client.view(session_id)).settings.workspace
        except KeryxError:  # the session was deleted
            return AnswerFiles([])
        candidates = [(place or workspace, path) for place, path in new_files]
        candidates += [(workspace, unquote(link)) for link in links_in(markdown)]
        files: dict[str, OutgoingFile] = {}
        not_sent: dict[str, str] = {}
        for folder, path in dict.fromkeys(candidates):
            target = await self._host_client.to_thread(partial(_find, folder, path))
            if target is None:
                if _ADDRESS.match(path) is None:
                    not_sent[path] = MISSING
            elif target not in files:
                file = TOO_MANY
                if len(files) < MOST:
                    file = await self._store(target)
                if isinstance(file, str):
                    not_sent[path] = file
                else:
                    files[target] = file
        return AnswerFiles(list(dict.fromkeys(files.values())), _line(not_sent))

    async def _store(self, target: str) -> OutgoingFile | str:
        """Store the content of a file, or return why it is not sent."""
        data = await self._host_client.to_thread(partial(_read, target))
        if isinstance(data, str):
            return data
        blob = await self._host_client.keep_upload(data)
        media_type = mimetypes.guess_type(target)[0] or "application/octet-stream"
        return OutgoingFile(blob, Path(target).name, media_type)


def _find(workspace: str, path: str) -> str | None:
    """Return the real path of a file of the workspace; None: there is no such file."""
    root = os.path.realpath(workspace)
    # A link may name a place in a file.
    for name in dict.fromkeys((path, path.partition("#")[0])):
        if "\0" in name:
            continue
        target = os.path.realpath(Path(root) / name)
        if target.startswith(root + os.sep) and os.path.isfile(target):  # noqa: PTH113 (a text)
            return target
    return None


def _read(target: str) -> bytes | str:
    """Return the content of a file, or why it is not sent."""
    try:
        if os.path.getsize(target) > LARGEST:  # noqa: PTH202 (a text)
            return TOO_LARGE
        return Path(target).read_bytes()
    except OSError as error:
        return f"it cannot be read: {error.strerror}"


def _line(not_sent: Mapping[str, str]) -> str:
    """Return a line that names files, grouped by why they are not sent."""
    names: dict[str, list[str]] = {}
    for path, why in not_sent.items():
        name = "".join(letter if letter.isprintable() else "?" for letter in path)
        names.setdefault(why, []).append(name[:LONGEST_NAME])
    groups = [
        ", ".join(group[:MOST_NAMES])
        + (f" and {len(group) - MOST_NAMES} more" if len(group) > MOST_NAMES else "")
        + f" ({why})"
        for why, group in names.items()
    ]
    return f"Not sent: {'; '.join(groups)}." if groups else ""
