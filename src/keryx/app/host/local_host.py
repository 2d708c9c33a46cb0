"""The host in this process: it owns the home, runs its sessions, and accepts other processes."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Self

import msgspec

from keryx.aio.acquire import release
from keryx.aio.bridge import Bridge
from keryx.app.host.dispatch import EventHub
from keryx.app.host.guests.host_peers import HostPeers
from keryx.app.host.guests.shared_dispatch import ProgramGoneError, SharedDispatch
from keryx.app.host.guests.temporary_sessions import delete_abandoned
from keryx.app.host.homes.home import GuestRegistration, Home
from keryx.app.host.session_feed import SessionFeed
from keryx.app.host.socket_protocol import NewSession
from keryx.app.host_tools import HostTools
from keryx.app.models import Models
from keryx.app.runtime import Runtime
from keryx.app.services.approval_rules import RuleBook, read_rules
from keryx.app.services.child_agents import ChildAgents
from keryx.app.services.host_memory import open_memory
from keryx.app.services.mcp_servers import open_servers
from keryx.app.services.places import Places
from keryx.app.services.session_services import SessionServices
from keryx.app.tools import Tools
from keryx.app.trust.trusted_folders import TrustedFolder, drop_folder, keep_folder
from keryx.config import DEFAULT, Config
from keryx.engine.session import Opening, Session
from keryx.errors import DeveloperMustActError
from keryx.events import SessionOpened
from keryx.ports.store import Store
from keryx.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from keryx.app.memory_hosting.guarded_memory import GuardedMemory

STORE_THREADS: Final = 8
"""One writes, the others read."""
MOST_CHILDREN: Final = 10_000
"""The child agents that are deleted with their parent."""


# Seconds. What is not delivered by then is delivered after the next start.
MEMORY_DRAIN: Final = 2.0


class LocalHost:
    """Owns a home, or is a guest in one, and owns everything that runs for its sessions."""

    def __init__(
        self,
        *,
        runtime: Runtime,
        home: Home | GuestRegistration,
        threads: Bridge,
        store: Store,
        models: Models,
        tools: Tools,
        config: Config,
        rules: RuleBook,
        memory: GuardedMemory | None,
        titles: bool,
    ) -> None:
        self.store, self.memory = store, memory
        self._feed = SessionFeed(store)
        self._agents = ChildAgents(self, runtime.scope)
        self._rules = rules
        self._runtime, self._threads, self._models = runtime, threads, models
        self._tools = HostTools(tools, config, runtime.bridge.to_thread)
        self._places = Places(runtime, config, home.path, home.address.tmp)
        self.mcp = open_servers(runtime, self._places, config)
        self._dispatch = dispatch = SharedDispatch(
            runtime.scope,
            store,
            self._open,
            (*tools.capabilities, *models.capabilities),
            on_change=self._feed.note,
            on_closed=self._on_session_closed,
        )
        # The methods of the bus are those of the dispatch: a wrapper would add nothing.
        self.tell, self.watch, self.view = dispatch.tell, dispatch.watch, dispatch.view
        self.changes, self.note_change = self._feed.read, self._feed.note
        self.peers = HostPeers(self, home, runtime, self._dispatch, self._on_guest_change)
        self._session_services = SessionServices(
            runtime=runtime,
            store=store,
            home=home.path,
            models=models,
            tools=self._tools,
            places=self._places,
            mcp=self.mcp,
            rules=rules,
            config=config,
            is_shared=self._is_shared,
            titles=titles,
        )
        self._services = self._session_services.provided
        self._services.rested, self._services.changed = dispatch.rested, self._feed.note
        self._services.agents, self._services.memory = self._agents.of_session, memory

    @classmethod
    async def start(
        cls,
        home: Home | GuestRegistration,
        runtime: Runtime,
        *,
        models: Models,
        tools: Tools,
        config: Config,
        titles: bool = False,
        take_over: bool = False,
    ) -> Self:
        """Open the store. Next, an owner calls `become_owner`, a guest serves its registration."""
        # Separate threads: a commit must not wait for tools that block.
        threads = Bridge(runtime.scope, threads=STORE_THREADS)
        try:
            if config.in_memory:  # imported only if needed
                store: Store = importlib.import_module("keryx.store.memory").MemoryStore()
            else:
                store = await SqliteStore.open(
                    home.store,
                    threads,
                    durability=config.durability,
                    take_over=take_over,
                    guest=isinstance(home, GuestRegistration),
                )
            rules = RuleBook(store, await read_rules(store))
            memory = await open_memory(runtime, store, config)
        except BaseException:
            await threads.close()
            await release(runtime.bridge, home.release)
            raise
        return cls(
            runtime=runtime,
            home=home,
            threads=threads,
            store=store,
            models=models,
            tools=tools,
            config=config,
            rules=rules,
            memory=memory,
            titles=titles,
        )

    async def become_owner(self, home: Home, *, resume: bool) -> None:
        """Own the home. Its guests keep the sessions that they host."""
        # Read before the guests are asked: a guest asks the owner before it opens another session.
        unfinished, abandoned = await self.peers.left_sessions(home, self.store, resume=resume)
        try:
            await self.peers.become_owner(home, self.store)
        except BaseException:
            await self.peers.give_up(home)
            raise
        if self.memory is not None:
            await self.memory.start()
        await delete_abandoned(self, abandoned, self._runtime.bridge)
        await self.resume(await self.peers.without_host(unfinished, self.store))

    async def resume(self, unfinished: Sequence[str]) -> None:
        """Resume the sessions that an earlier host left unfinished."""
        await self._dispatch.resume(unfinished, self._services.resume_guard)

    # -- requests of clients

    async def open(self, request: NewSession) -> None:
        """Create a session, or open one that exists."""
        if request.exists:
            if await self.store.session(request.session_id) is None:
                raise DeveloperMustActError(
                    f"there is no session {request.session_id!r}; "
                    "`keryx sessions list` shows those there are"
                )
            with suppress(ProgramGoneError):  # it can be read; a command to it gets the error
                await self._dispatch.session(request.session_id)
            return
        brought = await self.capabilities_for(request)
        opening = Opening(
            model=self._model_for(request),
            workspace=request.workspace,
            tools=self._tools.chosen(request.tools, for_others=request.for_others),
            profile=request.profile or DEFAULT,
            effort=request.effort,
            personality=request.personality,
            title=request.title,
            archived=request.archived,
            approvals=request.approvals,
            read_only=request.read_only,
            brought=brought,
            person=request.person,
        )
        await self._dispatch.session(request.session_id, opening)

    async def capabilities_for(self, request: NewSession) -> tuple[str, ...]:
        """Return the capabilities of this program that such a new session would use."""
        await self._tools.prepare(request.tools, for_others=request.for_others)
        names = self._tools.chosen(request.tools, for_others=request.for_others)
        used = (f"model:{self._model_for(request)}", *(f"tool:{name}" for name in names))
        return tuple(name for name in used if name in self._dispatch.capabilities)

    def _model_for(self, request: NewSession) -> str:
        profile, for_others = request.profile or DEFAULT, request.for_others
        return request.model or self._models.default_of(profile, for_others=for_others)

    async def delete(self, session_id: str, *, keep_memory: bool = False) -> bool:
        """Delete everything of the session. False: there was no such session."""
        children = await self.store.sessions(parent=session_id, archived=None, limit=MOST_CHILDREN)
        for child in children:
            await self.delete(child.session_id, keep_memory=keep_memory)
        await self._dispatch.stop_hosting(session_id)
        if self.memory is not None:
            # First: with the session its rows of the outbox are gone.
            await self.memory.forget_session(session_id, keep=keep_memory)
        deleted = await self.store.delete(session_id)
        self._feed.note(session_id)
        return deleted

    async def rescan_memory(self, *, retry: bool, wait: bool) -> None:
        """Deliver what other processes of the home remembered."""
        if self.memory is not None:
            await self.memory.rescan(retry=retry, wait=wait)

    async def remove_rule(self, rule_id: str) -> bool:
        is_removed = await self._rules.remove(rule_id)
        await self.peers.remove_rule(rule_id)
        return is_removed

    async def trust(self, folder: TrustedFolder) -> None:
        """Trust a folder, from the next turn of each session on."""
        await keep_folder(self.store, folder)

    async def distrust(self, workspace: str) -> bool:
        return await drop_folder(self.store, workspace)

    async def end(self, *, for_good: bool = True) -> None:
        """Stop gracefully. Connections are closed last, when the home is free for the clients.

        Without `for_good` the executor stays open for another host in this process.
        """
        self.peers.stop_listening()
        self._feed.close()
        await self._dispatch.close()
        await self._agents.close()
        if for_good:
            await self._runtime.executor.close()
        await self._session_services.close()
        await self.mcp.close()
        if self.memory is not None:
            await self.memory.close(MEMORY_DRAIN)
        try:
            await self._places.close()
        finally:
            # The home becomes free even if temporary files could not be removed.
            await self.store.close()
            await self._threads.close()
            await self.peers.close()

    # -- for the sessions

    async def open_child(self, session_id: str, opening: Opening) -> None:
        """Create the session of a child agent, or open it if it exists."""
        if await self.store.session(session_id) is None:
            used = (f"model:{opening.model}", *(f"tool:{name}" for name in opening.tools))
            brought = tuple(name for name in used if name in self._dispatch.capabilities)
            opening = msgspec.structs.replace(opening, brought=brought)
            await self._dispatch.session(session_id, opening)
        else:
            await self._dispatch.session(session_id)

    def _on_guest_change(self, session_id: str) -> None:
        self._feed.note(session_id)
        if self.memory is not None:
            self.memory.wake()

    def _on_session_closed(self, session_id: str) -> None:
        self._places.forget(session_id)
        if self.memory is not None:
            self.memory.session_closed(session_id)

    def _is_shared(self) -> bool:
        guests = self._dispatch.guests
        return guests is None or bool(guests.members)

    async def _open(
        self, session_id: str, opening: Opening | None, hub: EventHub | None
    ) -> Session:
        await self.mcp.load()
        if opening is None and not self._tools.are_loaded:
            (first, *_) = await self.store.events(session_id, limit=1) or [None]
            names = first.tools if isinstance(first, SessionOpened) else ()
            await self._tools.prepare_existing(names)
        scope = self._runtime.scope
        return await Session.open(session_id, self._services, scope, opening, hub=hub)
