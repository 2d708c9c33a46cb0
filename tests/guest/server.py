"""A host for tests: it serves tools over a socket, on a loop in a thread of its own.

Tests can read what the tools saw: how often each ran, what runs now, what was cancelled.
"""

from __future__ import annotations

import asyncio
import json
import queue
import socket
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Self

import msgspec

from keryx.aio.loops import LoopThread
from keryx.aio.scope import Scope
from keryx.rpc import Call, CallError, Handler, Listener

SECRET = "open sesame"
PATIENCE = 40.0  # only reached by a test that fails

Arguments = dict[str, Any]
TEXT = {"type": "string"}
NUMBER = {"type": "number"}
GRANTED = [
    ("echo", "Say it again.", {"tag": TEXT, "delay": NUMBER}, ["tag"]),
    ("meet", "Wait until so many are here.", {"tag": TEXT, "parties": {"type": "integer"}}, None),
    ("fail", "Fail.", {"message": TEXT, "kind": TEXT}, ["message"]),
    ("big", "A long text.", {"size": {"type": "integer"}}, ["size"]),
    ("measure", "How long a text is.", {"text": TEXT}, ["text"]),
    ("count", "How often it ran.", {"key": TEXT}, ["key"]),
    ("hang", "Never end.", {"key": TEXT}, ["key"]),
    ("began", "Wait until such a call hangs.", {"key": TEXT}, ["key"]),
    ("whatever", "Give it back.", {"value": {}, "timeout": NUMBER}, ["value"]),
    ("terminal", "Run a command.", {"command": TEXT, "timeout": NUMBER}, ["command"]),
]


def granted(*names: str) -> list[Arguments]:
    """The grant of these tools, or of all."""
    return [
        {
            "name": name,
            "description": description,
            "parameters": {"type": "object", "properties": properties, "required": required or []},
            "positional": list(properties),
        }
        for name, description, properties, required in GRANTED
        if not names or name in names
    ]


class Tools:
    """What the calls do, and what became of them."""

    def __init__(self) -> None:
        self.ran: Counter[str] = Counter()
        self.running = 0
        self.most_running = 0
        self.arrived: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.hung: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.released: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._hanging: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._rooms: defaultdict[int, list[asyncio.Future[None]]] = defaultdict(list)

    async def call(self, name: str, arguments: Arguments) -> bytes:
        tool: Callable[..., Awaitable[Any]] | None = getattr(self, f"_{name}", None)
        if tool is None or name not in {tool_name for tool_name, *_ in GRANTED}:
            raise CallError(f"there is no tool {name!r}", name="ToolFailedError")
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            value = await tool(**arguments)
        finally:
            self.running -= 1
        text = value if isinstance(value, str) else json.dumps(value)
        value = None if isinstance(value, str) else value
        return msgspec.json.encode({"text": text, "value": value, "outcome": "completed"})

    async def _echo(self, tag: str, delay: float = 0) -> Any:
        self.ran[tag] += 1
        if delay:
            await asyncio.sleep(delay)
        return {"tag": tag}

    async def _meet(self, tag: str, parties: int) -> Any:
        self.arrived.put(tag)
        room = self._rooms[parties]
        here: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        room.append(here)
        if len(room) == parties:
            for waiter in room:
                waiter.set_result(None)
            room.clear()
        await here
        return {"tag": tag}

    async def _fail(self, message: str, kind: str = "ToolFailedError") -> Any:
        raise CallError(message, name=kind)

    async def _big(self, size: int) -> Any:
        return "x" * size

    async def _measure(self, text: str) -> Any:
        return {"length": len(text)}

    async def _count(self, key: str) -> Any:
        self.ran[key] += 1
        return {"count": self.ran[key]}

    async def _hang(self, key: str) -> Any:
        self.ran[key] += 1
        self.hung.put(key)
        self._hanging[key].set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self.released.put(key)

    async def _began(self, key: str) -> Any:
        await self._hanging[key].wait()

    async def _whatever(self, **given: Any) -> Any:
        return {"given": given}

    async def _terminal(self, command: str, timeout: float = 60) -> Any:  # noqa: ASYNC109 (the tool's own)
        process = await asyncio.create_subprocess_shell(command, stdout=asyncio.subprocess.PIPE)
        output, _ = await asyncio.wait_for(process.communicate(), timeout)
        return {"output": output.decode(), "exit_code": process.returncode}


class Server:
    """Serves the tools at a path."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tools = Tools()
        self.connections = 0
        self._thread = LoopThread(name="keryx-guest-server")
        self._scope: Scope | None = None
        self._listener: Listener | None = None

    def __enter__(self) -> Self:
        self._thread.call(self._open)
        return self

    def __exit__(self, *exc: object) -> None:
        self.die()
        self._thread.close()

    def die(self) -> None:
        """Hang up on everybody."""
        self._thread.call(self._close)

    def wait_idle(self) -> None:
        """Return once no call runs and no client is connected."""
        self._thread.call(self._idle, timeout=PATIENCE)

    def connected(self) -> socket.socket:
        """Return a new connection to this server."""
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(self.path))
        return connection

    async def _open(self) -> None:
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(self.path))
        listening.listen(1024)
        self._scope = Scope("test server")
        self._listener = Listener(self._scope, self._handler)
        self._listener.listen(listening)

    async def _idle(self) -> None:
        assert self._listener is not None
        tables = self._listener._wires  # pyright: ignore[reportPrivateUsage] (only tests ask for it)
        while self.tools.running or tables:  # noqa: ASYNC110 (nothing tells when a table is empty)
            await asyncio.sleep(0.001)

    async def _close(self) -> None:
        if self._listener is not None and self._scope is not None:
            await self._listener.close()
            self._scope.close()
            self._listener = None

    def _handler(self) -> Handler:
        self.connections += 1
        greeted = False

        async def handle(call: Call) -> bytes:
            nonlocal greeted
            params: Arguments = msgspec.json.decode(call.params)
            if call.method == "hello":
                greeted = params["secret"] == SECRET
                if not greeted:
                    raise CallError("the secret is wrong")
                return b'{"version":1}'
            if not greeted:
                raise CallError("no greeting came")
            return await self.tools.call(params["tool"], params["arguments"])

        return handle
