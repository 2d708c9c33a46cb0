"""What a session and its turns work with: the host's parts, and the session's own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
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
from keryx.engine.redaction import NO_SECRETS, Redactor
from keryx.errors import UserMustActError
from keryx.events import CallsSnapshot, ContextCompacting, Event, FilesChanged, LiveEvent
from keryx.messages import File, Image
from keryx.ports.files import Attachments, FileChange, Files
from keryx.ports.model import Model
from keryx.ports.store import Blob, Store, blob_hash
from keryx.ports.tool import Tool
from keryx.ports.workers import Workers

EVENT_WEIGHT: Final = 500
"""Bytes that an event takes beside its texts, about."""


def report(session_id: str, name: str, error: BaseException) -> None:
    """Tell whoever runs the host of a defect."""
    asyncio.get_running_loop().call_exception_handler(
        {"message": f"{name} of session {session_id} failed", "exception": error}
    )


class PromptParts(msgspec.Struct, frozen=True):
    """What a turn starts with that comes from outside: parts of the prompt, and what is amiss."""

    parts: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    warnings: tuple[str, ...] = ()
    fault: Exception | None = None
    """Why it could not be read; the turn that needs it fails."""


async def no_prompt_parts(settings: Settings, workspace: str) -> PromptParts:
    """Nothing from outside."""
    del settings, workspace
    return PromptParts()


def no_part(profile: str) -> None:
    """Of no window."""
    del profile


def ignore(told: object) -> None:
    """Nobody wants to know."""
    del told


Keep = Callable[[bytes], Awaitable[str]]
Changing = Callable[[Sequence[FileChange], str | None], Awaitable[None]]


Reverting = tuple[Callable[[], Files], Sequence[FileChange]]
"""Opens the files of a workspace, in a thread; and the changes there that are to be taken back."""


class HostServices(msgspec.Struct, kw_only=True):
    """What the host gives to each of its sessions."""

    store: Store
    executor: Executor
    clock: Clock
    model: Callable[[str, str], Model]
    """Finds a model by its name and the profile that asks; `ModelError` if there is none."""
    tools: Callable[[Settings], Sequence[Tool]]
    """Finds the tools that a session with these settings may use."""
    environment: Callable[[str, Settings, Path, CallHooks], CallEnvironment]
    """Makes what a session's calls share: session id, settings, workspace, hooks."""
    prompt_parts: Callable[[Settings, str], Awaitable[PromptParts]] = no_prompt_parts
    """Reads what comes from outside, at a turn's start."""
    files: Callable[[str, str, Keep, Changing], Files] | None = None
    """Makes what a session knows of the files of a workspace. Asks the disk."""
    attachments: Attachments | None = None
    workers: Callable[[Scope], Workers] | None = None
    """Makes the processes of a session's own for tools that must be killable."""
    revert: Callable[[Sequence[Reverting]], Awaitable[None]] | None = None
    """Takes back changes of files, by workspace: all of them, or none."""
    judge: Judge = msgspec.field(default_factory=Approvals)
    """Which calls need a person's consent."""
    remember: Callable[[Rule], None] = ignore
    """A person consented to such calls in every session."""
    titles: Callable[[Settings], Model | None] | None = None
    """Finds the model that gives titles; None: what a person says first is the title."""
    summaries: Callable[[Settings], Model] | None = None
    """Finds the model that sums up what was said; None: the session's own."""
    compact_at: Callable[[str], float | None] = no_part
    """At which part of a model's window that is done by itself, by profile; None: never."""
    rested: Callable[[str], None] = ignore
    """No turn of this session runs any more, and none waits."""
    changed: Callable[[str], None] = ignore
    """A fact of this session is durable."""
    redactor: Redactor = NO_SECRETS
    """Takes the values of secrets out of what is said."""
    limits: Limits = msgspec.field(default_factory=Limits)
    resume_guard: ResumeGuard = msgspec.field(default_factory=ResumeGuard)
    tool_specs: ToolSpecs = msgspec.field(default_factory=ToolSpecs)


class SessionContext(msgspec.Struct):
    """One session's own parts. Everything on it changes on the session's loop, between awaits."""

    services: HostServices
    scope: Scope
    group: Group
    fold: Fold
    hub: Hub[Event]
    log: LogWriter
    drafts: Drafts
    background: Backgrounds
    workers: Workers | None
    transcripts: dict[str, tuple[Model, Transcript]] = msgspec.field(
        default_factory=dict[str, tuple[Model, Transcript]]
    )
    """By the name of the model, with the very model whose bytes they hold."""
    answers: dict[str, Callable[[str | None], None]] = msgspec.field(
        default_factory=dict[str, Callable[[str | None], None]]
    )
    """Who waits for which approval or question; None tells that nobody answered in time."""
    files: dict[str, Files] = msgspec.field(default_factory=dict[str, Files])
    """By workspace: what the session knows of its files."""
    reply: Callable[[], LiveEvent] | None = None
    """Tells the reply that streams right now, for readers that come late."""
    left_over: set[str] = msgspec.field(default_factory=set[str])
    """Calls that have their outcome and may still run: the log will hear of their end."""
    showing: RunningCalls = msgspec.field(default_factory=RunningCalls)
    compacting: ContextCompacting | None = None
    """That a summary is being written right now."""

    def snapshot(self) -> tuple[LiveEvent, ...]:
        """What a reader that comes late needs beside the facts."""
        running = self.showing.running()
        told = () if self.compacting is None else (self.compacting,)
        streaming = told if self.reply is None else (*told, self.reply())
        if not running:
            return streaming
        return (
            *streaming,
            CallsSnapshot(
                session_id=self.fold.session_id,
                at=self.services.clock.wall(),
                after=self.hub.last,
                running=running,
            ),
        )

    def report(self, name: str, error: BaseException) -> None:
        """A defect came up in this session. Whoever runs the host is told."""
        report(self.fold.session_id, name, error)

    def show(self, kind: type[LiveEvent], **fields: Any) -> None:
        """A passing event, for whoever watches."""
        self.hub.publish(
            kind(session_id=self.fold.session_id, at=self.services.clock.wall(), **fields),
            weight=EVENT_WEIGHT + len(fields.get("text", "")),
        )

    def environment(self, settings: Settings, workspace: Path, hooks: CallHooks) -> CallEnvironment:
        """The way of this session's calls through the executor."""
        environment = self.services.environment(self.fold.session_id, settings, workspace, hooks)
        environment.background = self.background
        environment.workers = self.workers
        if self.services.files is not None:
            environment.files = partial(self.open_files, str(workspace))
        return environment

    def open_files(self, workspace: str) -> Files:
        """What the session knows of the files of this workspace. Asks the disk: in a thread."""
        found = self.files.get(workspace)
        if found is None:
            assert self.services.files is not None
            log = partial(self._log_changes, workspace)
            made = self.services.files(self.fold.session_id, workspace, self._keep, log)
            found = self.files.setdefault(workspace, made)  # one wins, whoever was first
        return found

    async def _keep(self, data: bytes) -> str:
        blob = Blob(blob_hash(data), data)
        self.log.keep(blob)
        return blob.hash

    async def _log_changes(
        self, workspace: str, changes: Sequence[FileChange], call_id: str | None
    ) -> None:
        """Committed before the renames, so that no change is ever unknown."""
        by_person = call_id is None or call_id in self.fold.person_calls
        turn = None if by_person else self.fold.turn
        for change in changes:
            if change.before is not None:
                await self._keep(change.before)
            self.log.record(
                FilesChanged,
                turn_id=None if turn is None else turn.turn_id,
                call_id=call_id,
                path=str(change.path),
                before=change.before_hash,
                after=change.after_hash,
                kept=change.can_be_undone,
                workspace=workspace,
            )
        await self.log.durable()

    async def bring(self, attachments: Sequence[Image | File]) -> None:
        """What a message names as attached is kept with it; `UserMustActError` if it is nowhere."""
        store, found = self.services.store, self.services.attachments
        for part in attachments:
            data = None if found is None else await found.uploaded(part.blob)
            if data is not None:
                await self._keep(data)
            elif await store.blob(part.blob) is None:
                raise UserMustActError(f"there is no upload {part.blob[:12]}…; upload it again")

    async def prepare_attachments(self, model: Model) -> None:
        """What the next request is about is at hand, for the model and for its tools."""
        coming = self.transcript(model).coming(self.fold)
        if coming and self.services.attachments is not None:
            await self.log.durable()
            await self.services.attachments.prepare(self.fold.session_id, coming)

    def compact_at(self, profile: str, model: Model) -> int | None:
        """Return how many tokens start a compaction. None: never, or the window is unknown."""
        share, window = self.services.compact_at(profile), model.window
        return None if share is None or window is None else int(window * share)

    def transcript(self, model: Model) -> Transcript:
        """What this model is sent. One that was configured anew may encode in another way."""
        encoder, transcript = self.transcripts.get(model.name, (None, None))
        if transcript is None or encoder is not model:
            transcript = Transcript(model.encode)
            self.transcripts[model.name] = (model, transcript)
        return transcript
