"""The client of a home's host, which is this process or another one.

When the host in another process ends, this client connects to the next host, or this process
becomes the host. Work then continues where it was: commands carry ids and events carry sequence
numbers, so no command takes effect twice and no event is missed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from types import TracebackType
from typing import Final, Protocol, TypeVar

from keryx import commands as cm
from keryx.aio.group import Group
from keryx.app.host.guests.guest_host import GuestHost
from keryx.app.host.guests.home_joiner import HomeJoiner
from keryx.app.host.guests.temporary_sessions import delete_on_disconnect
from keryx.app.host.local_host import LocalHost
from keryx.app.host.socket_protocol import NewSession, checked
from keryx.app.memory.attached_memory import AttachedMemory
from keryx.app.memory.memory_client import MemoryClient
from keryx.app.models import Models
from keryx.app.named_sets import with_named_sets
from keryx.app.own_tools import TOOLSET, OwnTools, names_in_use
from keryx.app.runtime import Runtime
from keryx.app.services.approval_rules import read_rules
from keryx.app.services.attachments import Uploads
from keryx.app.services.diffs import diff_of
from keryx.app.tools import Tools
from keryx.app.trust.trusted_folders import TrustedFolder
from keryx.config import Config, ConfigurationError, FrontEnd, reload
from keryx.engine.approvals import KeptRule
from keryx.errors import DeveloperMustActError, KeryxError
from keryx.events import Event
from keryx.ports.dispatch import Answer, Bus, Change, Watching
from keryx.ports.store import Store
from keryx.ports.view import SessionView
from keryx.rpc import PeerLostError

T = TypeVar("T")


class Host(Bus, Protocol):
    """A host of sessions: in this process, or a connection to one in another process."""

    store: Store

    async def open(self, request: NewSession) -> None: ...

    async def delete(self, session_id: str, *, keep_memory: bool = False) -> bool: ...

    async def rescan_memory(self, *, retry: bool, wait: bool) -> None: ...

    async def remove_rule(self, rule_id: str) -> bool: ...

    async def trust(self, folder: TrustedFolder) -> None: ...

    async def distrust(self, workspace: str) -> bool: ...

    async def end(self) -> None: ...


class HostClient:
    """Sends requests to the current host. Belongs to one loop; call `join` first, `leave` last."""

    def __init__(
        self,
        config: Config,
        runtime: Runtime,
        *,
        models: Models,
        tools: Tools,
        resume: bool,
        take_over: bool = False,
        titles: bool = False,
    ) -> None:
        self.config = config
        self.models: Final = models
        self.tools: Final = tools
        self._runtime = runtime
        # For lists and choices only: the host, which may be another process, has its own.
        self._own_tools = OwnTools(config.settings_home, runtime.bridge.to_thread)
        self._joiner = HomeJoiner(
            runtime,
            models=models,
            tools=tools,
            resume=resume,
            take_over=take_over,
            titles=titles,
        )
        self._group = Group(runtime.scope.child("joining"))
        self._host: Host | None = None
        self._joining: asyncio.Task[Host | KeryxError] | None = None
        self._has_left = False
        self._attached_memory = AttachedMemory(runtime, self._rescan_memory, self._read_config)
        self.memory: Final = MemoryClient(
            lambda: self._attached_memory.beside(self._joined_host, self.store), models
        )

    async def tools_to_choose(self) -> Tools:
        """Return the tools that a new session may have, also the user's own as they are now."""
        if self.tools.from_program:
            return self.tools
        await self._own_tools.refresh(names_in_use(self.tools))
        tools = self.tools.plus(TOOLSET, self._own_tools.by_name)
        return with_named_sets(tools, await self._read_config())

    async def tools_for(self, front_end: FrontEnd, profile: str) -> tuple[str, ...] | None:
        """Return the tools that this front end gives to new sessions; None: all tools."""
        names = (await self._read_config()).profile(profile).toolsets.get(front_end)
        return None if names is None else self.tools.usable(names)

    async def _read_config(self) -> Config:
        with suppress(ConfigurationError):  # the next turn reports it, and the last valid one holds
            self.config = await self._runtime.bridge.to_thread(reload, self.config)
        return self.config

    async def diff(self, session_id: str) -> str:
        """Return a diff of all files that the session changed, against their present content."""
        if await self.store.session(session_id) is None:
            raise DeveloperMustActError(f"there is no session {session_id!r}")
        return await diff_of(self._runtime.bridge, self.store, session_id, self.config)

    async def to_thread(self, work: Callable[[], T]) -> T:
        """Run blocking work in a thread."""
        return await self._runtime.bridge.to_thread(work)

    async def reconfigure(self) -> None:
        """Read the configuration again. A host in another process reads it before each turn."""
        self.config = await self.to_thread(lambda: reload(self.config))
        self.models.configure(self.config)
        self.models.prepare()

    async def keep_upload(self, data: bytes) -> str:
        """Store a file that will be attached to a message; return its id, the content's hash."""
        return await Uploads(self.config.home, self._runtime.bridge).keep(data)

    @property
    def store(self) -> Store:
        """The logs, for reading."""
        return self._joined_host.store

    @property
    def local_host(self) -> LocalHost | None:
        return self._host if isinstance(self._host, LocalHost) else None

    @property
    def _joined_host(self) -> Host:
        if self._host is None:
            raise DeveloperMustActError(
                "Keryx is not running; use it inside `async with Keryx(...) as app:`"
            )
        return self._host

    # -- joining

    async def join(self) -> None:
        """Become the host of the home, or connect to its host."""
        self._host = await self._joiner.join(self.config)

    async def leave(self) -> None:
        self._has_left = True
        host, self._host = self._host, None
        await self._group.leave()
        self._group.scope.close()
        await self._attached_memory.close()
        if host is not None:
            await host.end()

    async def _rejoin(self, lost: Host) -> None:
        """Replace a host that has ended. Callers that notice at the same time share one attempt."""
        if self._host is not lost or self._has_left:
            return
        if isinstance(lost, GuestHost):
            await lost.rejoin()
            return
        if self._joining is None or self._joining.done():
            self._joining = self._group.start(self._replace(lost), name="rejoin")
        host = await asyncio.shield(self._joining)
        if isinstance(host, KeryxError):
            raise host
        self._host = host

    async def _replace(self, lost: Host) -> Host | KeryxError:
        """Return the next host, or the error: an error that is raised would end the group."""
        try:
            await lost.end()
            return await self._joiner.join(self.config)
        except KeryxError as error:
            return error

    # -- requests

    async def open(self, request: NewSession) -> None:
        request = checked(request)
        await self._request(lambda host: host.open(request))

    async def tell(self, command: cm.Command) -> Answer:
        """Send a command. It can be retried: a command takes effect once, by its id."""
        return await self._request(lambda host: host.tell(command))

    async def view(self, session_id: str) -> SessionView:
        """Return the session's present state; the events after its `seq` continue from there."""
        return await self._request(lambda host: host.view(session_id))

    async def delete(self, session_id: str, *, keep_memory: bool = False) -> bool:
        return await self._request(lambda host: host.delete(session_id, keep_memory=keep_memory))

    async def delete_on_disconnect(self, session_id: str) -> None:
        """Make a host in another process delete the session when this process ends."""
        await self._request(lambda host: delete_on_disconnect(host, session_id))

    async def rules(self) -> list[KeptRule]:
        """Return the rules that people made with the answer `always`, the oldest first."""
        return await read_rules(self.store)

    async def remove_rule(self, rule_id: str) -> bool:
        """Remove a rule: it allows no more calls in any session. False: there is no such rule."""
        return await self._request(lambda host: host.remove_rule(rule_id))

    async def trust(self, folder: TrustedFolder) -> None:
        """Trust what a folder brings along; durable once this returns."""
        await self._request(lambda host: host.trust(folder))

    async def distrust(self, workspace: str) -> bool:
        """Trust a folder no more. False: it was not trusted."""
        return await self._request(lambda host: host.distrust(workspace))

    async def _rescan_memory(self, *, retry: bool, wait: bool) -> None:
        await self._request(lambda host: host.rescan_memory(retry=retry, wait=wait))

    async def _request(self, send: Callable[[Host], Awaitable[T]]) -> T:
        """Send a request to the current host, and again to the next one if that host ends."""
        while True:
            async with self._attempt() as host:
                return await send(host)

    async def changes(self, after: int | None = None) -> AsyncGenerator[Change]:
        """Yield which sessions changed since that position, then each change as it happens."""
        while True:
            async with self._attempt() as host, aclosing(host.changes(after)) as changes:
                async for change in changes:
                    if change.row is not None:
                        after = change.row.position
                    yield change
                return

    async def follow(self, session_id: str, *, after: int) -> AsyncGenerator[Event]:
        """Return the events after that one, then each new event, even if the host changes."""
        host, reader = await self._watch(session_id, after)
        if isinstance(host, LocalHost):
            # No connection can be lost here, so each token is spared a second generator.
            return aiter(reader)
        return self._follow(session_id, host, reader)

    async def _follow(self, session_id: str, host: Host, reader: Watching) -> AsyncGenerator[Event]:
        while True:
            async with self._attempt(host), reader:
                async for event in reader:
                    yield event
                return
            host, reader = await self._watch(session_id, reader.seen)

    async def _watch(self, session_id: str, after: int) -> tuple[Host, Watching]:
        async def watch(host: Host) -> tuple[Host, Watching]:
            return host, await host.watch(session_id, after=after)

        return await self._request(watch)

    def _attempt(self, host: Host | None = None) -> _Attempt:
        return _Attempt(host or self._joined_host, self._rejoin)


class _Attempt:
    """A block of work with one host. If that host ends, it is left with the next one joined."""

    __slots__ = ("_host", "_rejoin")

    def __init__(self, host: Host, rejoin: Callable[[Host], Awaitable[None]]) -> None:
        self._host = host
        self._rejoin = rejoin

    async def __aenter__(self) -> Host:
        return self._host

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if not isinstance(error, PeerLostError):
            return False
        await self._rejoin(self._host)
        return True
