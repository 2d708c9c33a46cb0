"""The messages that a person sent or gave up, in a file of the home: Up and Ctrl+R show them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path
from typing import Final

import msgspec
from prompt_toolkit.history import History

from keryx.decoding import json_decoder

FILE: Final = "chat_history"
MOST: Final = 1_000
LARGEST: Final = 2_000_000
"""Bytes; a larger file is cut to its newest entries."""


class DraftHistory(History):
    """Reads its file when the home is known; entries before that are written then."""

    def __init__(self) -> None:
        super().__init__()
        self._file: Path | None = None
        self._is_known = asyncio.Event()
        self.unwritten: list[str] = []

    def open(self, home: Path) -> None:
        self._file = home / FILE
        self._is_known.set()
        unwritten, self.unwritten = self.unwritten, []
        for text in unwritten:
            self.store_string(text)

    async def load(self) -> AsyncGenerator[str]:
        early = list(reversed(self.unwritten))
        for text in early:
            yield text
        await self._is_known.wait()
        skipped = len(early)  # they are in the file by now
        async for text in super().load():
            if skipped > 0:
                skipped -= 1
            else:
                yield text

    def load_history_strings(self) -> Iterable[str]:
        if self._file is None:
            return []
        decoder = json_decoder(str)
        try:
            lines = self._file.read_bytes().splitlines()
        except OSError:
            return []
        texts: list[str] = []
        for line in lines[-MOST:]:
            try:
                texts.append(decoder.decode(line))
            except msgspec.DecodeError:
                continue  # a line that a crash cut off
        if sum(map(len, lines)) > LARGEST:
            self._write(os.O_TRUNC, texts)
        return reversed(texts)

    def store_string(self, string: str) -> None:
        if self._file is None:
            self.unwritten.append(string)
        else:
            self._write(os.O_APPEND, [string])

    def _write(self, flag: int, texts: Iterable[str]) -> None:
        assert self._file is not None
        data = b"".join(msgspec.json.encode(text) + b"\n" for text in texts)
        try:
            descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | flag, 0o600)
        except OSError:
            return  # a full disk must not end the chat
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
