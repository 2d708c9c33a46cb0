"""The host's side of the local socket: what other processes of the home ask of it."""

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
from keryx.errors import KeryxError
from keryx.events import encode
from keryx.ports.dispatch import Bus
from keryx.rpc import GREETED, Call, CallError, Listener
from keryx.rpc.peer import METHOD_NOT_FOUND, Handler


class Serves(Bus, Protocol):
    """What a host does for those who attach."""

    async def open(self, wanted: socket_protocol.NewSession) -> None: ...

    async def delete(self, session_id: str) -> bool: ...

    async def remove_rule(self, rule_id: str) -> bool: ...


class Shares(Protocol):
    """What a host does for the other hosts of its home."""

    async def announced(self, guest: str) -> None: ...

    async def take(self, taken: socket_protocol.Taken) -> bool: ...

    def hosted(self) -> socket_protocol.Hosted: ...

    async def let_go(self, session_id: str) -> None: ...


class SocketServer:
    """Takes connections and does what those ask who know the secret."""

    def __init__(self, host: Serves, sharing: Shares, scope: Scope, secret: str) -> None:
        self._host = host
        self._sharing = sharing
        self._secret = secret
        self._ending = asyncio.Event()
        self._listener = Listener(scope, self._handler, limits=GREETED)

    def listen(self, listening: socket.socket) -> None:
        self._listener.listen(listening)

    def stop_listening(self) -> None:
        """The host begins to end: whoever is connected is answered nothing more."""
        self._ending.set()
        self._listener.stop_listening()

    async def close(self) -> None:
        await self._listener.close()

    def _handler(self) -> Handler:
        return _Visitor(self._host, self._sharing, self._secret, self._ending).handle


class _Visitor:
    """One connection."""

    def __init__(self, host: Serves, sharing: Shares, secret: str, ending: asyncio.Event) -> None:
        self._host = host
        self._sharing = sharing
        self._secret = secret
        self._ending = ending
        self._known = False

    async def handle(self, call: Call) -> bytes | None:
        """Answer, unless the host is ending.

        What fails then says nothing about the call. The host's last act is to hang up, when the
        home is free: then the caller finds the next host, and asks that one.
        """
        try:
            return await self._answer(call)
        except (CallError, asyncio.CancelledError):
            task = asyncio.current_task()
            hung_up_on = task is not None and task.cancelling()
            if self._ending.is_set() and not hung_up_on:
                await asyncio.get_running_loop().create_future()
            raise

    async def _answer(self, call: Call) -> bytes | None:
        try:
            if call.method == socket_protocol.HELLO:
                return self._greet(
                    call, msgspec.json.decode(call.params, type=socket_protocol.Hello)
                )
            if not self._known:
                raise CallError(
                    "say hello with the home's secret first", name=socket_protocol.WRONG_SECRET
                )
            return await self._do(call)
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
        self._known = True
        call.welcome()
        return None

    async def _do(self, call: Call) -> bytes | None:
        match call.method:
            case socket_protocol.TELL:
                return socket_protocol.encode_value(await self._host.tell(cm.decode(call.params)))
            case socket_protocol.WATCH:
                await self._watch(
                    call, msgspec.json.decode(call.params, type=socket_protocol.Watch)
                )
            case socket_protocol.OPEN:
                wanted = msgspec.json.decode(call.params, type=socket_protocol.NewSession)
                await self._host.open(msgspec.structs.replace(wanted, for_others=True))
            case socket_protocol.DELETE:
                named = socket_protocol.decode_named(call.params)
                return socket_protocol.encode_value(await self._host.delete(named.session_id))
            case socket_protocol.VIEW:
                named = socket_protocol.decode_named(call.params)
                return socket_protocol.encode_value(await self._host.view(named.session_id))
            case socket_protocol.REMOVE_RULE:
                rule = socket_protocol.decode_rule(call.params)
                return socket_protocol.encode_value(await self._host.remove_rule(rule.rule_id))
            case socket_protocol.HOLD:
                await self._hold(socket_protocol.decode_named(call.params).session_id)
            case socket_protocol.CHANGES:
                await self._tell_changes(call, socket_protocol.decode_since(call.params))
            case _:
                return await self._do_for_guests(call)
        return None

    async def _do_for_guests(self, call: Call) -> bytes | None:
        """What hosts of one home ask each other."""
        match call.method:
            case socket_protocol.ANNOUNCE:
                await self._sharing.announced(socket_protocol.decode_announced(call.params).guest)
            case socket_protocol.TAKE:
                return socket_protocol.encode_value(
                    await self._sharing.take(socket_protocol.decode_taken(call.params))
                )
            case socket_protocol.HOSTED:
                return socket_protocol.encode_value(self._sharing.hosted())
            case socket_protocol.LET_GO:
                await self._sharing.let_go(socket_protocol.decode_named(call.params).session_id)
            case socket_protocol.STAY:
                # Never answered: whoever asks learns that this host has ended.
                await asyncio.get_running_loop().create_future()
            case _:
                raise CallError(f"there is no method {call.method!r}", code=METHOD_NOT_FOUND)
        return None

    async def _hold(self, session_id: str) -> None:
        """Never answered: the session is deleted when whoever asks is gone.

        If it is this host that ends, the caller goes to the next one.
        """
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            if not self._ending.is_set():
                await self._host.delete(session_id)

    async def _tell_changes(self, call: Call, since: socket_protocol.Since) -> None:
        async with aclosing(self._host.changes(since.after)) as changes:
            async for change in changes:
                await call.progress(socket_protocol.encode_value(change))

    async def _watch(self, call: Call, asked: socket_protocol.Watch) -> None:
        async with await self._host.watch(asked.session_id, after=asked.after) as reader:
            async for item in reader:
                await call.progress(encode(item))
        raise CallError("the session was closed", name="ScopeClosedError")
