"""What a session and its turns work with: the services of the host, and the session's own parts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from keryx.aio.clock import Clock
from keryx.aio.group import Group
from keryx.aio.hub import Hub
from keryx.aio.scope import Scope
from keryx.engine.approvals import Approvals, Judge, Rule
from keryx.engine.calls.background import Backgrounds
from keryx.engine.calls.call_environment import CallEnvironment
from keryx.engine.calls.call_hooks import CallHooks
from keryx.engine.calls.session_resources import SessionResources
from keryx.engine.context.tool_specs import ToolSpecs
from keryx.engine.context.transcript import Transcript
from keryx.engine.executor import Executor
from keryx.engine.limits import Limits
from keryx.engine.live.running_calls import RunningCalls
from keryx.engine.log.drafts import Drafts
from keryx.engine.log.fold import Fold
from keryx.engine.log.log_writer import LogWriter
from keryx.engine.log.resume_guard import ResumeGuard
from keryx.engine.log.state import Settings
from keryx.engine.memory.session_memory import CallsMemory
from keryx.engine.memory.session_search import search_sessions
from keryx.engine.money.spending import Spending
from keryx.engine.redaction import NO_SECRETS, Redactor
from keryx.engine.session_files import OpenWorkspace, SessionFiles
from keryx.events import (
    CallsSnapshot,
    ContextCompacting,
    Event,
    LiveEvent,
    Purpose,
    ToolsLoaded,
    Usage,
    UsageRecorded,
)
from keryx.ports.agents import Agents
from keryx.ports.files import Attachments, FileChange, Files
from keryx.ports.memory import MemoryScope
from keryx.ports.memory_access import HostMemory, Recall
from keryx.ports.model import Model
from keryx.ports.model_access import ModelAccess
from keryx.ports.store import Store
from keryx.ports.tool import Tool
from keryx.ports.workers import Workers

EVENT_WEIGHT: Final = 500
"""The approximate size of an event without its texts, in bytes."""


def report(session_id: str, name: str, error: BaseException) -> None:
    """Report a defect to the loop's exception handler."""
    asyncio.get_running_loop().call_exception_handler(
        {"message": f"{name} of session {session_id} failed", "exception": error}
    )


NO_RECALL: Final = Recall()


class PromptParts(msgspec.Struct, frozen=True):
    """Parts of the system prompt that are read when a turn starts, with warnings about them."""

    parts: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    warnings: tuple[str, ...] = ()
    at_start: tuple[str, ...] = ()
    """Warnings for the first turn of a session only."""
    recall: Recall = NO_RECALL
    """The memories for the message that starts the turn."""
    fault: Exception | None = None
    """Why the parts could not be read; the turn that needs them fails."""


async def no_prompt_parts(settings: Settings, workspace: str) -> PromptParts:
    del settings, workspace
    return PromptParts()


async def no_preparation(settings: Settings, workspace: str) -> None:
    """Do nothing."""
    del settings, workspace


def never_compact(profile: str) -> None:
    """Return None: a context is never compacted automatically."""
    del profile


def all_tools(tools: Sequence[Tool], loaded: Collection[str]) -> Sequence[Tool]:
    """Return all tools: each is described to the model."""
    del loaded
    return tools


def ignore(value: object) -> None:
    """Do nothing."""
    del value


WorkspaceRevert = tuple[Callable[[], Files], Sequence[FileChange]]
"""Opens the files of a workspace (in a thread), and the changes to revert there."""


class HostServices(msgspec.Struct, kw_only=True):
    """What a host provides to all of its sessions."""

    store: Store
    executor: Executor
    clock: Clock
    model: Callable[[str, str], Model]
    """Finds a model by its name, for a profile; `ModelError` if there is none."""
    tools: Callable[[Settings], Sequence[Tool]]
    """Finds the tools that a session with these settings may use."""
    described: Callable[[Sequence[Tool], Collection[str]], Sequence[Tool]] = all_tools
    """Chooses the tools that the model is told of: the session's tools, names of loaded ones."""
    environment: Callable[[str, Settings, Path, CallHooks], CallEnvironment]
    """Creates the environment of a session's calls: session id, settings, workspace, hooks."""
    prompt_parts: Callable[[Settings, str], Awaitable[PromptParts]] = no_prompt_parts
    """Reads the prompt parts when a turn starts: settings, workspace."""
    prepare_calls: Callable[[Settings, str], Awaitable[None]] = no_preparation
    """Is awaited before calls run in a workspace for which no turn has read its prompt parts."""
    files: OpenWorkspace | None = None
    attachments: Attachments | None = None
    workers: Callable[[Scope], Workers] | None = None
    """Creates a session's worker processes, for tools that must be killable."""
    revert: Callable[[Sequence[WorkspaceRevert]], Awaitable[None]] | None = None
    """Reverts file changes, by workspace: all of them, or none."""
    judge: Judge = msgspec.field(default_factory=Approvals)
    """Decides which calls need approval."""
    remember: Callable[[Rule], None] = ignore
    """Adds a rule from an `always` answer, for every session."""
    titles: Callable[[Settings], Model | None] | None = None
    """Finds the model that writes titles; None: the first message is the title."""
    agents: Callable[[str, Settings, bool], Agents] | None = None
    """Returns what runs the child agents of a session: its id and settings, and whether a person
    can answer them."""
    models_for_tools: Callable[[Settings], ModelAccess] | None = None
    """Finds the models that the calls of such a session may ask."""
    summaries: Callable[[Settings], Model] | None = None
    """Finds the model that writes summaries; None: the session's own model."""
    compact_at: Callable[[str], float | None] = never_compact
    """The part of a model's window at which a context is compacted, by profile; None: never."""
    memory: HostMemory | None = None
    """What is remembered beyond sessions; None: nothing."""
    rested: Callable[[str], None] = ignore
    """Is called when no turn of the session runs any more, and none waits."""
    changed: Callable[[str], None] = ignore
    """Is called when facts of the session are durable."""
    redactor: Redactor = NO_SECRETS
    """Removes the values of secrets from texts."""
    limits: Limits = msgspec.field(default_factory=Limits)
    spending: Spending | None = None
    """What the sessions spend, and whether they may spend more; None: nothing limits that."""
    resume_guard: ResumeGuard = msgspec.field(default_factory=ResumeGuard)
    tool_specs: ToolSpecs = msgspec.field(default_factory=ToolSpecs)

    def redact_with(self, redactor: Redactor) -> None:
        """Remove these secrets from now on."""
        self.redactor = redactor
        if self.memory is not None:
            self.memory.redact_with(redactor.text)


class SessionContext(msgspec.Struct):
    """One session's own parts. Everything on it changes on the session's loop, between awaits."""

    services: HostServices
    scope: Scope
    group: Group
    fold: Fold
    hub: Hub[Event]
    log: LogWriter
    files: SessionFiles
    drafts: Drafts
    background: Backgrounds
    resources: SessionResources
    workers: Workers | None
    transcripts: dict[str, tuple[Model, Transcript]] = msgspec.field(
        default_factory=dict[str, tuple[Model, Transcript]]
    )
    """By the name of the model, with the model that encoded them."""
    answers: dict[str, Callable[[str | None], None]] = msgspec.field(
        default_factory=dict[str, Callable[[str | None], None]]
    )
    """Resolves the call that waits for an approval or question; None: nobody answered in time."""
    reply: Callable[[], LiveEvent] | None = None
    """Returns the reply that is streaming, for readers that connect late."""
    left_over: set[str] = msgspec.field(default_factory=set[str])
    """Calls that have their outcome and may still run; their end will be logged."""
    running_calls: RunningCalls = msgspec.field(default_factory=RunningCalls)
    compacting: ContextCompacting | None = None
    """The event that says that a summary is being written; None if none is."""

    def snapshot(self) -> tuple[LiveEvent, ...]:
        """Return what a reader that connects late needs in addition to the facts."""
        running = self.running_calls.running()
        compacting = () if self.compacting is None else (self.compacting,)
        events = compacting if self.reply is None else (*compacting, self.reply())
        if running:
            snapshot = CallsSnapshot(
                session_id=self.fold.session_id,
                at=self.services.clock.wall(),
                after=self.hub.last,
                running=running,
            )
            events = (*events, snapshot)
        return events

    def report(self, name: str, error: BaseException) -> None:
        """Report a defect in this session."""
        report(self.fold.session_id, name, error)

    def show(self, kind: type[LiveEvent], **fields: Any) -> None:
        """Publish a live event, which is not logged."""
        self.hub.publish(
            kind(session_id=self.fold.session_id, at=self.services.clock.wall(), **fields),
            weight=EVENT_WEIGHT + len(fields.get("text", "")),
        )

    def environment(self, settings: Settings, workspace: Path, hooks: CallHooks) -> CallEnvironment:
        """Return the environment for this session's calls."""
        environment = self.services.environment(self.fold.session_id, settings, workspace, hooks)
        environment.background = self.background
        environment.resources = self.resources
        environment.log_usage = self._log_usage
        environment.check_budget = self.check_budget
        environment.search = partial(
            search_sessions,
            self.services.store,
            self.services.memory,
            MemoryScope(settings.memory_profile, str(workspace)),
            settings.person,
        )
        if self.services.agents is not None:
            turn = self.fold.turn
            attended = turn is None or turn.attended
            environment.agents = self.services.agents(self.fold.session_id, settings, attended)
        environment.log_loaded = self._log_loaded
        if self.services.memory is not None:
            environment.memory = CallsMemory(
                self.services.memory,
                self.fold,
                self.log,
                self.services.redactor,
                settings,
                str(workspace),
            )
        if self.services.models_for_tools is not None:
            environment.models = self.services.models_for_tools(settings)
        environment.workers = self.workers
        if self.files.can_open:
            environment.files = partial(self.files.open, str(workspace))
        return environment

    @property
    def has_budget(self) -> bool:
        """Whether a limit must be checked before each request."""
        return self.services.spending is not None and self.services.spending.is_active

    async def check_budget(self) -> None:
        """Raise `ModelError` if a limit for money or tokens does not allow another request."""
        if self.services.spending is not None:
            await self.services.spending.check(self.fold)

    def _log_usage(
        self, call_id: str, purpose: Purpose, model: str, usage: Usage | None, cost: float | None
    ) -> None:
        if purpose == "agent" and self.fold.turn is not None and call_id in self.fold.turn.agents:
            return  # this call runs again after a crash, and its child had ended before
        self.log.record(
            UsageRecorded, purpose=purpose, model=model, usage=usage, cost=cost, call_id=call_id
        )

    def _log_loaded(self, names: tuple[str, ...], call_id: str) -> None:
        new = tuple(name for name in names if name not in self.fold.loaded)
        if new:
            self.log.record(ToolsLoaded, names=new, call_id=call_id)

    def compact_at(self, profile: str, model: Model) -> int | None:
        """Return how many tokens start a compaction. None: never, or the window is unknown."""
        share, window = self.services.compact_at(profile), model.window
        return None if share is None or window is None else int(window * share)

    def transcript(self, model: Model) -> Transcript:
        """Return the transcript for this model; a reconfigured model gets a new one."""
        encoder, transcript = self.transcripts.get(model.name, (None, None))
        if transcript is None or encoder is not model:
            transcript = Transcript(model.encode)
            self.transcripts[model.name] = (model, transcript)
        return transcript
