"""A minimal client of the file transport: what a caller does in the shared folder."""

from __future__ import annotations

import asyncio
import itertools
import os
import uuid
from collections.abc import Callable
from pathlib import Path

import msgspec

from keryx.rpc import CallError, PeerLostError

LOOK = 0.001


async def until(holds: Callable[[], bool]) -> None:
    """Poll until the condition holds; for conditions without an event."""
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


class FileClient:
    """Calls by files. It polls for its answers, as the transport requires."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = itertools.count(1)
        self._awaited: dict[str, asyncio.Future[None]] = {}
        self._looking: asyncio.TimerHandle | None = None
        self._closed = False

    async def call(
        self, method: str, params: bytes, *, on_progress: Callable[[bytes], None] | None = None
    ) -> bytes:
        del on_progress  # there is none here
        name = self.send(method, params)
        try:
            return self.result(await self.answer(name))
        except (asyncio.CancelledError, PeerLostError):
            self.give_up(name)
            raise

    async def hang_up(self) -> None:
        self._closed = True

    def send(self, method: str, params: bytes, name: str | None = None) -> str:
        number = next(self._numbers)
        if name is None:
            name = f"{uuid.uuid4().hex}-{os.getpid()}-{number}.json"
        packet = {"jsonrpc": "2.0", "id": number, "method": method, "params": msgspec.Raw(params)}
        self.put(name, msgspec.json.encode(packet))
        return name

    def put(self, name: str, data: bytes) -> None:
        """Whatever it is, as a call of that name."""
        temporary = self.folder / "tmp" / uuid.uuid4().hex
        with temporary.open("xb") as file:
            file.write(data)
        temporary.rename(self.folder / "req" / name)

    def give_up(self, name: str) -> None:
        """Withdraw the call if it is unclaimed; else cancel it."""
        try:
            (self.folder / "req" / name).unlink()
        except FileNotFoundError:
            self.cancel(name)

    def cancel(self, name: str) -> None:
        (self.folder / "req" / f"{name}.cancel").touch()

    async def answer(self, name: str) -> bytes:
        loop = asyncio.get_running_loop()
        self._awaited[name] = answered = loop.create_future()
        self._look()
        try:
            await answered
        finally:
            del self._awaited[name]
        path = self.folder / "rep" / name
        data = path.read_bytes()
        path.unlink()
        return data

    def _look(self) -> None:
        """Poll once for all waiting calls: if each call polled, they would take all of the loop's
        time, and the threads of a server in the same process would hardly get any."""
        if not self._awaited or self._looking is not None:
            return
        # In this order: a server answers before it ends.
        served = (self.folder / "server.json").exists()
        answers = set(os.listdir(self.folder / "rep"))  # noqa: PTH208 (names are enough)
        for name in answers & self._awaited.keys():
            self._settle(name)
        if self._closed or not served:
            why = "this side left" if self._closed else "the folder was closed: nobody serves it"
            for name in self._awaited.keys() - answers:
                self._settle(name, PeerLostError(why))
        self._looking = asyncio.get_running_loop().call_later(LOOK, self._look_again)

    def _settle(self, name: str, error: PeerLostError | None = None) -> None:
        answered = self._awaited[name]
        if not answered.done():
            if error is None:
                answered.set_result(None)
            else:
                answered.set_exception(error)

    def _look_again(self) -> None:
        self._looking = None
        self._look()

    @staticmethod
    def result(data: bytes) -> bytes:
        answer = msgspec.json.decode(data, type=Answer)
        if answer.error is not None:
            fault = answer.error
            raise CallError(fault.message, code=fault.code, name=fault.data)
        return bytes(answer.result)
