"""A host that shares nothing with its guests but a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import msgspec

from keryx.aio.loops import LoopThread
from keryx.aio.scope import Scope
from keryx.rpc import Call, CallError
from keryx.rpc.file_transport import FileTransport
from tests.guest.server import SECRET, Tools

PARTS = ("req", "claimed", "rep", "tmp")


class Shared:
    """Serves the tools in a folder. Each call carries the secret: there is no greeting."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tools = Tools()
        self._thread = LoopThread(name="keryx-guest-folder")
        self._scope: Scope | None = None
        self._server: FileTransport | None = None

    def __enter__(self) -> Self:
        self._thread.call(self._open)
        return self

    def __exit__(self, *exc: object) -> None:
        self._thread.call(self._close)
        self._thread.close()

    def left(self) -> list[str]:
        """What is in the folder of calls that are over."""
        return left(self.folder)

    async def _open(self) -> None:
        self._scope = Scope("test folder")
        bridge = self._thread.bridge
        self._server = await FileTransport.open(self.folder, self._scope, bridge, self._handle)

    async def _close(self) -> None:
        assert self._server is not None
        assert self._scope is not None
        await self._server.close()
        self._scope.close()

    async def _handle(self, call: Call) -> bytes:
        params: dict[str, Any] = msgspec.json.decode(call.params)
        if call.method != "call" or params["secret"] != SECRET:
            raise CallError("the secret is wrong")
        return await self.tools.call(params["tool"], params["arguments"])


def left(folder: Path) -> list[str]:
    """Every file of the layout."""
    return [path.name for part in PARTS for path in (folder / part).iterdir()]
