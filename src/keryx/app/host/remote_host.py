"""A process that does not own its home: the same surface, over the owner's local socket."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, Generic, Self, TypeVar

from keryx import commands as cm
from keryx import errors
from keryx.aio.bridge import Bridge
from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.app.host import socket_protocol
from keryx.app.host.home import STORE, HomeTakenError, Plate
from keryx.errors import DeveloperMustActError, KeryxError, UserMustActError
from keryx.events import Event, decode
from keryx.ports.dispatch import Answer, Change, Watching
from keryx.ports.store import Store
from keryx.ports.view import SessionView
from keryx.rpc import CallError, Peer, PeerLostError, connect
from keryx.store.sqlite import SqliteStore

T = TypeVar("T")

# A host that is starting opens its store first; one that does not answer for longer is stuck.
HELLO_PATIENCE: Final = 10.0
# Events that may wait for a slow reader here; more wait in the socket, and then at the host.
MOST_WAITING: Final = 1_000


class RemoteHost:
    """The host of another process, as this one sees it."""

    def __init__(self, plate: Plate, scope: Scope, peer: Peer, store: Store) -> None:
        self.store = store
        self.plate = plate
        self._scope = scope
        self._peer = peer

    @classmethod
    async def reach(cls, plate: Plate, scope: Scope, store: Store) -> Self:
        """Reach a host whose logs this process reads in a way of its own."""
        return cls(plate, scope, await _connect(plate, scope), store)

    @classmethod
    async def connect(cls, plate: Plate, home: Path, scope: Scope, bridge: Bridge) -> Self:
        """Reach the owner; `OSError` if nobody listens there any more."""
        peer = await _connect(plate, scope)
        try:
            store = await SqliteStore.open(home / STORE, bridge, read_only=True)
        except BaseException:
            peer.close()
            await peer.wait_ended()
            raise
        return cls(plate, scope, peer, store)

    async def open(self, wanted: socket_protocol.NewSession) -> None:
        await _call(self._peer, socket_protocol.OPEN, socket_protocol.encode_value(wanted))

    async def tell(self, command: cm.Command) -> Answer:
        try:
            body = cm.encode(command)
        except (TypeError, ValueError) as error:
            raise DeveloperMustActError(f"{type(command).__name__}: {error}") from error
        return socket_protocol.decode_answer(await _call(self._peer, socket_protocol.TELL, body))

    async def watch(self, session_id: str, *, after: int) -> Watching:
        # A connection of its own: a reader that does not keep up holds back nothing else.
        peer = await _connect(self.plate, self._scope)
        return _RemoteReader(peer, socket_protocol.Watch(session_id, after), self._scope)

    async def view(self, session_id: str) -> SessionView:
        return socket_protocol.decode_view(await self._ask(socket_protocol.VIEW, session_id))

    async def changes(self, after: int | None) -> AsyncGenerator[Change]:
        peer = await _connect(self.plate, self._scope)
        asked = socket_protocol.encode_value(socket_protocol.Since(after))
        async with _Remote(
            peer, self._scope, socket_protocol.CHANGES, asked, socket_protocol.decode_change
        ) as stream:
            async for change in stream:
                yield change

    async def delete(self, session_id: str) -> bool:
        return await self._ask(socket_protocol.DELETE, session_id) == b"true"

    async def hold(self, session_id: str) -> None:
        """Have the session deleted when this process is gone; returns only by an error."""
        await self._ask(socket_protocol.HOLD, session_id)

    async def remove_rule(self, rule_id: str) -> bool:
        named = socket_protocol.encode_value(socket_protocol.NamedRule(rule_id))
        return await _call(self._peer, socket_protocol.REMOVE_RULE, named) == b"true"

    # -- between hosts of one home

    async def announce(self, guest: str) -> None:
        """Say that this guest is there; the owner asks it what it hosts."""
        await _call(
            self._peer,
            socket_protocol.ANNOUNCE,
            socket_protocol.encode_value(socket_protocol.Announced(guest)),
        )

    async def take(self, taken: socket_protocol.Taken) -> bool:
        """Whether the session is this guest's to host from now on."""
        return (
            await _call(self._peer, socket_protocol.TAKE, socket_protocol.encode_value(taken))
            == b"true"
        )

    async def hosted(self) -> socket_protocol.Hosted:
        return socket_protocol.decode_hosted(
            await _call(self._peer, socket_protocol.HOSTED, b"null")
        )

    async def let_go(self, session_id: str) -> None:
        """The session is about to be deleted: the guest stops hosting it."""
        await self._ask(socket_protocol.LET_GO, session_id)

    @property
    def is_lost(self) -> bool:
        return self._peer.is_lost

    async def wait_lost(self) -> None:
        """Return once the host has hung up, however it ended."""
        with suppress(PeerLostError, CallError):
            await self._peer.call(socket_protocol.STAY, b"null")

    async def _ask(self, method: str, session_id: str) -> bytes:
        return await _call(
            self._peer, method, socket_protocol.encode_value(socket_protocol.Named(session_id))
        )

    async def hang_up(self) -> None:
        await _hang_up(self._peer)

    async def end(self) -> None:
        """Let go of the host, which goes on."""
        await self.hang_up()
        await self.store.close()


async def _connect(plate: Plate, scope: Scope) -> Peer:
    if not plate.socket:
        raise FileNotFoundError("the host of this home has not said where it listens")
    try:
        peer = await connect(plate.socket, scope)
    except OSError as error:
        raise PeerLostError(f"nobody listens at the home's socket: {error}") from error
    try:
        async with asyncio.timeout(HELLO_PATIENCE):
            await _greet(peer, plate)
    except TimeoutError:
        await _hang_up(peer)
        raise HomeTakenError(
            f"the Keryx that owns this home (process {plate.pid}) does not answer; "
            "stop it, or choose another home with KERYX_HOME"
        ) from None
    except BaseException:
        await _hang_up(peer)
        raise
    return peer


async def _greet(peer: Peer, plate: Plate) -> None:
    try:
        await peer.call(
            socket_protocol.HELLO, socket_protocol.encode_value(socket_protocol.Hello(plate.secret))
        )
    except CallError as error:
        if error.name == socket_protocol.WRONG_SECRET:
            # The home has changed hands since its plate was read; the new one says how to go on.
            raise PeerLostError("another host has taken the home") from error
        raise _as_raised(error) from error


async def _hang_up(peer: Peer) -> None:
    peer.close()
    await peer.wait_ended()


async def _call(peer: Peer, method: str, params: bytes) -> bytes:
    try:
        return await peer.call(method, params)
    except CallError as error:
        raise _as_raised(error) from error


def _as_raised(error: CallError) -> KeryxError:
    """The error that the host raised, as far as it can be made here."""
    kind = getattr(errors, error.name, None)
    if not (isinstance(kind, type) and issubclass(kind, KeryxError)):
        kind = UserMustActError
    try:
        return kind(error.message)
    except TypeError:
        return UserMustActError(error.message)


class _Remote(Generic[T]):
    """A stream that comes over a connection of its own."""

    def __init__(
        self, peer: Peer, scope: Scope, method: str, params: bytes, decode: Callable[[bytes], T]
    ) -> None:
        self._peer = peer
        self._asked = (method, params)
        self._decode = decode
        self._group = Group(scope.child(method))
        self._items: deque[bytes] = deque()
        self._woken: asyncio.Future[None] | None = None
        self._held = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await _hang_up(self._peer)
        await self._group.leave()
        self._group.scope.close()

    async def __aiter__(self) -> AsyncGenerator[T]:
        watching = self._group.start(self._watch(), name=self._asked[0])
        watching.add_done_callback(lambda _: self._wake())
        while True:
            while self._items:
                item = self._decode(self._items.popleft())
                self._let_go_on()
                yield item
            if watching.done():
                if (error := watching.result()) is not None:
                    raise error
                return
            self._woken = asyncio.get_running_loop().create_future()
            await self._woken

    async def _watch(self) -> KeryxError | None:
        """Wait for the end of the stream; an error is a result, so that it comes last."""
        try:
            await self._peer.call(*self._asked, on_progress=self._take)
        except PeerLostError as error:
            return error
        except CallError as error:
            return _as_raised(error)
        return None

    def _take(self, item: bytes) -> None:
        self._items.append(item)
        if len(self._items) >= MOST_WAITING and not self._held:
            self._held = True
            self._peer.wire.hold(held=True)
        self._wake()

    def _let_go_on(self) -> None:
        if self._held and len(self._items) < MOST_WAITING // 2:
            self._held = False
            self._peer.wire.hold(held=False)

    def _wake(self) -> None:
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)


class _RemoteReader(_Remote[Event]):
    """One reader's place in a session's stream."""

    def __init__(self, peer: Peer, asked: socket_protocol.Watch, scope: Scope) -> None:
        super().__init__(
            peer, scope, socket_protocol.WATCH, socket_protocol.encode_value(asked), self._note
        )
        self.seen = asked.after

    def _note(self, item: bytes) -> Event:
        event = decode(item)
        self.seen = getattr(event, "seq", self.seen)
        return event
