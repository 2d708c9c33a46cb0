"""A better title for a session, once, after its first turn. Nothing waits for it."""

from __future__ import annotations

from typing import Final

from keryx import events as ev
from keryx.engine.aside.words import record_usage, words_of
from keryx.engine.desk import Desk
from keryx.engine.log.state import Delivered
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

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def consider(self) -> None:
        """Ask for a better one, unless a person gave one or it was asked before."""
        fold = self._desk.fold
        if self._desk.around.titles is None or (fold.titled_by, fold.titled) != (BY, 1):
            return
        task = self._desk.group.start(self._improve(), name="the title")
        self._desk.scope.on_cancel(task.cancel)

    async def _improve(self) -> None:
        fold, ledger = self._desk.fold, self._desk.ledger
        assert self._desk.around.titles is not None
        try:
            model = self._desk.around.titles(fold.settings)
            if model is None:
                return
            message = UserMessage((Text(f"{ASKED}\n\n{self._said()}"),))
            request = ModelRequest(system="", history=(model.encode(message),), max_tokens=64)
            title, finished = await words_of(model, request, within=PATIENCE)
        except ModelError:
            return  # the one that it has will do
        if ledger.broken is not None:
            return
        record_usage(self._desk, "title", model, finished)
        better = first_title(title).strip("\"'“”«». ")
        # A person may have given one while the model thought.
        if better and (fold.titled_by, fold.titled) == (BY, 1):
            ledger.record(ev.SessionChanged, by=BY, title=better)

    def _said(self) -> str:
        said: list[str] = []
        for item in self._desk.fold.history:
            if isinstance(item, Delivered):
                said.append(f"Person: {item.message.text}")
            elif item.reply.text:
                said.append(f"Agent: {item.reply.text}")
        return "\n".join(said)[:SHOWN]
