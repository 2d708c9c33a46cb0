"""The draft of a chat that has no session yet, in a file of its own: it survives a kill.

Each chat holds a lock on its file while it lives. The next chat takes the drafts of all files that
nobody holds any more.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from keryx.decoding import json_decoder

FOLDER: Final = "chat_drafts"
LARGEST: Final = 1_000_000
"""Bytes; a larger file is begun anew. Its last complete line is the draft."""


class UnsentDraft:
    """Stores one draft. An error of the disk never ends the chat."""

    def __init__(self) -> None:
        self._descriptor: int | None = None
        self._file: Path | None = None
        self._text = ""

    def open(self, home: Path) -> list[str]:
        """Begin to store; return the drafts of chats that were killed, the oldest first."""
        folder = home / FOLDER
        with suppress(OSError):
            folder.mkdir(mode=0o700, exist_ok=True)
            drafts = _abandoned(folder)
            self._file = folder / f"{os.getpid()}-{secrets.token_hex(4)}"
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
            self._descriptor = os.open(self._file, flags, 0o600)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            return drafts
        return []

    def write(self, text: str) -> None:
        if self._descriptor is None or text == self._text:
            return
        self._text = text
        with suppress(OSError):
            if os.fstat(self._descriptor).st_size > LARGEST:
                os.ftruncate(self._descriptor, 0)
            os.write(self._descriptor, msgspec.json.encode(text) + b"\n")

    def close(self) -> None:
        """Remove the file: the draft is stored elsewhere by now."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None or self._file is None:
            return
        with suppress(OSError):
            self._file.unlink()
        os.close(descriptor)


def _abandoned(folder: Path) -> list[str]:
    """Take the drafts that no living chat holds, and remove their files."""
    drafts: list[tuple[float, str]] = []
    for file in folder.iterdir():
        try:
            descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            state = os.fstat(descriptor)
            if state.st_nlink:  # otherwise another chat has just taken it
                file.unlink()
                text = _last_line(os.read(descriptor, 2 * LARGEST + state.st_size))
                drafts.append((state.st_mtime, text))
        except OSError:
            continue  # a living chat holds it
        finally:
            os.close(descriptor)
    return [text for _, text in sorted(drafts) if text.strip()]


def _last_line(data: bytes) -> str:
    for line in reversed(data.splitlines()):
        with suppress(msgspec.DecodeError):
            return json_decoder(str).decode(line)
    return ""
