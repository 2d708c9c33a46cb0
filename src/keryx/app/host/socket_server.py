"""The server of the local socket: it answers the calls of other processes of the home."""

from __future__ import annotations

import asyncio
import hmac
import socket
from contextlib import aclosing
from typing import Protocol

import msgspec

from keryx import commands as cm
from keryx.aio.scope import Scope
from keryx.app.host import socket_protocol
from keryx.app.trust.trusted_folders import TrustedFolder
from keryx.decoding import decode_json
from keryx.errors import KeryxError
from keryx.events import encode
from keryx.ports.dispatch import Bus
from keryx.rpc import GREETING_REQUIRED, Call, CallError, Listener
from keryx.rpc.peer import METHOD_NOT_FOUND, Handler


class HostService(Bus, Protocol):
    """The part of a host that answers the calls of connected clients."""

    async def open(self, request: socket_protocol.NewSession) -> None: ...

    async def delete(self, session_id: str, *, keep_memory: bool = False) -> bool: ...

    async def rescan_memory(self, *, retry: bool, wait: bool) -> None: ...

    async def remove_rule(self, rule_id: str) -> bool: ...

    async def trust(self, folder: TrustedFolder) -> None: ...

    async def distrust(self, workspace: str) -> bool: ...


class PeerService(Protocol):
    """The part of a host that answers the calls of the other hosts of its home."""

    async def announce(self, guest_id: str) -> None: ...

    async def take(self, request: socket_protocol.TakeRequest) -> bool: ...

    def hosted(self) -> socket_protocol.HostedSessions: ...

    async def stop_hosting(self, session_id: str) -> None: ...

    async def catch_up(self) -> None: ...


class SocketServer:
    """Accepts connections, and answers the calls of clients that know the secret."""

    def __init__(self, host: HostService, peers: PeerService, scope: Scope, secret: str) -> None:
        self._host = host
        self._peers = peers
        self._secret = secret
        self._ending = asyncio.Event()
        self._listener = Listener(scope, self._handler, limits=GREETING_REQUIRED)

    def listen(self, listening: socket.socket) -> None:
        self._listener.listen(listening)

    def stop_listening(self) -> None:
        """Accept no more connections, and send no more errors: the host is ending."""
        self._ending.set()
        self._listener.stop_listening()

    async def close(self) -> None:
        await self._listener.close()

    def _handler(self) -> Handler:
        return _Connection(self._host, self._peers, self._secret, self._ending).handle


class _Connection:
    """The calls of one connection."""

    def __init__(
        self, host: HostService, peers: PeerService, secret: str, ending: asyncio.Event
    ) -> None:
        self._host = host
        self._peers = peers
        self._secret = secret
        self._ending = ending
        self._is_greeted = False

    async def handle(self, call: Call) -> bytes | None:
        """Answer the call. While the host is ending, an error is held back.

        Such an error says nothing about the call. The host closes its connections last, when the
        home is free: the caller then finds the next host, and asks that one.
        """
        try:
            return await self._answer(call)
        except (CallError, asyncio.CancelledError):
            task = asyncio.current_task()
            is_disconnected = task is not None and task.cancelling()
            if self._ending.is_set() and not is_disconnected:
                await asyncio.get_running_loop().create_future()
            raise

    async def _answer(self, call: Call) -> bytes | None:
        try:
            if call.method == socket_protocol.HELLO:
                return self._greet(call, decode_json(call.params, socket_protocol.Hello))
            if not self._is_greeted:
                raise CallError(
                    "say hello with the home's secret first", name=socket_protocol.WRONG_SECRET
                )
            return await self._dispatch(call)
        except KeryxError as error:
            if isinstance(error, CallError):
                raise
            raise CallError(str(error), name=type(error).__name__) from error
        except msgspec.DecodeError as error:
            raise CallError(f"{call.method}: {error}", name="DeveloperMustActError") from error

    def _greet(self, call: Call, hello: socket_protocol.Hello) -> bytes | None:
        if hello.version != socket_protocol.VERSION:
            raise CallError(
                f"the host speaks version {socket_protocol.VERSION} and this program "
                f"{hello.version}; use the same version of Keryx for both",
                name="UserMustActError",
            )
        if not hmac.compare_digest(hello.secret.encode(), self._secret.encode()):
            raise CallError(
                "that is not the secret of this home", name=socket_protocol.WRONG_SECRET
            )
        self._is_greeted = True
        call.authenticate()
        return None

    async def _dispatch(self, call: Call) -> bytes | None:
        match call.method:
            case socket_protocol.TELL:
                return socket_protocol.encode_value(await self._host.tell(cm.decode(call.params)))
            case socket_protocol.WATCH:
                await self._watch(call, decode_json(call.params, socket_protocol.WatchRequest))
            case socket_protocol.OPEN:
                request = decode_json(call.params, socket_protocol.NewSession)
                await self._host.open(msgspec.structs.replace(request, for_others=True))
            case socket_protocol.DELETE:
                return await self._delete(socket_protocol.decode_delete_request(call.params))
            case socket_protocol.VIEW:
                ref = socket_protocol.decode_session_ref(call.params)
                return socket_protocol.encode_value(await self._host.view(ref.session_id))
            case socket_protocol.HOLD:
                await self._delete_on_disconnect(
                    socket_protocol.decode_session_ref(call.params).session_id
                )
            case socket_protocol.CHANGES:
                await self._send_changes(call, socket_protocol.decode_changes_request(call.params))
            case _:
                return await self._dispatch_person_call(call)
        return None

    async def _dispatch_person_call(self, call: Call) -> bytes | None:
        """Answer a call about what a person has allowed, or about the memory."""
        match call.method:
            case socket_protocol.RESCAN_MEMORY:
                rescan = socket_protocol.decode_memory_rescan(call.params)
                await self._host.rescan_memory(retry=rescan.retry, wait=rescan.wait)
            case socket_protocol.REMOVE_RULE:
                ref = socket_protocol.decode_rule_ref(call.params)
                return socket_protocol.encode_value(await self._host.remove_rule(ref.rule_id))
            case socket_protocol.TRUST:
                await self._host.trust(socket_protocol.decode_trusted_folder(call.params))
            case socket_protocol.DISTRUST:
                folder = socket_protocol.decode_folder_ref(call.params)
                return socket_protocol.encode_value(await self._host.distrust(folder.workspace))
            case _:
                return await self._dispatch_peer_call(call)
        return None

    async def _dispatch_peer_call(self, call: Call) -> bytes | None:
        """Answer a call of another host of the home."""
        match call.method:
            case socket_protocol.ANNOUNCE:
                await self._peers.announce(socket_protocol.decode_announcement(call.params).guest)
            case socket_protocol.TAKE:
                return socket_protocol.encode_value(
                    await self._peers.take(socket_protocol.decode_take_request(call.params))
                )
            case socket_protocol.HOSTED:
                return socket_protocol.encode_value(self._peers.hosted())
            case socket_protocol.STOP_HOSTING:
                await self._peers.stop_hosting(
                    socket_protocol.decode_session_ref(call.params).session_id
                )
            case socket_protocol.CATCH_UP:
                await self._peers.catch_up()
            case socket_protocol.STAY:
                # Never answered: the caller waits for the connection to close.
                await asyncio.get_running_loop().create_future()
            case _:
                raise CallError(f"there is no method {call.method!r}", code=METHOD_NOT_FOUND)
        return None

    async def _delete(self, request: socket_protocol.DeleteRequest) -> bytes:
        is_deleted = await self._host.delete(request.session_id, keep_memory=request.keep_memory)
        return socket_protocol.encode_value(is_deleted)

    async def _delete_on_disconnect(self, session_id: str) -> None:
        """Never return: delete the session when the caller disconnects; its memories stay.

        If this host ends instead, the caller asks the next one.
        """
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            if not self._ending.is_set():
                await self._host.delete(session_id, keep_memory=True)

    async def _send_changes(self, call: Call, request: socket_protocol.ChangesRequest) -> None:
        async with aclosing(self._host.changes(request.after)) as changes:
            async for change in changes:
                await call.progress(socket_protocol.encode_value(change))

    async def _watch(self, call: Call, request: socket_protocol.WatchRequest) -> None:
        async with await self._host.watch(request.session_id, after=request.after) as reader:
            async for item in reader:
                await call.progress(encode(item))
        raise CallError("the session was closed", name="ScopeClosedError")
