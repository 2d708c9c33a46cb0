"""Provides what the sessions of a host use, by the configuration that holds now."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from keryx.aio.clock import RealClock
from keryx.app.host_tools import SKILL, HostTools
from keryx.app.models import Models, ModelsForTools
from keryx.app.runtime import Runtime
from keryx.app.services.approval_rules import RuleBook, set_policy
from keryx.app.services.attachments import HostAttachments, Uploads
from keryx.app.services.diffs import open_files, revert_files
from keryx.app.services.places import Places
from keryx.app.services.prompt_sources import PromptSources
from keryx.app.tools import child_environment, secret_places
from keryx.config import Config, secrets_of
from keryx.engine.approvals import Approvals
from keryx.engine.calls.call_environment import CallEnvironment
from keryx.engine.calls.call_hooks import CallHooks
from keryx.engine.limits import Limits
from keryx.engine.log.state import Settings
from keryx.engine.redaction import Redactor
from keryx.engine.session_context import HostServices, PromptParts
from keryx.engine.session_files import LogChanges, StoreBlob
from keryx.ports.files import Files
from keryx.ports.hook_programs import HookPrograms
from keryx.ports.store import Store
from keryx.ports.tool import Tool
from keryx.sandbox.local import LocalPlace
from keryx.sandbox.workers import Workers
from keryx.tools.mcp.deferral import SEARCH, described
from keryx.tools.mcp.servers import McpServers


class SessionServices:
    """The services of one host for its sessions; they follow changes of its configuration."""

    def __init__(
        self,
        *,
        runtime: Runtime,
        store: Store,
        home: Path,
        models: Models,
        tools: HostTools,
        places: Places,
        mcp: McpServers,
        rules: RuleBook,
        config: Config,
        is_shared: Callable[[], bool],
        titles: bool,
    ) -> None:
        """`is_shared`: whether other hosts use this home too, and may add approval rules."""
        self._runtime, self._home, self._config, self._mcp = runtime, home, config, mcp
        self._models, self._tools, self._places = models, tools, places
        self._rules, self._approvals = rules, Approvals(always=rules.rules)
        set_policy(self._approvals, config)
        self._is_shared = is_shared
        self._sources = PromptSources(runtime.bridge, config, tools, self._configure)
        self.provided = self._provide(store, titles=titles)

    def _provide(self, store: Store, *, titles: bool) -> HostServices:
        runtime, models, limits = self._runtime, self._models, self._config.limits
        uploads = Uploads(self._home, runtime.bridge)
        return HostServices(
            store=store,
            attachments=HostAttachments(
                store, runtime.bridge, uploads, models.images, self._places.uploads
            ),
            executor=runtime.executor,
            clock=RealClock(),
            model=models.find,
            tools=self._offered,
            described=described,
            environment=self._environment,
            prompt_parts=self._prompt_parts,
            files=self._files,
            workers=Workers,
            revert=partial(revert_files, runtime.bridge),
            judge=self._approvals,
            remember=self._rules.add,
            titles=models.for_titles if titles else None,
            summaries=models.for_summaries,
            models_for_tools=partial(ModelsForTools, models),
            compact_at=models.compact_at,
            redactor=Redactor(secrets_of(self._config)),
            limits=Limits(limits.steps, limits.tokens, limits.seconds),
        )

    async def _prompt_parts(self, settings: Settings, workspace: str) -> PromptParts:
        if self._is_shared():
            await self._rules.refresh()
        parts = await self._sources.read(settings, workspace)
        if not self._mcp.is_granted(settings.tools):
            return parts
        notes = await self._mcp.prepare(settings.tools)
        texts = {"mcp": notes.text} if notes.text else {}
        return msgspec.structs.replace(
            parts, parts={**parts.parts, **texts}, warnings=(*parts.warnings, *notes.warnings)
        )

    def _offered(self, settings: Settings) -> list[Tool]:
        """Return the tools that a model is told of: no tool for skills if there are none."""
        tools = self._granted(settings)
        if self._sources.has_skills or not self._tools.has_skills_tool(settings.tools):
            return tools
        return [tool for tool in tools if tool.name != SKILL]

    def _granted(self, settings: Settings) -> list[Tool]:
        tools = [tool for tool in self._tools.granted(settings.tools) if tool.name != SEARCH]
        if not len(self._mcp) or not (of_servers := self._mcp.granted(settings.tools)):
            return tools
        return [*tools, *self._tools.granted((SEARCH,)), *of_servers]

    def _environment(
        self, session_id: str, settings: Settings, workspace: Path, hooks: CallHooks
    ) -> CallEnvironment:
        place = self._places.of(session_id, workspace, read_only=settings.read_only)
        env = child_environment(self._config, session_id, workspace)
        environment = self._runtime.call_environment(
            session_id,
            self._granted(settings),
            workspace=workspace,
            hooks=hooks,
            env=env,
            redactor=self.provided.redactor,
            place=place,
        )
        environment.programs = self._hooks(place, env, workspace)
        return environment

    def _hooks(
        self, place: LocalPlace, env: Mapping[str, str], workspace: Path
    ) -> HookPrograms | None:
        """Return the hooks around the calls of a session; None: there are none."""
        settings = self._config.hooks
        if not settings:
            return None
        # Imported only here: most homes have no hooks.
        programs: Any = importlib.import_module("keryx.tools.hooks.programs")
        return programs.HookTable(
            [
                programs.Hook(
                    settings=hook,
                    name=hook.label,
                    place=place if hook.confined else self._places.unconfined(workspace),
                    env=env,
                    cwd=str(workspace),
                )
                for hook in settings
            ]
        )

    def _files(self, session_id: str, workspace: str, keep: StoreBlob, log: LogChanges) -> Files:
        hidden = (self._home, *secret_places(self._config))
        uploads = self._places.uploads(session_id)
        return open_files(workspace, keep, log, hidden=hidden, uploads=uploads)

    def _configure(self, config: Config) -> None:
        """Use a changed configuration for all turns that start from now on."""
        self._config = config
        self._models.configure(config)
        self.provided.redactor = Redactor(secrets_of(config))
        set_policy(self._approvals, config)
        self._mcp.configure(config.mcp)
