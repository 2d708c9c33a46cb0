"""A better title for a session, once, after its first turn. Nothing waits for it."""

from __future__ import annotations

from typing import Final

from keryx import events as ev
from keryx.engine.log.state import Delivered
from keryx.engine.operations.side_request import record_usage, words_of
from keryx.engine.session_context import SessionContext
from keryx.errors import ModelError
from keryx.messages import Text, UserMessage
from keryx.ports.model import ModelRequest

BY: Final = "keryx"
"""Who gives titles that no person gave."""
LENGTH: Final = 60
SHOWN: Final = 2_000
"""Characters of what was said that the model reads for it."""
PATIENCE: Final = 60.0
ASKED: Final = (
    "Give this exchange a title of three to six words, in its own language. "
    "Answer with the title alone: no quotation marks, no full stop."
)


def first_title(text: str) -> str:
    """What a session is called at once."""
    lines = text.strip().splitlines()
    return lines[0][:LENGTH] if lines else ""


class Titles:
    """The title of one session."""

    def __init__(self, context: SessionContext) -> None:
        self._context = context

    def consider(self) -> None:
        """Ask for a better one, unless a person gave one or it was asked before."""
        fold = self._context.fold
        if self._context.services.titles is None or (fold.titled_by, fold.titled) != (BY, 1):
            return
        task = self._context.group.start(self._improve(), name="the title")
        self._context.scope.on_cancel(task.cancel)

    async def _improve(self) -> None:
        fold, log = self._context.fold, self._context.log
        assert self._context.services.titles is not None
        try:
            model = self._context.services.titles(fold.settings)
            if model is None:
                return
            message = UserMessage((Text(f"{ASKED}\n\n{self._said()}"),))
            request = ModelRequest(system="", history=(model.encode(message),), max_tokens=64)
            title, finished = await words_of(model, request, within=PATIENCE)
        except ModelError:
            return  # the one that it has will do
        if log.broken is not None:
            return
        record_usage(self._context, "title", model, finished)
        better = first_title(title).strip("\"'“”«». ")
        # A person may have given one while the model thought.
        if better and (fold.titled_by, fold.titled) == (BY, 1):
            log.record(ev.SessionChanged, by=BY, title=better)

    def _said(self) -> str:
        said: list[str] = []
        for item in self._context.fold.history:
            if isinstance(item, Delivered):
                said.append(f"Person: {item.message.text}")
            elif item.reply.text:
                said.append(f"Agent: {item.reply.text}")
        return "\n".join(said)[:SHOWN]
