"""The way of this process to its sessions, whoever hosts them: this process, or another one.

When the host of another process goes away, this process attaches to the next one, or becomes the
host itself, and goes on where it was: commands carry ids and streams have numbers, so nothing
happens twice and nothing is missed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from functools import partial
from typing import Final, Protocol, TypeVar

from keryx import commands as cm
from keryx import config
from keryx.aio.group import Group
from keryx.app.attachments import Uploads
from keryx.app.diffs import diff_of
from keryx.app.host.approval_rules import read_rules
from keryx.app.host.guests.guest_host import GuestHost
from keryx.app.host.guests.temporary_sessions import hold
from keryx.app.host.home import GuestRoom, Home, HomeTakenError, Plate
from keryx.app.host.local_host import LocalHost
from keryx.app.host.remote_host import RemoteHost
from keryx.app.host.socket_protocol import NewSession, checked
from keryx.app.models import Models
from keryx.app.runtime import Runtime
from keryx.app.tools import Tools
from keryx.config import Config
from keryx.engine.approvals import KeptRule
from keryx.errors import DeveloperMustActError, KeryxError
from keryx.events import Event
from keryx.ports.dispatch import Answer, Bus, Change, Watching
from keryx.ports.store import Store
from keryx.ports.view import SessionView
from keryx.rpc import PeerLostError

# A process that dies lets go of its socket and of its lock at two instants. There is no event for
# the second one, so it is asked for again after a moment, this often.
TRIES: Final = 100
MOMENT: Final = 0.05


T = TypeVar("T")


class Host(Bus, Protocol):
    """What owns the sessions, or leads to it."""

    store: Store

    async def open(self, wanted: NewSession) -> None: ...

    async def delete(self, session_id: str) -> bool: ...

    async def remove_rule(self, rule_id: str) -> bool: ...

    async def end(self) -> None: ...


class HostClient:
    """Belongs to one loop. `join` it first, and `leave` it."""

    def __init__(
        self,
        found: Config,
        runtime: Runtime,
        *,
        models: Models,
        tools: Tools,
        resume: bool,
        take_over: bool = False,
        titles: bool = False,
    ) -> None:
        self.config = found
        self.models: Final = models
        self.tools: Final = tools
        self._runtime = runtime
        self._resume = resume
        self._take_over = take_over
        self._titles = titles
        self._group = Group(runtime.scope.child("joining"))
        self._host: Host | None = None
        self._joining: asyncio.Task[Host | KeryxError] | None = None
        self._left = False

    async def diff(self, session_id: str) -> str:
        """All that the session changed on the disk, against what is there now."""
        if await self.store.session(session_id) is None:
            raise DeveloperMustActError(f"there is no session {session_id!r}")
        return await diff_of(self._runtime.bridge, self.store, session_id, self.config)

    async def reconfigure(self) -> None:
        """Read the configuration again; turns of a host elsewhere do so by themselves."""
        self.config = await self._runtime.bridge.to_thread(config.reload, self.config)
        self.models.configure(self.config)
        self.models.prepare()

    async def keep_upload(self, data: bytes) -> str:
        """Keep what a person will attach to a message; the id is the hash of it."""
        return await Uploads(self.config.home, self._runtime.bridge).keep(data)

    @property
    def store(self) -> Store:
        """The logs, for reading."""
        return self._there.store

    @property
    def _there(self) -> Host:
        if self._host is None:
            raise DeveloperMustActError("use it inside `async with Keryx(...) as app:`")
        return self._host

    # -- joining

    async def join(self) -> None:
        """Become the host of the home, or attach to it."""
        self._host = await self._find()

    async def leave(self) -> None:
        self._left = True
        host, self._host = self._host, None
        await self._group.leave()
        self._group.scope.close()
        if host is not None:
            await host.end()

    async def _rejoin(self, lost: Host) -> None:
        """The host is gone: find the next one, once for all who noticed."""
        if self._host is not lost or self._left:
            return
        if isinstance(lost, GuestHost):
            await lost.rejoin()
            return
        if self._joining is None or self._joining.done():
            self._joining = self._group.start(self._replace(lost), name="rejoin")
        found = await asyncio.shield(self._joining)
        if isinstance(found, KeryxError):
            raise found
        self._host = found

    async def _replace(self, lost: Host) -> Host | KeryxError:
        """An error is a result here: the group of others who join shall not end with it."""
        try:
            await lost.end()
            return await self._find()
        except KeryxError as error:
            return error

    async def _find(self) -> Host:
        bridge = self._runtime.bridge
        home = self.config.home
        by_force, self._take_over = self._take_over, False
        for _ in range(TRIES):
            found = await bridge.to_thread(partial(Home.take, home, by_force=by_force))
            if isinstance(found, Home):
                return await self._own(found, by_force=by_force)
            try:
                if self.tools.brought or self.models.brought:
                    return await self._be_guest(found)
                return await RemoteHost.connect(found, home, self._runtime.scope, bridge)
            except (PeerLostError, FileNotFoundError):
                await asyncio.sleep(MOMENT)
        raise HomeTakenError.unreachable(home)

    async def _own(self, home: Home, *, by_force: bool) -> Host:
        host = await self._begin(home, take_over=by_force)
        try:
            await host.lead(home, resume=self._resume)
        except BaseException:
            await host.end(for_good=False)
            raise
        return host

    async def _begin(self, home: Home | GuestRoom, *, take_over: bool = False) -> LocalHost:
        return await LocalHost.begin(
            home,
            self._runtime,
            models=self.models,
            tools=self.tools,
            config=self.config,
            titles=self._titles,
            take_over=take_over,
        )

    # -- as a guest: tools and models that a program brings along cannot run elsewhere

    async def _be_guest(self, plate: Plate) -> Host:
        """Host what needs this program here, beside the owner of the home."""
        scope, bridge = self._runtime.scope, self._runtime.bridge
        owner = await RemoteHost.connect(plate, self.config.home, scope, bridge)
        try:
            room = await bridge.to_thread(GuestRoom.make, self.config.home)
            own = await self._begin(room)
            own.sharing.serve(room)
        except BaseException:
            await owner.end()
            raise
        return await GuestHost.begin(
            room, own, owner, self._runtime, self._join, resume=self._resume
        )

    async def _join(self, own: LocalHost) -> RemoteHost | None:
        """The owner of the home is gone: `own` is the next one, unless another process is."""
        bridge, home = self._runtime.bridge, self.config.home
        for _ in range(TRIES):
            found = await bridge.to_thread(partial(Home.take, home))
            if isinstance(found, Home):
                await own.lead(found, resume=self._resume)
                return None
            try:
                return await RemoteHost.connect(found, home, self._runtime.scope, bridge)
            except (PeerLostError, FileNotFoundError):
                await asyncio.sleep(MOMENT)
        raise HomeTakenError.unreachable(home)

    # -- what is asked

    async def open(self, wanted: NewSession) -> None:
        wanted = checked(wanted)
        await self._ask(lambda host: host.open(wanted))

    async def tell(self, command: cm.Command) -> Answer:
        """Safe to try again: a command takes effect once, by its id."""
        command = cm.checked(command)
        return await self._ask(lambda host: host.tell(command))

    async def view(self, session_id: str) -> SessionView:
        """The session as it is now; the events after its `seq` go on from there."""
        return await self._ask(lambda host: host.view(session_id))

    async def delete(self, session_id: str) -> bool:
        return await self._ask(lambda host: host.delete(session_id))

    async def hold(self, session_id: str) -> None:
        """Have a host elsewhere delete the session when this process is gone."""
        await self._ask(lambda host: hold(host, session_id))

    async def rules(self) -> list[KeptRule]:
        """What people answered with `always`, the oldest first."""
        return await read_rules(self.store)

    async def remove_rule(self, rule_id: str) -> bool:
        """No call is allowed by that rule any more, in any session. False: there is none."""
        return await self._ask(lambda host: host.remove_rule(rule_id))

    async def _ask(self, ask: Callable[[Host], Awaitable[T]]) -> T:
        """Ask the host; if it goes away meanwhile, the next one."""
        while True:
            host = self._there
            try:
                return await ask(host)
            except PeerLostError:
                await self._rejoin(host)

    async def changes(self, after: int | None = None) -> AsyncGenerator[Change]:
        """Which sessions change: those that did since that position, then whatever comes."""
        while True:
            host = self._there
            try:
                async with aclosing(host.changes(after)) as changes:
                    async for change in changes:
                        if change.row is not None:
                            after = change.row.position
                        yield change
            except PeerLostError:
                await self._rejoin(host)
            else:
                return

    async def follow(self, session_id: str, *, after: int) -> AsyncGenerator[Event]:
        """The log after that fact, then whatever comes, over any change of hosts."""
        host, reader = await self._watch(session_id, after)
        if isinstance(host, LocalHost):
            # Nothing can be lost on the way; every token saves a generator's work.
            return aiter(reader)
        return self._follow(session_id, host, reader)

    async def _follow(self, session_id: str, host: Host, reader: Watching) -> AsyncGenerator[Event]:
        while True:
            try:
                async with reader:
                    async for event in reader:
                        yield event
            except PeerLostError:
                await self._rejoin(host)
                host, reader = await self._watch(session_id, reader.seen)
            else:
                return

    async def _watch(self, session_id: str, after: int) -> tuple[Host, Watching]:
        async def watch(host: Host) -> tuple[Host, Watching]:
            return host, await host.watch(session_id, after=after)

        return await self._ask(watch)
