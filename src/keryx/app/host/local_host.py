"""The host in this process: it owns the home, its sessions live here, others may attach to it."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, Self

from keryx.aio.bridge import Bridge
from keryx.aio.clock import RealClock
from keryx.app.attachments import HostAttachments, Uploads
from keryx.app.diffs import open_files, revert_files
from keryx.app.host.approval_rules import RuleBook, read_rules, set_policy
from keryx.app.host.dispatch import EventHub
from keryx.app.host.guests.host_peers import Sharing
from keryx.app.host.guests.shared_dispatch import ProgramGoneError, SharedDispatch
from keryx.app.host.home import GuestRoom, Home
from keryx.app.host.session_feed import SessionFeed
from keryx.app.host.socket_protocol import NewSession
from keryx.app.models import Models
from keryx.app.places import Places
from keryx.app.prompt_sources import PromptSources
from keryx.app.runtime import Runtime
from keryx.app.tools import HostTools, Tools, child_environment, secret_places
from keryx.config import DEFAULT, Config, secrets_of
from keryx.engine.approvals import Approvals
from keryx.engine.calls.call_environment import CallEnvironment
from keryx.engine.calls.call_hooks import CallHooks
from keryx.engine.limits import Limits
from keryx.engine.log.state import Settings
from keryx.engine.redaction import Redactor
from keryx.engine.session import Opening, Session
from keryx.engine.session_context import Changing, HostServices, Keep, PromptParts
from keryx.errors import DeveloperMustActError
from keryx.events import SessionOpened
from keryx.ports.files import Files
from keryx.ports.store import Store
from keryx.ports.tool import Tool
from keryx.sandbox.workers import Workers
from keryx.store.sqlite import SqliteStore

STORE_THREADS: Final = 8
"""One writes, the others read."""


class LocalHost:
    """Owns a home, and everything that runs for its sessions."""

    def __init__(
        self,
        *,
        runtime: Runtime,
        home: Home | GuestRoom,
        threads: Bridge,
        store: Store,
        models: Models,
        tools: Tools,
        config: Config,
        rules: RuleBook,
        titles: bool,
    ) -> None:
        approvals = Approvals(always=rules.rules)
        set_policy(approvals, config)
        self.store = store
        self._feed = SessionFeed(store)
        self._approvals, self._rules = approvals, rules
        self._runtime = runtime
        self._path = home.path
        self._threads = threads
        self._models = models
        self._tools = HostTools(tools, self._load_tools)
        self._config = config
        self._places = Places(runtime, config, home.path, home.plate.tmp)
        self._dispatch = SharedDispatch(
            runtime.scope,
            store,
            self._open,
            (*tools.brings, *models.brings),
            changed=self._feed.note,
            let_go=self._places.forget,
        )
        # The bus is the dispatch's own: there is nothing to add on the way.
        dispatch = self._dispatch
        self.tell, self.watch, self.view = dispatch.tell, dispatch.watch, dispatch.view
        self.changes = self._feed.read
        self.sharing = Sharing(self, home, runtime, self._dispatch, self._feed.note)
        self._services = self._surroundings(Uploads(home.path, runtime.bridge), titles=titles)

    def _surroundings(self, uploads: Uploads, *, titles: bool) -> HostServices:
        """What each session is given."""
        runtime, models, config = self._runtime, self._models, self._config
        return HostServices(
            store=self.store,
            attachments=self._attachments(uploads),
            executor=runtime.executor,
            clock=RealClock(),
            model=models.find,
            tools=self._granted,
            environment=self._environment,
            prompt_parts=partial(
                self._prompt_parts, PromptSources(runtime.bridge, config, self._configure)
            ),
            files=self._files,
            workers=Workers,
            revert=partial(revert_files, runtime.bridge),
            judge=self._approvals,
            remember=self._rules.add,
            titles=models.for_titles if titles else None,
            summaries=models.for_summaries,
            compact_at=models.compact_at,
            rested=self._dispatch.rested,
            changed=self._feed.note,
            redactor=Redactor(secrets_of(config)),
            limits=Limits(config.limits.steps, config.limits.tokens, config.limits.seconds),
        )

    @classmethod
    async def begin(
        cls,
        home: Home | GuestRoom,
        runtime: Runtime,
        *,
        models: Models,
        tools: Tools,
        config: Config,
        titles: bool = False,
        take_over: bool = False,
    ) -> Self:
        """Open the home's store. The host of a home leads it next, a guest serves its room."""
        # Threads of its own: a commit must not wait behind tools that block.
        threads = Bridge(runtime.scope, threads=STORE_THREADS)
        try:
            if config.in_memory:  # loaded by the few who want it
                store: Store = importlib.import_module("keryx.store.memory").MemoryStore()
            else:
                store = await SqliteStore.open(
                    home.store,
                    threads,
                    durability=config.durability,
                    take_over=take_over,
                    guest=isinstance(home, GuestRoom),
                )
            rules = RuleBook(store, await read_rules(store))
        except BaseException:
            await threads.close()
            await runtime.bridge.to_thread(home.release)
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
            titles=titles,
        )

    async def lead(self, home: Home, *, resume: bool) -> None:
        """Own the home, with the guests that live in it; they go on hosting what they host."""
        # Before the guests are asked: whatever one of them begins later it asks for first.
        unfinished = await self.sharing.left_behind(home, self.store, resume=resume)
        try:
            await self.sharing.lead(home, self.store)
        except BaseException:
            await self.sharing.without(home)
            raise
        await self.resume([each for each in unfinished if not self.sharing.is_guests(each)])

    async def resume(self, unfinished: Sequence[str]) -> None:
        """Go on with what an earlier host left unfinished."""
        await self._dispatch.resume(unfinished, self._services.resume_guard)

    # -- what front ends ask

    async def open(self, wanted: NewSession) -> None:
        """Make a session, or take up one that exists."""
        if wanted.exists:
            if await self.store.session(wanted.session_id) is None:
                raise DeveloperMustActError(
                    f"there is no session {wanted.session_id!r}; "
                    "`keryx sessions list` shows those there are"
                )
            with suppress(ProgramGoneError):  # it can be read; who tells it something is told
                await self._dispatch.session(wanted.session_id)
            return
        if wanted.for_others:
            await self._tools.prepare(wanted.tools)
        opening = Opening(
            model=self._model_for(wanted),
            workspace=wanted.workspace,
            tools=self._tools.chosen(wanted.tools, for_others=wanted.for_others),
            profile=wanted.profile or DEFAULT,
            effort=wanted.effort,
            personality=wanted.personality,
            title=wanted.title,
            approvals=wanted.approvals,
            read_only=wanted.read_only,
            brought=self.brought_for(wanted),
        )
        await self._dispatch.session(wanted.session_id, opening)

    def brought_for(self, wanted: NewSession) -> tuple[str, ...]:
        """What a new session like this uses that only this program has."""
        names = self._tools.chosen(wanted.tools, for_others=wanted.for_others)
        used = (f"model:{self._model_for(wanted)}", *(f"tool:{name}" for name in names))
        return tuple(each for each in used if each in self._dispatch.brings)

    def _model_for(self, wanted: NewSession) -> str:
        profile, for_others = wanted.profile or DEFAULT, wanted.for_others
        return wanted.model or self._models.default_of(profile, for_others=for_others)

    async def delete(self, session_id: str) -> bool:
        """Everything of the session is gone. False: there was none."""
        await self._dispatch.forget(session_id)
        deleted = await self.store.delete(session_id)
        self._feed.note(session_id)
        return deleted

    async def remove_rule(self, rule_id: str) -> bool:
        is_removed = await self._rules.remove(rule_id)
        await self.sharing.remove_rule(rule_id)
        return is_removed

    async def end(self, *, for_good: bool = True) -> None:
        """Stop gracefully. Those attached are let go last, when the home is free for them.

        Not `for_good`: another host may follow in this process, and needs its executor.
        """
        self.sharing.stop_listening()
        self._feed.close()
        await self._dispatch.close()
        if for_good:
            await self._runtime.executor.close()
        try:
            await self._places.close()
        finally:
            # Whatever could not be removed, the home is free for others.
            await self.store.close()
            await self._threads.close()
            await self.sharing.close()

    # -- what sessions need

    async def _prompt_parts(
        self, briefs: PromptSources, settings: Settings, workspace: str
    ) -> PromptParts:
        guests = self._dispatch.guests
        if guests is None or guests.members:  # others host sessions of this home as well
            await self._rules.refresh()  # another host of the home may have made one
        return await briefs.read(settings, workspace)

    async def _load_tools(self) -> Tools:
        return await self._runtime.bridge.to_thread(Tools.built_in, self._config)

    async def _open(
        self, session_id: str, opening: Opening | None, hub: EventHub | None
    ) -> Session:
        if opening is None and self._tools.brings:
            (first, *_) = await self.store.events(session_id, limit=1) or [None]
            await self._tools.prepare(first.tools if isinstance(first, SessionOpened) else ())
        scope = self._runtime.scope
        return await Session.open(session_id, self._services, scope, opening, hub=hub)

    def _granted(self, settings: Settings) -> list[Tool]:
        return self._tools.granted(settings.tools)

    def _environment(
        self, session_id: str, settings: Settings, workspace: Path, hooks: CallHooks
    ) -> CallEnvironment:
        return self._runtime.call_environment(
            session_id,
            self._granted(settings),
            workspace=workspace,
            hooks=hooks,
            env=child_environment(self._config, session_id, workspace),
            redactor=self._services.redactor,
            place=self._places.of(session_id, workspace, read_only=settings.read_only),
        )

    def _attachments(self, uploads: Uploads) -> HostAttachments:
        bridge, folder = self._runtime.bridge, self._places.uploads
        return HostAttachments(self.store, bridge, uploads, self._models.images, folder)

    def _files(self, session_id: str, workspace: str, keep: Keep, changing: Changing) -> Files:
        hidden = (self._path, *secret_places(self._config))
        uploads = self._places.uploads(session_id)
        return open_files(workspace, keep, changing, hidden=hidden, uploads=uploads)

    def _configure(self, config: Config) -> None:
        """The configuration has changed; turns that start from now on see it."""
        self._config = config
        self._models.configure(config)
        self._services.redactor = Redactor(secrets_of(config))
        set_policy(self._approvals, config)
