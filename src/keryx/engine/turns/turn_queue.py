"""Runs the turns of a session, one after the other."""

from __future__ import annotations

import asyncio

import msgspec

from keryx import events as ev
from keryx.engine.log.state import Queued
from keryx.engine.operations.compaction import Compaction
from keryx.engine.operations.titles import Titles
from keryx.engine.session_context import NO_RECALL, PromptParts, SessionContext
from keryx.engine.turns.turn import Turn
from keryx.messages import well_formed
from keryx.ports.memory import MemoryScope
from keryx.ports.memory_access import Recall
from keryx.ports.store import Blob, blob_hash


class TurnQueue:
    """Runs the queued messages of one session, each as a turn."""

    def __init__(self, context: SessionContext) -> None:
        self._context = context
        self._resting = asyncio.Event()
        self._resting.set()
        self._titles = Titles(context)
        self.compaction = Compaction(context)
        self.turn: Turn | None = None
        """The running turn."""

    @property
    def is_resting(self) -> bool:
        """Whether no turn runs and none waits."""
        return self._resting.is_set()

    async def wait_rested(self) -> None:
        await self._resting.wait()

    async def resume(self) -> None:
        """Resume the turn that an earlier owner left, or begin the first queued one."""
        fold = self._context.fold
        if fold.turn is not None:
            prompt_parts = await self._logged_prompt_parts()
            try:
                await self._context.services.prepare_calls(fold.turn.settings, fold.turn.workspace)
            except Exception as error:  # noqa: BLE001 (a defect: it ends the turn, as when a turn begins)
                prompt_parts = PromptParts(fault=error)
            turn_id = fold.turn.turn_id
            self._start(Turn(self._context, self.compaction, turn_id, prompt_parts, resumed=True))
            return
        self._context.services.resume_guard.mark_resting(fold.session_id)
        if await self._begin_next():
            self._start_running()

    async def read_prompt_parts(self, workspace: str | None, text: str) -> PromptParts:
        """Read the prompt parts for a turn in this workspace (default: the session's).

        `text` is the message that the turn is for: memories that fit it are recalled.
        """
        settings = self._context.fold.settings
        workspace = workspace or settings.workspace
        try:
            prompt_parts = await self._context.services.prompt_parts(settings, workspace)
            parts = {part: well_formed(text) for part, text in prompt_parts.parts.items()}
            recall = await self._recall(MemoryScope(settings.memory_profile, workspace), text)
            # What a provider says of itself may hold a key of it.
            faults = map(self._context.services.redactor.text, recall.faults)
            return PromptParts(
                parts,
                tuple(map(well_formed, (*prompt_parts.warnings, *faults))),
                tuple(map(well_formed, prompt_parts.at_start)),
                recall,
            )
        except Exception as error:  # noqa: BLE001 (a defect: it ends the turn that needs the parts)
            return PromptParts(fault=error)

    async def _recall(self, scope: MemoryScope, text: str) -> Recall:
        memory, session_id = self._context.services.memory, self._context.fold.session_id
        if memory is None or self._context.fold.parent is not None:
            return NO_RECALL
        try:
            recall = await memory.context(session_id, scope, text)
            redacted = self._context.services.redactor.text
            memories = tuple(
                msgspec.structs.replace(memory, text=redacted(memory.text))
                for memory in recall.memories
            )
            return msgspec.structs.replace(recall, memories=memories)
        except Exception as error:  # noqa: BLE001 (a turn runs without its memories too)
            self._context.report("recalling", error)
            return Recall(late=("memory",))

    def start_next(self, prompt_parts: PromptParts) -> None:
        """Begin the turn of the first queued message, in the same commit as its acceptance."""
        self._start(self._begin(prompt_parts))

    def _start(self, turn: Turn) -> None:
        self.turn = turn
        self._start_running()

    def _start_running(self) -> None:
        self._resting.clear()
        self._context.group.start(self._run_all(), name=f"turns of {self._context.fold.session_id}")

    def _begin(self, prompt_parts: PromptParts) -> Turn:
        log, message = self._context.log, self._first()
        assert message is not None
        self._log_prompt_parts(prompt_parts)
        is_first = not self._context.fold.turn_outcomes
        log.record(
            ev.TurnStarted,
            turn_id=message.turn_id,
            message_ids=(message.message_id,),
            warnings=(*prompt_parts.warnings, *(prompt_parts.at_start if is_first else ())),
        )
        self._log_recall(message.turn_id, prompt_parts.recall)
        log.record(ev.MessageDelivered, turn_id=message.turn_id, message_id=message.message_id)
        turn = Turn(self._context, self.compaction, message.turn_id, prompt_parts)
        turn.begin()
        return turn

    async def _run_all(self) -> None:
        """Run one turn after the other until none waits; then the session rests."""
        try:
            while self.turn is not None:
                await self._run(self.turn)
                await self._begin_next()
        except Exception:
            # A log that failed is read again when the session is next opened.
            if self._context.log.broken is None:
                raise
        finally:
            self.turn = None
            self._resting.set()
            self._context.services.rested(self._context.fold.session_id)

    async def _run(self, turn: Turn) -> None:
        try:
            await turn.run()
        finally:
            self.turn = None
            resume_guard = self._context.services.resume_guard
            if resume_guard.unproven or resume_guard.waiting:
                resume_guard.mark_resting(self._context.fold.session_id)
        fold = self._context.fold
        if fold.title_count == 1 and fold.turn_outcomes.get(turn.turn_id) == "completed":
            self._titles.improve_once()

    async def _begin_next(self) -> bool:
        """Begin the next queued message. The queue may change while prompt parts are read."""
        while not self._context.scope.is_cancelled and (first := self._first()) is not None:
            workspace = first.workspace
            prompt_parts = await self.read_prompt_parts(workspace, first.text)
            if self._context.scope.is_cancelled:
                break
            if self._first() is first and first.workspace == workspace:
                self.turn = self._begin(prompt_parts)
                return True
        return False

    def _first(self) -> Queued | None:
        return next(iter(self._context.fold.queue.values()), None)

    # -- memories and prompt parts

    def _log_recall(self, turn_id: str, recall: Recall) -> None:
        """Log the memories that the model does not have in its context yet."""
        in_context = self._context.fold.memories.in_context
        new = tuple(memory for memory in recall.memories if memory.memory_id not in in_context)
        if new or recall.late:
            self._context.log.record(
                ev.MemoryRecalled,
                turn_id=turn_id,
                memories=new,
                late=recall.late,
                waited=recall.waited,
            )

    async def _logged_prompt_parts(self) -> PromptParts:
        """Return the prompt parts as logged: a resumed turn keeps what it had."""
        parts: dict[str, str] = {}
        for part, name in self._context.fold.prompt.items():
            data = await self._context.services.store.blob(name)
            if data is not None:
                parts[part] = data.decode(errors="replace")
        return PromptParts(parts)

    def _log_prompt_parts(self, prompt_parts: PromptParts) -> None:
        """Log the prompt parts that have changed, so that the log is complete."""
        log, removed = self._context.log, dict(self._context.fold.prompt)
        for part, text in prompt_parts.parts.items():
            data = text.encode()
            name = blob_hash(data)
            if removed.pop(part, None) != name:
                log.keep(Blob(name, data))
                log.record(ev.PromptChanged, part=part, blob=name)
        for part in removed:
            log.record(ev.PromptChanged, part=part, blob=None)
