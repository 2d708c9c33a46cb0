"""A summary takes the place of what was said, in what the model is sent. The log keeps it all.

The summary names the last fact that it stands for, so it holds whatever happens while a model
writes it: a session goes on meanwhile, and each request finds either the old beginning or the new.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from keryx import events as ev
from keryx.aio.scope import Scope
from keryx.engine.context.summary_input import SummaryInput, cut, told
from keryx.engine.context.window import PER_TOKEN, expected, sent, weigh, weight
from keryx.engine.log.fold import Fold
from keryx.engine.operations.side_request import record_usage, words_of
from keryx.engine.session_context import SessionContext
from keryx.errors import KeryxError, ModelError, UserMustActError
from keryx.messages import Text, UserMessage
from keryx.ports.model import Model, ModelRequest, defect

PATIENCE: Final = 600.0
"""Seconds. Nobody who waits for it waits unawares: all screens say what goes on."""
SHARE_READ: Final = 0.6
"""Of the window of the model that sums up: the rest is for what it writes and thinks."""
READ_UNKNOWN: Final = 400_000
"""Characters that are read if nobody knows its window."""
READ_LEAST: Final = 2_000
"""Characters; a model that finds these too long cannot sum up."""
ASKED: Final = """\
Sum up what follows for the agent that will go on with this work and will see nothing of it but \
your summary. Write in the language that the person uses. Keep, in this order:
1. What the person wants: goals, limits, preferences, and words of theirs that must not be lost.
2. What was done and found: files with their paths, commands, results, numbers, names, ids.
3. What was decided, and why; what was tried and did not work.
4. What is under way, what is open, and what comes next.
Be exact and complete rather than short; leave out greetings and what no longer matters. \
Answer with the summary alone."""


class Compaction:
    """Sums up one session; one summary is written at a time."""

    def __init__(self, context: SessionContext) -> None:
        self._context = context
        self._under_way: asyncio.Task[KeryxError | None] | None = None

    @property
    def is_under_way(self) -> bool:
        return self._under_way is not None

    async def over(self, scope: Scope) -> None:
        """Return once none is under way, or the scope is cancelled."""
        if (running := self._under_way) is None:
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waking = scope.on_cancel(lambda: woken.done() or woken.set_result(None))
        await asyncio.wait({running, woken}, return_when=asyncio.FIRST_COMPLETED)
        waking.remove()
        woken.cancel()

    async def run(
        self, scope: Scope, *, keep: float = 0.0, recorded: Callable[[], None] | None = None
    ) -> bool:
        """Sum up all but this part, from the end; returns once that is durable.

        What is `recorded` beside the facts is in their commit. `UserMustActError` if nothing can
        be gained, `ModelError` if no model would do it. False if the scope was cancelled first.
        """
        if self._under_way is not None:
            raise UserMustActError("it is being summed up already; wait until that is done")
        chosen = cut(self._context.fold, keep)
        if chosen is None:
            raise UserMustActError("there is nothing to sum up; say something first")
        task = self._context.group.start(self._sum_up(chosen, recorded), name="compaction")
        self._under_way = task
        stopping = scope.on_cancel(task.cancel)

        def ended(_: object) -> None:
            # One that is cancelled before its first step runs nothing of its own, also no finally.
            self._under_way = None
            stopping.remove()

        task.add_done_callback(ended)
        # Whoever asked may go away; it is done all the same.
        await asyncio.wait([task])
        if task.cancelled():
            return False
        if (error := task.result()) is not None:
            raise error
        return True

    async def _sum_up(
        self, chosen: SummaryInput, recorded: Callable[[], None] | None
    ) -> KeryxError | None:
        """An error is a result here: it is for who asked, not for the session."""
        before = expected(self._context.fold)
        self._show(before, over=False)
        try:
            self._record(chosen, before, await self._write(chosen))
            if recorded is not None:
                recorded()
            await self._context.log.durable()
        except KeryxError as error:
            return error
        except Exception as error:  # noqa: BLE001 (a defect: who asked is told, and the session goes on)
            self._context.report("the summary", error)
            return defect(error)
        finally:
            self._show(before, over=True)
        return None

    def _record(self, chosen: SummaryInput, before: int, summary: str) -> None:
        """State that it stands there now, unless it does not fit or does not help."""
        fold = self._context.fold
        if any(item.turn_id in fold.undone for item in chosen.items):
            raise UserMustActError("a turn was undone meanwhile; sum up again")
        turn_id = None if fold.turn is None else fold.turn.turn_id
        after = _after(fold, chosen, turn_id, before, summary)
        if after >= before:
            raise UserMustActError("a summary would be longer than what was said; all is kept")
        self._context.log.record(
            ev.ContextCompacted,
            turn_id=turn_id,
            summary=summary,
            up_to=chosen.up_to,
            tokens_before=before,
            tokens_after=after,
        )

    async def _write(self, chosen: SummaryInput) -> str:
        """The summary; what the model finds too long is told to it in fewer words."""
        services, settings = self._context.services, self._context.fold.settings
        if services.summaries is None:
            model = services.model(settings.model, settings.profile)
        else:
            model = services.summaries(settings)
        window = model.window
        room = READ_UNKNOWN if window is None else int(window * SHARE_READ) * PER_TOKEN
        while True:
            text = told(chosen, room)
            try:
                return await self._ask(model, text)
            except ModelError as error:
                room = len(text) // 2
                if error.kind != "context_too_long" or room < READ_LEAST:
                    raise

    async def _ask(self, model: Model, text: str) -> str:
        message = UserMessage((Text(text),))
        request = ModelRequest(system=ASKED, history=(model.encode(message),))
        words, finished = await words_of(model, request, within=PATIENCE)
        record_usage(self._context, "compaction", model, finished)
        if summary := words.strip():
            return summary
        hint = "try again, or name another model for compaction"
        raise ModelError("bad_response", f"{model.name} summed up with no words", hint)

    def _show(self, before: int, *, over: bool) -> None:
        context, turn = self._context, self._context.fold.turn
        told = ev.ContextCompacting(
            session_id=context.fold.session_id,
            at=context.services.clock.wall(),
            turn_id=None if turn is None else turn.turn_id,
            tokens_before=before,
            over=over,
        )
        context.compacting = None if over else told
        context.hub.publish(told)


def _after(fold: Fold, chosen: SummaryInput, turn_id: str | None, before: int, summary: str) -> int:
    """Tokens are taken away as they are weighed here; what is left has at least its own weight."""
    earlier = chosen.earlier
    now = sent(fold, None, 0) if earlier is None else sent(fold, earlier.turn_id, earlier.up_to)
    was = sum(map(weight, now)) + (0 if earlier is None else weigh(earlier.summary))
    then = sum(map(weight, sent(fold, turn_id, chosen.up_to))) + weigh(summary)
    return max(then, round(before - min(1.0, before / was) * (was - then)))
