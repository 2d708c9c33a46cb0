"""The turns of a session, one after the other: which one runs, and which comes next."""

from __future__ import annotations

import asyncio

from keryx import events as ev
from keryx.engine.log.state import Queued
from keryx.engine.operations.compaction import Compaction
from keryx.engine.operations.titles import Titles
from keryx.engine.session_context import PromptParts, SessionContext
from keryx.engine.turns.turn import Turn
from keryx.messages import well_formed
from keryx.ports.store import Blob, blob_hash


class TurnQueue:
    """Runs the queued messages of one session, each as a turn."""

    def __init__(self, context: SessionContext) -> None:
        self._context = context
        self._rest = asyncio.Event()
        self._rest.set()
        self._titles = Titles(context)
        self.compaction = Compaction(context)
        self.turn: Turn | None = None
        """The one that runs."""

    @property
    def is_resting(self) -> bool:
        """Whether no turn runs and none waits."""
        return self._rest.is_set()

    async def wait_rested(self) -> None:
        await self._rest.wait()

    async def go_on(self) -> None:
        """Resume what an earlier owner left, or begin what is queued."""
        fold = self._context.fold
        if fold.turn is not None:
            prompt_parts = await self._logged_brief()
            turn_id = fold.turn.turn_id
            self._start(Turn(self._context, self.compaction, turn_id, prompt_parts, resumed=True))
            return
        self._context.services.resume_guard.rests(fold.session_id)
        if await self._begin_next():
            self._work_soon()

    async def read_brief(self, workspace: str | None) -> PromptParts:
        """What a turn in this workspace (default: the session's) would start with."""
        settings = self._context.fold.settings
        where = workspace or settings.workspace
        try:
            prompt_parts = await self._context.services.prompt_parts(settings, where)
            parts = {part: well_formed(text) for part, text in prompt_parts.parts.items()}
            return PromptParts(parts, tuple(map(well_formed, prompt_parts.warnings)))
        except Exception as error:  # noqa: BLE001 (a defect: the turn that needs it ends with it)
            return PromptParts(fault=error)

    def start_next(self, prompt_parts: PromptParts) -> None:
        """Begin the turn of the first queued message, in the same commit as its acceptance."""
        self._start(self._begin(prompt_parts))

    def _start(self, turn: Turn) -> None:
        self.turn = turn
        self._work_soon()

    def _work_soon(self) -> None:
        self._rest.clear()
        self._context.group.start(self._work(), name=f"turns of {self._context.fold.session_id}")

    def _begin(self, prompt_parts: PromptParts) -> Turn:
        log, message = self._context.log, self._first()
        assert message is not None
        self._log_brief(prompt_parts)
        log.record(
            ev.TurnStarted,
            turn_id=message.turn_id,
            message_ids=(message.message_id,),
            warnings=prompt_parts.warnings,
        )
        log.record(ev.MessageDelivered, turn_id=message.turn_id, message_id=message.message_id)
        turn = Turn(self._context, self.compaction, message.turn_id, prompt_parts)
        turn.begin()
        return turn

    async def _work(self) -> None:
        """One turn after the other, until none waits; whatever happens, the session rests then."""
        try:
            while self.turn is not None:
                await self._run(self.turn)
                await self._begin_next()
        except Exception:
            # A log that failed is read again by whoever opens the session next.
            if self._context.log.broken is None:
                raise
        finally:
            self.turn = None
            self._rest.set()
            self._context.services.rested(self._context.fold.session_id)

    async def _run(self, turn: Turn) -> None:
        try:
            await turn.run()
        finally:
            self.turn = None
            resume_guard = self._context.services.resume_guard
            if resume_guard.unproven or resume_guard.waiting:
                resume_guard.rests(self._context.fold.session_id)
        fold = self._context.fold
        if fold.titled == 1 and fold.over.get(turn.turn_id) == "completed":
            self._titles.consider()

    async def _begin_next(self) -> bool:
        """Begin the next queued message, if any; the queue may change while its brief is read."""
        while not self._context.scope.is_cancelled and (first := self._first()) is not None:
            workspace = first.workspace
            prompt_parts = await self.read_brief(workspace)
            if self._context.scope.is_cancelled:
                break
            if self._first() is first and first.workspace == workspace:
                self.turn = self._begin(prompt_parts)
                return True
        return False

    def _first(self) -> Queued | None:
        return next(iter(self._context.fold.queue.values()), None)

    # -- what comes from outside

    async def _logged_brief(self) -> PromptParts:
        """As it was logged: a resumed turn keeps what it had."""
        found: dict[str, str] = {}
        for part, name in self._context.fold.prompt.items():
            data = await self._context.services.store.blob(name)
            if data is not None:
                found[part] = data.decode(errors="replace")
        return PromptParts(found)

    def _log_brief(self, prompt_parts: PromptParts) -> None:
        """What came from outside is logged when it has changed, so that the log tells it all."""
        log, known = self._context.log, dict(self._context.fold.prompt)
        for part, text in prompt_parts.parts.items():
            data = text.encode()
            name = blob_hash(data)
            if known.pop(part, None) != name:
                log.keep(Blob(name, data))
                log.record(ev.PromptChanged, part=part, blob=name)
        for part in known:
            log.record(ev.PromptChanged, part=part, blob=None)
