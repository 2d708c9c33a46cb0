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
from keryx.app.host import wire
from keryx.errors import KeryxError
from keryx.events import encode
from keryx.ports.dispatch import Bus
from keryx.rpc import GREETED, Call, CallError, Listener
from keryx.rpc.peer import METHOD_NOT_FOUND, Handler


class Serves(Bus, Protocol):
    """What a host does for those who attach."""

    async def open(self, wanted: wire.NewSession) -> None: ...

    async def delete(self, session_id: str) -> bool: ...

    async def remove_rule(self, rule_id: str) -> bool: ...


class Shares(Protocol):
    """What a host does for the other hosts of its home."""

    async def announced(self, guest: str) -> None: ...

    async def take(self, taken: wire.Taken) -> bool: ...

    def hosted(self) -> wire.Hosted: ...

    async def let_go(self, session_id: str) -> None: ...


class Served:
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
            if call.method == wire.HELLO:
                return self._greet(call, msgspec.json.decode(call.params, type=wire.Hello))
            if not self._known:
                raise CallError("say hello with the home's secret first", name=wire.WRONG_SECRET)
            return await self._do(call)
        except KeryxError as error:
            if isinstance(error, CallError):
                raise
            raise CallError(str(error), name=type(error).__name__) from error
        except msgspec.DecodeError as error:
            raise CallError(f"{call.method}: {error}", name="DeveloperMustActError") from error

    def _greet(self, call: Call, hello: wire.Hello) -> bytes | None:
        if hello.version != wire.VERSION:
            raise CallError(
                f"the host speaks version {wire.VERSION} and this program {hello.version}; "
                "use the same version of Keryx for both",
                name="UserMustActError",
            )
        if not hmac.compare_digest(hello.secret.encode(), self._secret.encode()):
            raise CallError("that is not the secret of this home", name=wire.WRONG_SECRET)
        self._known = True
        call.welcome()
        return None

    async def _do(self, call: Call) -> bytes | None:
        match call.method:
            case wire.TELL:
                return wire.encode_value(await self._host.tell(cm.decode(call.params)))
            case wire.WATCH:
                await self._watch(call, msgspec.json.decode(call.params, type=wire.Watch))
            case wire.OPEN:
                wanted = msgspec.json.decode(call.params, type=wire.NewSession)
                await self._host.open(msgspec.structs.replace(wanted, for_others=True))
            case wire.DELETE:
                named = wire.decode_named(call.params)
                return wire.encode_value(await self._host.delete(named.session_id))
            case wire.VIEW:
                named = wire.decode_named(call.params)
                return wire.encode_value(await self._host.view(named.session_id))
            case wire.REMOVE_RULE:
                rule = wire.decode_rule(call.params)
                return wire.encode_value(await self._host.remove_rule(rule.rule_id))
            case wire.HOLD:
                await self._hold(wire.decode_named(call.params).session_id)
            case wire.CHANGES:
                await self._tell_changes(call, wire.decode_since(call.params))
            case _:
                return await self._do_for_guests(call)
        return None

    async def _do_for_guests(self, call: Call) -> bytes | None:
        """What hosts of one home ask each other."""
        match call.method:
            case wire.ANNOUNCE:
                await self._sharing.announced(wire.decode_announced(call.params).guest)
            case wire.TAKE:
                return wire.encode_value(await self._sharing.take(wire.decode_taken(call.params)))
            case wire.HOSTED:
                return wire.encode_value(self._sharing.hosted())
            case wire.LET_GO:
                await self._sharing.let_go(wire.decode_named(call.params).session_id)
            case wire.STAY:
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

    async def _tell_changes(self, call: Call, since: wire.Since) -> None:
        async with aclosing(self._host.changes(since.after)) as changes:
            async for change in changes:
                await call.progress(wire.encode_value(change))

    async def _watch(self, call: Call, asked: wire.Watch) -> None:
        async with await self._host.watch(asked.session_id, after=asked.after) as reader:
            async for item in reader:
                await call.progress(encode(item))
        raise CallError("the session was closed", name="ScopeClosedError")
