"""The smallest guest of the file transport: what a caller does in the shared folder."""

from __future__ import annotations

import asyncio
import itertools
import os
import uuid
from collections.abc import Callable
from pathlib import Path

import msgspec

from keryx.rpc import CallError, PeerLostError


async def until(holds: Callable[[], bool]) -> None:
    """Return once that holds of something that tells nobody when it changes."""
    while not holds():  # noqa: ASYNC110 (a folder has no event to wait for)
        await asyncio.sleep(0.001)


class Fault(msgspec.Struct):
    code: int
    message: str
    data: str = ""


class Answer(msgspec.Struct):
    id: int | None
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: Fault | None = None


class FolderGuest:
    """Calls by files. It looks for its answers, as the transport demands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = itertools.count(1)
        self._open: set[str] = set()
        self._left = False
        self._looked = 0.0
        self._there: set[str] = set()
        self._served = True

    async def call(
        self, method: str, params: bytes, *, on_progress: Callable[[bytes], None] | None = None
    ) -> bytes:
        del on_progress  # there is none here
        name = self.send(method, params)
        self._open.add(name)
        try:
            return self.result(await self.answer(name))
        except (asyncio.CancelledError, PeerLostError):
            self.give_up(name)
            raise
        finally:
            self._open.discard(name)

    async def hang_up(self) -> None:
        self._left = True

    def send(self, method: str, params: bytes, name: str | None = None) -> str:
        number = next(self._numbers)
        if name is None:
            name = f"{uuid.uuid4().hex}-{os.getpid()}-{number}.json"
        packet = {"jsonrpc": "2.0", "id": number, "method": method, "params": msgspec.Raw(params)}
        self.put(name, msgspec.json.encode(packet))
        return name

    def put(self, name: str, data: bytes) -> None:
        """Whatever it is, as a call of that name."""
        tmp = self.folder / "tmp" / uuid.uuid4().hex
        with tmp.open("xb") as file:
            file.write(data)
        tmp.rename(self.folder / "req" / name)

    def give_up(self, name: str) -> None:
        """Take it back if nobody has claimed it; else say that nobody waits."""
        try:
            (self.folder / "req" / name).unlink()
        except FileNotFoundError:
            self.cancel(name)

    def cancel(self, name: str) -> None:
        (self.folder / "req" / f"{name}.cancel").touch()

    async def answer(self, name: str) -> bytes:
        while not self._is_there(name):
            if self._left:
                raise PeerLostError("this side left")
            if not self._served and not self._is_there(name):
                raise PeerLostError("the folder was closed: nobody serves it")
            # Many who wait look as often together as one alone.
            await asyncio.sleep(0.001 + len(self._open) * 0.00002)
        found = self.folder / "rep" / name
        data = found.read_bytes()
        found.unlink()
        return data

    def _is_there(self, name: str) -> bool:
        """One look serves all who wait here."""
        now = asyncio.get_running_loop().time()
        if now - self._looked > 0.0005:
            # In this order: a server answers before it goes.
            self._served = (self.folder / "server.json").exists()
            self._there = set(os.listdir(self.folder / "rep"))  # noqa: PTH208 (names are enough)
            self._looked = now
        return name in self._there

    @staticmethod
    def result(data: bytes) -> bytes:
        answer = msgspec.json.decode(data, type=Answer)
        if answer.error is not None:
            fault = answer.error
            raise CallError(fault.message, code=fault.code, name=fault.data)
        return bytes(answer.result)
