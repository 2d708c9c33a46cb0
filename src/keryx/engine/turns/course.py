"""The turns of a session, one after the other: which one runs, and which comes next."""

from __future__ import annotations

import asyncio

from keryx import events as ev
from keryx.engine.aside.compaction import Compaction
from keryx.engine.aside.titles import Titles
from keryx.engine.desk import Brief, Desk
from keryx.engine.log.state import Queued
from keryx.engine.turns.turn import Turn
from keryx.messages import well_formed
from keryx.ports.store import Blob, blob_hash


class Course:
    """Runs the queued messages of one session, each as a turn."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._rest = asyncio.Event()
        self._rest.set()
        self._titles = Titles(desk)
        self.compaction = Compaction(desk)
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
        fold = self._desk.fold
        if fold.turn is not None:
            brief = await self._logged_brief()
            turn_id = fold.turn.turn_id
            self._start(Turn(self._desk, self.compaction, turn_id, brief, resumed=True))
            return
        self._desk.around.neighbours.rests(fold.session_id)
        if await self._begin_next():
            self._work_soon()

    async def read_brief(self, workspace: str | None) -> Brief:
        """What a turn in this workspace (default: the session's) would start with."""
        settings = self._desk.fold.settings
        where = workspace or settings.workspace
        try:
            brief = await self._desk.around.brief(settings, where)
            parts = {part: well_formed(text) for part, text in brief.parts.items()}
            return Brief(parts, tuple(map(well_formed, brief.warnings)))
        except Exception as error:  # noqa: BLE001 (a defect: the turn that needs it ends with it)
            return Brief(fault=error)

    def start_next(self, brief: Brief) -> None:
        """Begin the turn of the first queued message, in the same commit as its acceptance."""
        self._start(self._begin(brief))

    def _start(self, turn: Turn) -> None:
        self.turn = turn
        self._work_soon()

    def _work_soon(self) -> None:
        self._rest.clear()
        self._desk.group.start(self._work(), name=f"turns of {self._desk.fold.session_id}")

    def _begin(self, brief: Brief) -> Turn:
        ledger, message = self._desk.ledger, self._first()
        assert message is not None
        self._log_brief(brief)
        ledger.record(
            ev.TurnStarted,
            turn_id=message.turn_id,
            message_ids=(message.message_id,),
            warnings=brief.warnings,
        )
        ledger.record(ev.MessageDelivered, turn_id=message.turn_id, message_id=message.message_id)
        turn = Turn(self._desk, self.compaction, message.turn_id, brief)
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
            if self._desk.ledger.broken is None:
                raise
        finally:
            self.turn = None
            self._rest.set()
            self._desk.around.rested(self._desk.fold.session_id)

    async def _run(self, turn: Turn) -> None:
        try:
            await turn.run()
        finally:
            self.turn = None
            self._desk.around.neighbours.rests(self._desk.fold.session_id)
        if self._desk.fold.over.get(turn.turn_id) == "completed":
            self._titles.consider()

    async def _begin_next(self) -> bool:
        """Begin the next queued message, if any; the queue may change while its brief is read."""
        while not self._desk.scope.is_cancelled and (first := self._first()) is not None:
            workspace = first.workspace
            brief = await self.read_brief(workspace)
            if self._desk.scope.is_cancelled:
                break
            if self._first() is first and first.workspace == workspace:
                self.turn = self._begin(brief)
                return True
        return False

    def _first(self) -> Queued | None:
        return next(iter(self._desk.fold.queue.values()), None)

    # -- what comes from outside

    async def _logged_brief(self) -> Brief:
        """As it was logged: a resumed turn keeps what it had."""
        found: dict[str, str] = {}
        for part, name in self._desk.fold.prompt.items():
            data = await self._desk.around.store.blob(name)
            if data is not None:
                found[part] = data.decode(errors="replace")
        return Brief(found)

    def _log_brief(self, brief: Brief) -> None:
        """What came from outside is logged when it has changed, so that the log tells it all."""
        ledger, known = self._desk.ledger, dict(self._desk.fold.prompt)
        for part, text in brief.parts.items():
            data = text.encode()
            name = blob_hash(data)
            if known.pop(part, None) != name:
                ledger.keep(Blob(name, data))
                ledger.record(ev.PromptChanged, part=part, blob=name)
        for part in known:
            ledger.record(ev.PromptChanged, part=part, blob=None)
