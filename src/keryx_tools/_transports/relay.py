"""Serves a Unix socket in place of a pair of descriptors, for this process and all that it starts.

Only one process can use descriptors that lead to the host (stdin and stdout, for example). It reads
and writes them here, in threads, and listens on a socket in a private folder: each connection there
is served as by the host, and its calls get new ids that are unique on the descriptors.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import hmac
import os
import re
import select
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable
from typing import Any, cast

from keryx_tools._errors import unsent_error
from keryx_tools._transports import packets
from keryx_tools._transports.descriptors import CLOSED, OwnedDescriptor
from keryx_tools._transports.forks import ForkAware, point_at_null
from keryx_tools._transports.host_writer import HostWriter

# How long the host may take to answer the greeting.
GREETING = 30.0
CHUNK = 256 * 1024
# The path of a Unix socket has room for about a hundred bytes.
LONGEST_PATH = 100
STDIN, STDOUT, STDERR = 0, 1, 2
FOLDER = "KERYX_TOOLS_FOLDER"

# Both sides put the id first, so the id of a packet is replaced without decoding the packet.
_CALL = re.compile(rb'\{"jsonrpc":"2\.0","id":(\d+),"method":"call",')
_ANSWER = re.compile(rb'\{"jsonrpc":"2\.0","id":(\d+),"(?:result|error)":')
_HEAD = b'{"jsonrpc":"2.0","id":%d'


def start_relay(descriptors: str, secret: str, tool: str) -> str:
    """Take over the descriptors, and return the path of the socket that replaces them."""
    try:
        incoming, outgoing = (int(number) for number in descriptors.split(","))
        copies = _take_over(incoming, outgoing)
    except (ValueError, OSError):
        raise unsent_error(
            tool,
            f"the descriptors {descriptors} are open only in the process that the host started; "
            "import keryx_tools there before you start others",
        ) from None
    relay = Relay(copies, secret)
    try:
        relay.greet()
        return relay.start()
    except (OSError, packets.PacketError) as error:
        relay.close()
        raise unsent_error(tool, error) from None


def _take_over(incoming: int, outgoing: int) -> tuple[int, int]:
    copies = os.dup(incoming), os.dup(outgoing)
    for descriptor in {incoming, outgoing}:
        if descriptor == STDIN:
            point_at_null(STDIN)
            os.set_inheritable(STDIN, True)
        elif descriptor == STDOUT:
            os.dup2(STDERR, STDOUT)
        else:
            os.close(descriptor)
    return copies


class Relay(ForkAware):
    """Connects the descriptors and the local connections. All but `_read` runs on its own loop."""

    def __init__(self, descriptors: tuple[int, int], secret: str) -> None:
        super().__init__()
        self._incoming, self._outgoing = map(OwnedDescriptor, descriptors)
        self._writer = HostWriter(self._outgoing)
        self._secret = secret
        self._frames = packets.Assembler()
        self._last = 0
        self._calls: dict[int, tuple[_LocalConnection, int]] = {}
        self._goodbye = ""
        self._connections: dict[_LocalConnection, None] = {}
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(self._on_error)
        wakeup = getattr(self._loop, "_csock", None)
        self._wakeup = None if wakeup is None else OwnedDescriptor(wakeup.fileno())
        self._socket: socket.socket | None = None
        self._server: asyncio.AbstractServer | None = None
        self._folder = ""

    def greet(self) -> None:
        """Send the secret to the host, and wait for its answer."""
        self._last += 1
        self._writer.send(packets.call(self._last, b"hello", packets.hello_params(self._secret)))
        poll = select.poll()
        poll.register(self._incoming.number, select.POLLIN)
        while True:
            if not poll.poll(GREETING * 1000):
                raise packets.PacketError("it did not answer our greeting")
            data = os.read(self._incoming.number, CHUNK)
            if not data:
                raise packets.PacketError("it hung up on our greeting")
            for frame in self._frames.feed(data):
                answer = packets.decode(frame)
                if "error" in answer:
                    raise packets.PacketError(f"it refused us: {answer['error'].get('message')}")
                return

    def start(self) -> str:
        """Listen, and return the path of the socket."""
        # In the run's own folder, if it has one: it is removed also if this process is killed.
        self._folder = tempfile.mkdtemp(prefix="keryx-tools-", dir=os.environ.get(FOLDER))
        if len(self._folder) > LONGEST_PATH:
            os.rmdir(self._folder)
            self._folder = tempfile.mkdtemp(prefix="keryx-tools-", dir="/tmp")
        atexit.register(self._remove_folder)
        path = os.path.join(self._folder, "s")
        self._socket = socket.socket(socket.AF_UNIX)
        self.descriptor = OwnedDescriptor(self._socket.fileno())
        self._socket.bind(path)
        self._socket.listen(1024)
        for work in (self._serve, self._read):
            threading.Thread(target=work, name="keryx-relay", daemon=True).start()
        return path

    def close(self) -> None:
        self._remove_folder()
        self._loop.close()
        self._incoming.close()
        self._outgoing.close()

    def close_in_child(self) -> None:
        connections = (connection.descriptor for connection in self._connections)
        for descriptor in (self._incoming, self._outgoing, self.descriptor, *connections):
            with contextlib.suppress(OSError):
                if descriptor is not None and descriptor.is_ours:
                    point_at_null(descriptor.number)

    def _remove_folder(self) -> None:
        if self._folder and self.pid == os.getpid():
            shutil.rmtree(self._folder, ignore_errors=True)

    # -- threads

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.create_unix_server(lambda: _LocalConnection(self), sock=self._socket)
        with contextlib.suppress(OSError):  # the script has closed the descriptors of the loop
            self._server = self._loop.run_until_complete(server)
            self._loop.run_forever()

    def _read(self) -> None:
        frames = self._frames
        with contextlib.suppress(OSError, packets.PacketError, RuntimeError):
            while self._incoming.is_ours:
                data = os.read(self._incoming.number, CHUNK)
                if not data:
                    break
                for frame in frames.feed(data):
                    self._call_on_loop(self._deliver, frame)
        with contextlib.suppress(RuntimeError):
            self._call_on_loop(self._host_closed)

    def _call_on_loop(self, work: Callable[..., object], *args: Any) -> None:
        # Waking the loop writes to a descriptor of it, which the script may have closed.
        if self._wakeup is None or self._wakeup.is_ours:
            self._loop.call_soon_threadsafe(work, *args)

    def _on_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        # If the script has closed our descriptors, it has closed those of the loop too.
        is_ours = self._incoming.is_ours
        loop.default_exception_handler(context) if is_ours else loop.stop()

    # -- from the host

    def _deliver(self, frame: bytes) -> None:
        match = _ANSWER.match(frame)
        if match is not None:
            number = int(match.group(1))
            connection, id_ = self._calls.pop(number, (None, 0))
            if connection is not None:
                connection.calls.pop(id_, None)
                connection.send(_HEAD % id_ + frame[match.end(1) :])
            with contextlib.suppress(OSError):  # the reader will see that the host has closed
                self._writer.answered(number)
            return
        packet = packets.decode(frame)
        if packet.get("method") == "progress":
            connection, id_ = self._calls.get(packet["params"]["id"], (None, 0))
            if connection is not None:
                packet["params"]["id"] = id_
                connection.send(packets.encode(packet))
        elif "error" in packet:
            self._goodbye = frame.decode()

    def _host_closed(self) -> None:
        self._remove_folder()
        if not self._incoming.is_ours:
            self._goodbye = packets.goodbye(CLOSED)
        for connection in list(self._connections):
            connection.hang_up(self._goodbye)
        if self._server is not None:
            self._server.close()

    # -- from the connections here

    def add(self, connection: _LocalConnection) -> None:
        self._connections[connection] = None

    def remove(self, connection: _LocalConnection) -> None:
        self._connections.pop(connection, None)
        for number in connection.calls.values():
            self._give_up(number)

    def handle_frame(self, connection: _LocalConnection, frame: bytes) -> None:
        match = _CALL.match(frame)
        if match is not None and connection.is_authenticated:
            self._last += 1
            id_ = int(match.group(1))
            self._calls[self._last] = (connection, id_)
            connection.calls[id_] = self._last
            self._writer.call(self._last, _HEAD % self._last + frame[match.end(1) :])
            return
        packet = packets.decode(frame)
        params: dict[str, Any] = packet.get("params") or {}
        if packet.get("method") == "hello":
            connection.answer_hello(packet.get("id"), self._is_secret(params))
        elif packet.get("method") == "cancel":
            number = connection.calls.pop(cast("int", params.get("id")), 0)
            if number:
                self._give_up(number)
        else:
            raise packets.PacketError("it sent neither a call nor a greeting")

    def _is_secret(self, params: dict[str, Any]) -> bool:
        secret = str(params.get("secret"))
        return hmac.compare_digest(secret.encode(), self._secret.encode())

    def _give_up(self, number: int) -> None:
        if self._calls.pop(number, None) is not None:
            self._writer.give_up(number)


class _LocalConnection(asyncio.Protocol):
    """A connection of this process, or of one that it started."""

    def __init__(self, relay: Relay) -> None:
        self.is_authenticated = False
        self.descriptor: OwnedDescriptor | None = None
        self.calls: dict[int, int] = {}
        self._relay = relay
        self._frames = packets.Assembler()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self.descriptor = OwnedDescriptor(self._transport.get_extra_info("socket").fileno())
        self._relay.add(self)

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._frames.feed(data):
                self._relay.handle_frame(self, frame)
        except (packets.PacketError, OSError):
            self.hang_up()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        with contextlib.suppress(OSError):
            self._relay.remove(self)

    def answer_hello(self, id_: object, accepted: bool) -> None:
        self.is_authenticated = accepted
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": id_}
        if accepted:
            answer["result"] = {"version": packets.VERSION}
        else:
            answer["error"] = {"code": -32000, "message": "the secret is wrong"}
        self.send(packets.encode(answer))
        if not accepted and self._transport is not None:
            self._transport.close()

    def send(self, packet: bytes) -> None:
        if self._transport is not None:
            self._transport.write(packets.frame(packet))

    def hang_up(self, goodbye: str = "") -> None:
        """Close the connection; a goodbye of the host is passed on."""
        if self._transport is not None and goodbye:
            self.send(goodbye.encode())
            self._transport.close()
        elif self._transport is not None:
            self._transport.abort()
