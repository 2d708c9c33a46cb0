"""A host in another process, reached over its local socket. It has the methods of a local host."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from keryx import commands as cm
from keryx.aio.bridge import Bridge
from keryx.aio.scope import Scope
from keryx.app.host import socket_protocol
from keryx.app.host.homes.home import STORE, HomeTakenError
from keryx.app.host.homes.host_address import HostAddress
from keryx.app.host.remote_stream import RemoteReader, RemoteStream, hang_up, to_local_error
from keryx.app.trust.trusted_folders import TrustedFolder
from keryx.command_checks import checked
from keryx.ports.dispatch import Answer, Change, Watching
from keryx.ports.store import Store
from keryx.ports.view import SessionView
from keryx.rpc import CallError, Peer, PeerLostError, connect
from keryx.store.sqlite import SqliteStore

# Seconds. A host that is starting opens its store first; one that needs longer is frozen.
HELLO_TIMEOUT: Final = 10.0


class RemoteHost:
    """A connection to the host in another process."""

    def __init__(self, address: HostAddress, scope: Scope, peer: Peer, store: Store) -> None:
        self.store = store
        self.address = address
        self._scope = scope
        self._peer = peer

    @classmethod
    async def reach(cls, address: HostAddress, scope: Scope, store: Store) -> Self:
        """Connect to a host, and read its logs from the store that is passed."""
        return cls(address, scope, await _connect(address, scope), store)

    @classmethod
    async def connect(cls, address: HostAddress, home: Path, scope: Scope, bridge: Bridge) -> Self:
        """Connect to the owner of the home and open its store read-only.

        `PeerLostError` or `FileNotFoundError` if no process listens there any more.
        """
        peer = await _connect(address, scope)
        try:
            store = await SqliteStore.open(home / STORE, bridge, read_only=True)
        except BaseException:
            peer.close()
            await peer.wait_ended()
            raise
        host = cls(address, scope, peer, store)
        store.catch_up_index = host.catch_up
        return host

    async def open(self, request: socket_protocol.NewSession) -> None:
        await _call(self._peer, socket_protocol.OPEN, socket_protocol.encode_value(request))

    async def tell(self, command: cm.Command) -> Answer:
        body = cm.encode(checked(command))
        return socket_protocol.decode_answer(await _call(self._peer, socket_protocol.TELL, body))

    async def watch(self, session_id: str, *, after: int) -> Watching:
        # A separate connection: a slow reader delays no other request.
        peer = await _connect(self.address, self._scope)
        return RemoteReader(peer, socket_protocol.WatchRequest(session_id, after), self._scope)

    async def view(self, session_id: str) -> SessionView:
        return socket_protocol.decode_view(await self._ask(socket_protocol.VIEW, session_id))

    async def changes(self, after: int | None) -> AsyncGenerator[Change]:
        peer = await _connect(self.address, self._scope)
        params = socket_protocol.encode_value(socket_protocol.ChangesRequest(after))
        async with RemoteStream(
            peer, self._scope, socket_protocol.CHANGES, params, socket_protocol.decode_change
        ) as stream:
            async for change in stream:
                yield change

    async def delete(self, session_id: str, *, keep_memory: bool = False) -> bool:
        request = socket_protocol.DeleteRequest(session_id, keep_memory)
        params = socket_protocol.encode_value(request)
        return await _call(self._peer, socket_protocol.DELETE, params) == b"true"

    async def rescan_memory(self, *, retry: bool, wait: bool) -> None:
        params = socket_protocol.encode_value(socket_protocol.MemoryRescan(retry, wait))
        await _call(self._peer, socket_protocol.RESCAN_MEMORY, params)

    async def delete_on_disconnect(self, session_id: str) -> None:
        """Make the host delete the session when this process ends. Never returns normally."""
        await self._ask(socket_protocol.HOLD, session_id)

    async def remove_rule(self, rule_id: str) -> bool:
        params = socket_protocol.encode_value(socket_protocol.RuleRef(rule_id))
        return await _call(self._peer, socket_protocol.REMOVE_RULE, params) == b"true"

    async def trust(self, folder: TrustedFolder) -> None:
        await _call(self._peer, socket_protocol.TRUST, socket_protocol.encode_value(folder))

    async def distrust(self, workspace: str) -> bool:
        params = socket_protocol.encode_value(socket_protocol.FolderRef(workspace))
        return await _call(self._peer, socket_protocol.DISTRUST, params) == b"true"

    # -- between hosts of one home

    async def catch_up(self) -> None:
        """Wait until the host has indexed what is committed; a host that has ended does not."""
        with suppress(PeerLostError):
            await _call(self._peer, socket_protocol.CATCH_UP, b"")

    async def announce(self, guest_id: str) -> None:
        """Tell the owner that this guest runs; the owner then asks what the guest hosts."""
        await _call(
            self._peer,
            socket_protocol.ANNOUNCE,
            socket_protocol.encode_value(socket_protocol.Announcement(guest_id)),
        )

    async def take(self, request: socket_protocol.TakeRequest) -> bool:
        """Return whether this guest may host the session from now on."""
        return (
            await _call(self._peer, socket_protocol.TAKE, socket_protocol.encode_value(request))
            == b"true"
        )

    async def hosted(self) -> socket_protocol.HostedSessions:
        return socket_protocol.decode_hosted(
            await _call(self._peer, socket_protocol.HOSTED, b"null")
        )

    async def stop_hosting(self, session_id: str) -> None:
        """Make a guest close a session that is about to be deleted."""
        await self._ask(socket_protocol.STOP_HOSTING, session_id)

    @property
    def is_lost(self) -> bool:
        return self._peer.is_lost

    async def wait_lost(self) -> None:
        """Return when the connection is closed, however the host ended."""
        with suppress(PeerLostError, CallError):
            await self._peer.call(socket_protocol.STAY, b"null")

    async def _ask(self, method: str, session_id: str) -> bytes:
        return await _call(
            self._peer, method, socket_protocol.encode_value(socket_protocol.SessionRef(session_id))
        )

    async def hang_up(self) -> None:
        await hang_up(self._peer)

    async def end(self) -> None:
        """Disconnect from the host, which keeps running."""
        await self.hang_up()
        await self.store.close()


async def _connect(address: HostAddress, scope: Scope) -> Peer:
    if not address.socket:
        raise FileNotFoundError("the host of this home has not written its address yet")
    try:
        peer = await connect(address.socket, scope)
    except OSError as error:
        raise PeerLostError(f"no process listens on the home's socket: {error}") from error
    try:
        async with asyncio.timeout(HELLO_TIMEOUT):
            await _greet(peer, address)
    except TimeoutError:
        await hang_up(peer)
        raise HomeTakenError(
            f"the Keryx that owns this home (process {address.pid}) does not answer; "
            "stop that process, or choose another home with KERYX_HOME"
        ) from None
    except BaseException:
        await hang_up(peer)
        raise
    return peer


async def _greet(peer: Peer, address: HostAddress) -> None:
    try:
        await peer.call(
            socket_protocol.HELLO,
            socket_protocol.encode_value(socket_protocol.Hello(address.secret)),
        )
    except CallError as error:
        if error.name == socket_protocol.WRONG_SECRET:
            # The home got another owner since its address was read; the caller reads it again.
            raise PeerLostError("another host has taken the home") from error
        raise to_local_error(error) from error


async def _call(peer: Peer, method: str, params: bytes) -> bytes:
    try:
        return await peer.call(method, params)
    except CallError as error:
        raise to_local_error(error) from error
