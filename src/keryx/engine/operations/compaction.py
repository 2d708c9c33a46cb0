"""Replaces the older history by a summary in what the model is sent. The log keeps everything.

The summary names the last fact that it replaces, so it stays valid whatever happens while a model
writes it. The session goes on meanwhile, and each request has either the old beginning or the new.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from keryx import events as ev
from keryx.aio.scope import Scope
from keryx.engine.context.summary_input import SummaryInput, render, select_input
from keryx.engine.context.verbatim import collect, verbatim_limit, verbatim_text
from keryx.engine.context.window import (
    BYTES_PER_TOKEN,
    expected_tokens,
    item_tokens,
    sent_items,
    text_tokens,
)
from keryx.engine.log.fold import Fold
from keryx.engine.session_context import SessionContext
from keryx.engine.side_request import ask_for_text, record_usage
from keryx.errors import KeryxError, ModelError, UserMustActError
from keryx.messages import Text, UserMessage
from keryx.ports.model import Model, ModelRequest, defect

TIMEOUT: Final = 600.0
"""Seconds. All screens show that a summary is being written."""
INPUT_SHARE: Final = 0.6
"""The part of the model's window for the input; the model needs the rest to think and write."""
DEFAULT_INPUT: Final = 400_000
"""Characters of input for a model whose window is unknown."""
SHORTEST_INPUT: Final = 2_000
"""Characters; a model that finds these too long cannot summarize."""
INSTRUCTIONS: Final = """\
Sum up what follows for the agent that will go on with this work and will see nothing of it but \
your summary. Write in the language that the person uses. Keep, in this order:
1. What the person wants: goals, limits, preferences, and words of theirs that must not be lost.
2. What was done and found: files with their paths, commands, results, numbers, names, ids.
3. What was decided, and why; what was tried and did not work.
4. What is under way, what is open, and what comes next.
Be exact and complete rather than short; leave out greetings and what no longer matters. \
Answer with the summary alone."""
SHORTER: Final = (
    "\nYour last summary was too long: its end was lost. Write one that is at most half as long."
)
END_MISSING: Final = "[the end of this summary is missing]"
FOCUS: Final = "\nAbove all, keep everything that concerns this: "
LONGEST_FOCUS: Final = 2_000
KEEP: Final = 0.25
"""The last part of the history that is not summarized: it is being worked on."""


class Compaction:
    """Summarizes one session; one summary is written at a time."""

    def __init__(self, context: SessionContext) -> None:
        self._context = context
        self._task: asyncio.Task[KeryxError | None] | None = None

    @property
    def is_running(self) -> bool:
        return self._task is not None

    async def wait_over(self, scope: Scope) -> None:
        """Return once no compaction is running, or the scope is cancelled."""
        if (task := self._task) is None:
            return
        cancelled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        registration = scope.on_cancel(lambda: cancelled.done() or cancelled.set_result(None))
        await asyncio.wait({task, cancelled}, return_when=asyncio.FIRST_COMPLETED)
        registration.remove()
        cancelled.cancel()

    async def run(
        self,
        scope: Scope,
        *,
        keep: float = 0.0,
        focus: str = "",
        on_record: Callable[[], None] | None = None,
    ) -> bool:
        """Summarize all but the last part (`keep`, from 0 to 1); return once that is durable.

        `focus` is what the summary keeps above all. `on_record` is called when the summary is
        recorded, to add to its commit.
        `UserMustActError` if a summary is not possible or not shorter, `ModelError` if the model
        fails. False if the scope was cancelled first.
        """
        if self._task is not None:
            raise UserMustActError("a summary is being written already; wait until it is done")
        fold = self._context.fold
        chosen = select_input(fold, keep)
        if chosen is None and fold.compacted is None:
            chosen = select_input(fold, 0.0)  # all of it is the last turn
        if chosen is None:
            raise UserMustActError("there is nothing to summarize yet; send a message first")
        task = self._context.group.start(
            self._summarize(chosen, focus, on_record), name="compaction"
        )
        self._task = task
        registration = scope.on_cancel(task.cancel)

        def ended(_: object) -> None:
            # A task that is cancelled before its first step does not run its finally block.
            self._task = None
            registration.remove()

        task.add_done_callback(ended)
        # If the caller is cancelled, the summary is written all the same.
        await asyncio.wait([task])
        if task.cancelled():
            return False
        if (error := task.result()) is not None:
            raise error
        return True

    async def _summarize(
        self, chosen: SummaryInput, focus: str, on_record: Callable[[], None] | None
    ) -> KeryxError | None:
        """Write and record the summary. An error is returned: it concerns the caller only."""
        before = expected_tokens(self._context.fold)
        branches = self._context.fold.branches
        restores = branches.restores
        self._show(before, over=False)
        try:
            summary = await self._write(chosen, focus)
            self._record(chosen, focus, before, summary, is_stale=branches.restores != restores)
            if on_record is not None:
                on_record()
            await self._context.log.wait_durable()
        except KeryxError as error:
            return error
        except Exception as error:  # noqa: BLE001 (a defect: the caller gets it, and the session goes on)
            self._context.report("the summary", error)
            return defect(error)
        finally:
            self._show(before, over=True)
        return None

    def _record(
        self, chosen: SummaryInput, focus: str, before: int, summary: str, *, is_stale: bool
    ) -> None:
        """Record the summary, unless it is not valid any more or not shorter."""
        fold = self._context.fold
        if is_stale or any(item.turn_id in fold.undone for item in chosen.items):
            raise UserMustActError("a turn was undone while the summary was written; compact again")
        turn_id = None if fold.turn is None else fold.turn.turn_id
        limit = verbatim_limit(self._window(), chosen.items, chosen.earlier)
        verbatim = collect(fold, chosen.up_to, limit)
        after = _tokens_after(fold, chosen, turn_id, before, f"{summary}{verbatim_text(verbatim)}")
        if after >= before:  # so little was said that its words are most of it
            verbatim = ev.Verbatim()
            after = _tokens_after(fold, chosen, turn_id, before, summary)
        if after >= before:
            raise UserMustActError(
                "a summary would be longer than the history, so nothing was changed"
            )
        self._context.log.record(
            ev.ContextCompacted,
            turn_id=turn_id,
            summary=summary,
            up_to=chosen.up_to,
            tokens_before=before,
            tokens_after=after,
            focus=focus,
            verbatim=verbatim,
        )

    def _window(self) -> int | None:
        """Return the window of the session's model; None if it is unknown."""
        settings = self._context.fold.settings
        try:
            return self._context.services.model(settings.model, settings.profile).window
        except ModelError:
            return None

    async def _write(self, chosen: SummaryInput, focus: str) -> str:
        """Ask a model for the summary. If the input is too long for it, try again with less.

        A summary whose end is missing is asked for once more, shorter. If its end is missing again,
        it says so: small models cannot do better, and the session goes on.
        """
        services, settings = self._context.services, self._context.fold.settings
        if services.summaries is None:
            model = services.model(settings.model, settings.profile)
        else:
            model = services.summaries(settings)
        window = model.window
        limit = DEFAULT_INPUT if window is None else int(window * INPUT_SHARE) * BYTES_PER_TOKEN
        system = f"{INSTRUCTIONS}{FOCUS}{focus}" if focus else INSTRUCTIONS
        is_second = False
        while True:
            text = render(chosen, limit)
            try:
                summary, is_cut = await self._ask_model(model, text, system)
                if not is_cut:
                    return summary
                if is_second:
                    return f"{summary}\n{END_MISSING}"
                is_second, system = True, system + SHORTER
            except ModelError as error:
                limit = len(text) // 2
                if error.kind != "context_too_long" or limit < SHORTEST_INPUT:
                    raise

    async def _ask_model(self, model: Model, text: str, system: str) -> tuple[str, bool]:
        """Return the summary, and whether its end is missing."""
        message = UserMessage((Text(text),))
        request = ModelRequest(system=system, history=(model.encode(message),))
        await self._context.check_budget()
        text, finished = await ask_for_text(model, request, timeout=TIMEOUT)
        record_usage(self._context.log, "compaction", model, finished)
        if finished.stop_reason == "content_filter":
            raise _failed(f"{model.name} stopped its summary for its content")
        if summary := text.strip():
            return summary, finished.stop_reason == "length"
        raise _failed(f"{model.name} returned an empty summary")

    def _show(self, before: int, *, over: bool) -> None:
        context, turn = self._context, self._context.fold.turn
        event = ev.ContextCompacting(
            session_id=context.fold.session_id,
            at=context.services.clock.wall(),
            turn_id=None if turn is None else turn.turn_id,
            tokens_before=before,
            over=over,
        )
        context.compacting = None if over else event
        context.hub.publish(event)


def _failed(message: str) -> ModelError:
    return ModelError("bad_response", message, "try again, or name another model for compaction")


def _tokens_after(
    fold: Fold, chosen: SummaryInput, turn_id: str | None, before: int, summary: str
) -> int:
    """Estimate the tokens after compaction: the last count, reduced by the estimated difference."""
    earlier = chosen.earlier
    items = (
        sent_items(fold, None, 0)
        if earlier is None
        else sent_items(fold, earlier.turn_id, earlier.up_to)
    )
    old = sum(map(item_tokens, items))
    if earlier is not None:
        old += text_tokens(f"{earlier.summary}{verbatim_text(earlier.verbatim)}")
    new = sum(map(item_tokens, sent_items(fold, turn_id, chosen.up_to))) + text_tokens(summary)
    return max(new, round(before - min(1.0, before / old) * (old - new)))
