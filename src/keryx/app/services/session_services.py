"""Provides what the sessions of a host use, by the configuration that holds now."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import msgspec

from keryx.aio.clock import RealClock
from keryx.app.host_tools import SKILL, HostTools
from keryx.app.models import Models
from keryx.app.money.known_prices import KnownPrices
from keryx.app.money.usage_export import UsageExport
from keryx.app.runtime import Runtime
from keryx.app.services.approval_rules import RuleBook, set_policy
from keryx.app.services.attachments import HostAttachments, Uploads
from keryx.app.services.diffs import open_files, revert_files
from keryx.app.services.mcp_servers import open_servers
from keryx.app.services.models_for_tools import ModelsForTools
from keryx.app.services.places import Places
from keryx.app.services.prompt_sources import PromptSources, read_workspace, with_skills
from keryx.app.skill_folders import skill_folders
from keryx.app.tools import child_environment, secret_places
from keryx.config import Config, secrets_of
from keryx.engine.approvals import Approvals
from keryx.engine.calls.call_environment import CallEnvironment
from keryx.engine.calls.call_hooks import CallHooks
from keryx.engine.limits import Limits
from keryx.engine.log.state import Settings
from keryx.engine.money.spending import Spending
from keryx.engine.redaction import Redactor
from keryx.engine.session_context import HostServices, PromptParts
from keryx.engine.session_files import LogChanges, StoreBlob
from keryx.ports.files import Files
from keryx.ports.hook_programs import HookPrograms
from keryx.ports.store import Store
from keryx.ports.tool import Tool
from keryx.sandbox.local import LocalPlace
from keryx.sandbox.workers import Workers
from keryx.tools.hooks.settings import HookSettings
from keryx.tools.mcp.deferral import SEARCH, described
from keryx.tools.mcp.servers import McpServers


class _NoDecision(msgspec.Struct, frozen=True):
    """The workspace brings nothing along; the same attributes as a `Decision`."""

    workspace: None = None
    at_start: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


_NO_DECISION: Final = _NoDecision()


def _skill_tool(folders: tuple[Path, ...]) -> Tool:
    # Imported only here: a program that passes its own tools starts faster.
    module: Any = importlib.import_module("keryx.tools.skills.skill_tool")
    tool: Tool = module.skill_tool(folders)
    return tool


def _limits(config: Config) -> Limits:
    return Limits(**msgspec.structs.asdict(config.limits))


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
        self._own_skill_tool = cache(_skill_tool)
        self._workspaces: Any = None
        """The `Workspaces` of this host, once a session has one that brings something along."""
        self._sources = PromptSources(runtime.bridge, config, tools, self._configure)
        self._prices = KnownPrices(models, lambda: self._config, runtime.bridge.to_thread)
        self._export = UsageExport(
            lambda: self._config.usage.export.url, runtime.http, runtime.scope
        )
        self._spending = Spending(store, RealClock(), _limits(config), self._prices.load)
        self.provided = self._provide(store, titles=titles)
        self._export_usage(config)

    def _provide(self, store: Store, *, titles: bool) -> HostServices:
        runtime, models = self._runtime, self._models
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
            prepare_calls=self._prepare_calls,
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
            limits=_limits(self._config),
            spending=self._spending,
        )

    def _export_usage(self, config: Config) -> None:
        self._spending.on_turn = None if config.usage.export.url is None else self._export.add

    async def _prompt_parts(self, settings: Settings, workspace: str) -> PromptParts:
        if self._models.loading is not None:
            await self._models.wait_loaded()
        if self._is_shared():
            await self._rules.refresh()
        sources = await self._sources.read(settings, workspace)
        decision = await self._decide(workspace, sources.workspace)
        trusted, skills = decision.workspace, sources.skills
        if trusted is not None and self._tools.has_skills_tool(settings.tools):
            names = {skill.name for skill in skills}
            skills = [*skills, *(skill for skill in trusted.skills if skill.name not in names)]
        parts = with_skills(sources.parts, skills)
        mcp = self._config.mcp
        servers = [self._mcp] if mcp.servers or mcp.problems else []
        servers += [] if trusted is None else [trusted.servers]
        notes = [
            await group.prepare(settings.tools)
            for group in servers
            if group.is_granted(settings.tools)
        ]
        texts = "\n".join(note.text for note in notes if note.text)
        parts = msgspec.structs.replace(
            parts,
            parts={**parts.parts, **({"mcp": texts} if texts else {})},
            warnings=(
                *parts.warnings,
                *decision.warnings,
                *(warning for note in notes for warning in note.warnings),
            ),
            at_start=decision.at_start,
        )
        if self._spending.is_active and self.provided.limits.has_cost:
            parts = await self._prices.with_warnings(parts, settings)
        return parts

    async def _prepare_calls(self, settings: Settings, workspace: str) -> None:
        """Decide about the workspace before calls that no new turn precedes."""
        await self._models.wait_loaded()
        config = self._config
        content = await self._runtime.bridge.to_thread(read_workspace, Path(workspace), config)
        trusted = (await self._decide(workspace, content)).workspace
        if trusted is not None and trusted.servers.is_granted(settings.tools):
            await trusted.servers.prepare(settings.tools)

    async def _decide(self, workspace: str, content: Any) -> Any:
        """Return whether what this workspace brings along is used, as a `Decision`."""
        if self._workspaces is None:
            if content is None:
                return _NO_DECISION
            # Imported only here: most workspaces bring nothing along.
            workspaces: Any = importlib.import_module("keryx.app.trust.workspaces")
            self._workspaces = workspaces.Workspaces(self.provided.store, self._open_servers)
        config = self._config
        return await self._workspaces.decide(
            workspace, content, config.environment, config.mcp.servers
        )

    def _open_servers(self, workspace: Path) -> McpServers:
        return open_servers(self._runtime, self._places, self._config, workspace)

    def _trusted(self, workspace: str) -> Any:
        """Return the `TrustedWorkspace` of this folder; None: nothing of it is used."""
        return None if self._workspaces is None else self._workspaces.of(workspace)

    async def close(self) -> None:
        """End the programs of all workspaces, and the export of usage."""
        await self._export.close()
        if self._workspaces is not None:
            await self._workspaces.close()

    def _offered(self, settings: Settings) -> list[Tool]:
        """Return the tools that a model is told of: no tool for skills if there are none."""
        tools, trusted = self._granted(settings), self._trusted(settings.workspace)
        has_skills = self._sources.has_skills(settings.profile) or (
            trusted is not None and trusted.skills
        )
        if has_skills or not self._tools.has_skills_tool(settings.tools):
            return tools
        return [tool for tool in tools if tool.name != SKILL]

    def _granted(self, settings: Settings) -> list[Tool]:
        tools = [tool for tool in self._tools.granted(settings.tools) if tool.name != SEARCH]
        if self._tools.has_skills_tool(settings.tools):
            skill = self._skill_tool(settings)
            tools = [skill if tool.name == SKILL else tool for tool in tools]
        of_servers: list[Tool] = []
        if self._config.mcp.servers:
            of_servers += self._mcp.granted(settings.tools)
        if (trusted := self._trusted(settings.workspace)) is not None:
            of_servers += trusted.servers.granted(settings.tools)
        if not of_servers:
            return tools
        offered = [*tools, *self._tools.granted((SEARCH,)), *of_servers]
        # Of two tools of one name the first counts: it is closer to the user.
        by_name = {tool.name: tool for tool in reversed(offered)}
        return [*reversed(by_name.values())]

    def _skill_tool(self, settings: Settings) -> Tool:
        """Return the tool for the skills of a session's profile and of its trusted workspace."""
        trusted = self._trusted(settings.workspace)
        of_workspace = None if trusted is None else trusted.skill
        skill_tool: Callable[..., Tool] = of_workspace or self._own_skill_tool
        return skill_tool(skill_folders(self._config, settings.profile))

    def _environment(
        self, session_id: str, settings: Settings, workspace: Path, hooks: CallHooks
    ) -> CallEnvironment:
        place = self._places.of(session_id, workspace, read_only=settings.read_only)
        env = child_environment(self._config, session_id, workspace)
        if settings.workspace != str(workspace):
            settings = msgspec.structs.replace(settings, workspace=str(workspace))
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
        trusted = self._trusted(str(workspace))
        of_workspace: tuple[HookSettings, ...] = () if trusted is None else trusted.content.hooks
        if not self._config.hooks and not of_workspace:
            return None
        # Imported only here: most homes have no hooks.
        programs: Any = importlib.import_module("keryx.tools.hooks.programs")
        unconfined = self._places.unconfined(workspace)
        hook_of: Any = partial(programs.Hook, env=env, cwd=str(workspace))
        own = [
            hook_of(settings=hook, name=hook.label, place=place if hook.confined else unconfined)
            for hook in self._config.hooks
        ]
        others = [
            hook_of(settings=hook, name=f"{hook.label} (of the workspace)", place=place)
            for hook in of_workspace
        ]
        table: HookPrograms = programs.HookTable([*own, *others])
        return table

    def _files(self, session_id: str, workspace: str, keep: StoreBlob, log: LogChanges) -> Files:
        hidden = (self._home, *secret_places(self._config))
        uploads = self._places.uploads(session_id)
        return open_files(workspace, keep, log, hidden=hidden, uploads=uploads)

    def _configure(self, config: Config) -> None:
        """Use a changed configuration for all turns that start from now on."""
        self._config = config
        self._models.configure(config)
        self.provided.redact_with(Redactor(secrets_of(config)))
        self.provided.limits = _limits(config)
        self._spending.set_limits(self.provided.limits)
        self._export_usage(config)
        set_policy(self._approvals, config)
        self._mcp.configure(config.mcp)
