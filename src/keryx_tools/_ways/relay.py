"""Makes a Unix socket of a pair of descriptors, for this process and all that it starts.

Descriptors that lead to the host (stdin and stdout, say) belong to one process. It reads and writes
them here, in threads of their own, and listens on a socket in a private folder: each connection
there is served as the host would, its calls carried under ids that are unique on the descriptors.
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

from keryx_tools._errors import unsent
from keryx_tools._ways import packets
from keryx_tools._ways.descriptors import CLOSED, Held
from keryx_tools._ways.forks import Inherited, blank
from keryx_tools._ways.uplink import Uplink

# How long the host may take to answer the first word.
GREETING = 30.0
CHUNK = 256 * 1024
# The name of a Unix socket has room for about a hundred bytes.
LONGEST_PATH = 100
STDIN, STDOUT, STDERR = 0, 1, 2
FOLDER = "KERYX_TOOLS_FOLDER"

# Both sides put the id first, so a packet of any size is readdressed without being read.
_CALL = re.compile(rb'\{"jsonrpc":"2\.0","id":(\d+),"method":"call",')
_ANSWER = re.compile(rb'\{"jsonrpc":"2\.0","id":(\d+),"(?:result|error)":')
_HEAD = b'{"jsonrpc":"2.0","id":%d'


def started(descriptors: str, secret: str, tool: str) -> str:
    """Take the descriptors over; the path of the socket that stands for them from now on."""
    try:
        incoming, outgoing = (int(number) for number in descriptors.split(","))
        taken = _own(incoming, outgoing)
    except (ValueError, OSError):
        raise unsent(
            tool,
            f"the descriptors {descriptors} are open only in the process that the host started; "
            "import keryx_tools there before you start others",
        ) from None
    relay = Relay(taken, secret)
    try:
        relay.greet()
        return relay.start()
    except (OSError, packets.PacketError) as error:
        relay.close()
        raise unsent(tool, error) from None


def _own(incoming: int, outgoing: int) -> tuple[int, int]:
    taken = os.dup(incoming), os.dup(outgoing)
    for descriptor in {incoming, outgoing}:
        if descriptor == STDIN:
            blank(STDIN)
            os.set_inheritable(STDIN, True)
        elif descriptor == STDOUT:
            os.dup2(STDERR, STDOUT)
        else:
            os.close(descriptor)
    return taken


class Relay(Inherited):
    """Between the descriptors and the local connections. All but `_read` runs on its own loop."""

    def __init__(self, descriptors: tuple[int, int], secret: str) -> None:
        super().__init__()
        self._incoming, self._outgoing = map(Held, descriptors)
        self._uplink = Uplink(self._outgoing)
        self._secret = secret
        self._frames = packets.Assembler()
        self._last = 0
        self._calls: dict[int, tuple[_Local, int]] = {}
        self._goodbye = ""
        self._locals: dict[_Local, None] = {}
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(self._on_error)
        waking = getattr(self._loop, "_csock", None)
        self._waking = None if waking is None else Held(waking.fileno())
        self._listening: socket.socket | None = None
        self._server: asyncio.AbstractServer | None = None
        self._folder = ""

    def greet(self) -> None:
        """Say the secret to the host, and wait for its answer."""
        self._last += 1
        self._uplink.send(packets.call(self._last, b"hello", packets.hello_params(self._secret)))
        poll = select.poll()
        poll.register(self._incoming.number, select.POLLIN)
        while True:
            if not poll.poll(GREETING * 1000):
                raise packets.PacketError("it did not answer our greeting")
            data = os.read(self._incoming.number, CHUNK)
            if not data:
                raise packets.PacketError("it hung up on our greeting")
            for frame in self._frames.feed(data):
                answer = packets.decoded(frame)
                if "error" in answer:
                    raise packets.PacketError(f"it refused us: {answer['error'].get('message')}")
                return

    def start(self) -> str:
        """Listen; the path of the socket."""
        # Below the run's own folder, if it has one: that is removed also if this process is killed.
        self._folder = tempfile.mkdtemp(prefix="keryx-tools-", dir=os.environ.get(FOLDER))
        if len(self._folder) > LONGEST_PATH:
            os.rmdir(self._folder)
            self._folder = tempfile.mkdtemp(prefix="keryx-tools-", dir="/tmp")
        atexit.register(self._remove_folder)
        path = os.path.join(self._folder, "s")
        self._listening = socket.socket(socket.AF_UNIX)
        self.held = Held(self._listening.fileno())
        self._listening.bind(path)
        self._listening.listen(1024)
        for work in (self._serve, self._read):
            threading.Thread(target=work, name="keryx-relay", daemon=True).start()
        return path

    def close(self) -> None:
        self._remove_folder()
        self._loop.close()
        self._incoming.close()
        self._outgoing.close()

    def forget(self) -> None:
        served = (one.held for one in self._locals)
        for held in (self._incoming, self._outgoing, self.held, *served):
            with contextlib.suppress(OSError):
                if held is not None and held.is_ours:
                    blank(held.number)

    def _remove_folder(self) -> None:
        if self._folder and self.pid == os.getpid():
            shutil.rmtree(self._folder, ignore_errors=True)

    # -- threads

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        made = self._loop.create_unix_server(lambda: _Local(self), sock=self._listening)
        with contextlib.suppress(OSError):  # the script has closed the descriptors of the loop
            self._server = self._loop.run_until_complete(made)
            self._loop.run_forever()

    def _read(self) -> None:
        frames = self._frames
        with contextlib.suppress(OSError, packets.PacketError, RuntimeError):
            while self._incoming.is_ours:
                data = os.read(self._incoming.number, CHUNK)
                if not data:
                    break
                for frame in frames.feed(data):
                    self._tell_loop(self._deliver, frame)
        with contextlib.suppress(RuntimeError):
            self._tell_loop(self._host_is_gone)

    def _tell_loop(self, work: Callable[..., object], *args: Any) -> None:
        # To wake the loop is to write to a descriptor of its own, which the script may have closed.
        if self._waking is None or self._waking.is_ours:
            self._loop.call_soon_threadsafe(work, *args)

    def _on_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        # If the script has closed our descriptors, it has closed those of the loop, too.
        is_ours = self._incoming.is_ours
        loop.default_exception_handler(context) if is_ours else loop.stop()

    # -- from the host

    def _deliver(self, frame: bytes) -> None:
        found = _ANSWER.match(frame)
        if found is not None:
            number = int(found.group(1))
            local, id_ = self._calls.pop(number, (None, 0))
            if local is not None:
                local.calls.pop(id_, None)
                local.send(_HEAD % id_ + frame[found.end(1) :])
            with contextlib.suppress(OSError):  # whoever reads finds that the host is gone
                self._uplink.answered(number)
            return
        packet = packets.decoded(frame)
        if packet.get("method") == "progress":
            local, id_ = self._calls.get(packet["params"]["id"], (None, 0))
            if local is not None:
                packet["params"]["id"] = id_
                local.send(packets.encoded(packet))
        elif "error" in packet:
            self._goodbye = frame.decode()

    def _host_is_gone(self) -> None:
        self._remove_folder()
        if not self._incoming.is_ours:
            self._goodbye = packets.goodbye(CLOSED)
        for local in list(self._locals):
            local.hang_up(self._goodbye)
        if self._server is not None:
            self._server.close()

    # -- from the connections here

    def joined(self, local: _Local) -> None:
        self._locals[local] = None

    def left(self, local: _Local) -> None:
        self._locals.pop(local, None)
        for number in local.calls.values():
            self._give_up(number)

    def take(self, local: _Local, frame: bytes) -> None:
        found = _CALL.match(frame)
        if found is not None and local.greeted:
            self._last += 1
            id_ = int(found.group(1))
            self._calls[self._last] = (local, id_)
            local.calls[id_] = self._last
            self._uplink.call(self._last, _HEAD % self._last + frame[found.end(1) :])
            return
        packet = packets.decoded(frame)
        params: dict[str, Any] = packet.get("params") or {}
        if packet.get("method") == "hello":
            local.answer_hello(packet.get("id"), self._knows(params))
        elif packet.get("method") == "cancel":
            number = local.calls.pop(cast("int", params.get("id")), 0)
            if number:
                self._give_up(number)
        else:
            raise packets.PacketError("no call came, and no greeting")

    def _knows(self, params: dict[str, Any]) -> bool:
        said = str(params.get("secret"))
        return hmac.compare_digest(said.encode(), self._secret.encode())

    def _give_up(self, number: int) -> None:
        if self._calls.pop(number, None) is not None:
            self._uplink.give_up(number)


class _Local(asyncio.Protocol):
    """A connection of this process, or of one that it started."""

    def __init__(self, relay: Relay) -> None:
        self.greeted = False
        self.held: Held | None = None
        self.calls: dict[int, int] = {}
        self._relay = relay
        self._frames = packets.Assembler()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self.held = Held(self._transport.get_extra_info("socket").fileno())
        self._relay.joined(self)

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._frames.feed(data):
                self._relay.take(self, frame)
        except (packets.PacketError, OSError):
            self.hang_up()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        with contextlib.suppress(OSError):
            self._relay.left(self)

    def answer_hello(self, id_: object, known: bool) -> None:
        self.greeted = known
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": id_}
        if known:
            answer["result"] = {"version": packets.VERSION}
        else:
            answer["error"] = {"code": -32000, "message": "the secret is wrong"}
        self.send(packets.encoded(answer))
        if not known and self._transport is not None:
            self._transport.close()

    def send(self, packet: bytes) -> None:
        if self._transport is not None:
            self._transport.write(packets.frame(packet))

    def hang_up(self, goodbye: str = "") -> None:
        """Close; what the host said when it left is passed on."""
        if self._transport is not None and goodbye:
            self.send(goodbye.encode())
            self._transport.close()
        elif self._transport is not None:
            self._transport.abort()
