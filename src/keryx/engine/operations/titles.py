"""Asks a model for a session's title, once, after the first turn. Nothing waits for it."""

from __future__ import annotations

import re
from typing import Final

from keryx import events as ev
from keryx.engine.log.state import Delivered
from keryx.engine.session_context import SessionContext
from keryx.engine.side_request import ask_for_text, record_usage
from keryx.errors import ModelError
from keryx.messages import Text, UserMessage
from keryx.ports.model import ModelRequest

BY: Final = "keryx"
"""The author of titles that no person gave."""
LENGTH: Final = 60
INPUT_LENGTH: Final = 2_000
"""Characters of the conversation that the model reads."""
TIMEOUT: Final = 60.0
MAX_TOKENS: Final = 500
"""A title has few, but some models think first, and their thoughts count."""
# Signs that Markdown has around words, and before headings; a title is shown as it is.
_MARKS: Final = re.compile(r"^#+\s+|\*\*|__|`|(?<!\w)[*_]|[*_](?!\w)")
INSTRUCTIONS: Final = (
    "Give this exchange a title of three to six words, in its own language. "
    "Answer with the title alone: no quotation marks, no full stop."
)


def first_title(text: str) -> str:
    """Return the first title of a session: the first line of its first message."""
    lines = text.strip().splitlines()
    return lines[0][:LENGTH] if lines else ""


def _plain(title: str) -> str:
    """Return a model's title without quotation marks and marks of Markdown."""
    return _MARKS.sub("", title).strip("\"'“”«». ")


class Titles:
    """The title of one session."""

    def __init__(self, context: SessionContext) -> None:
        self._context = context

    def improve_once(self) -> None:
        """Ask for a better title, unless a person gave one or it was asked for before."""
        fold = self._context.fold
        if self._context.services.titles is None or (fold.titled_by, fold.title_count) != (BY, 1):
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
            message = UserMessage((Text(f"{INSTRUCTIONS}\n\n{self._conversation()}"),))
            request = ModelRequest(
                system="", history=(model.encode(message),), max_tokens=MAX_TOKENS
            )
            await self._context.check_budget()
            title, finished = await ask_for_text(model, request, timeout=TIMEOUT)
        except ModelError:
            return  # the session keeps its first title
        if log.broken is not None:
            return
        record_usage(self._context.log, "title", model, finished)
        better = _plain(first_title(title))
        # A person may have set a title while the model was working.
        if better and (fold.titled_by, fold.title_count) == (BY, 1):
            log.record(ev.SessionChanged, by=BY, title=better)

    def _conversation(self) -> str:
        lines: list[str] = []
        for item in self._context.fold.history:
            if isinstance(item, Delivered):
                lines.append(f"Person: {item.message.text}")
            elif item.reply.text:
                lines.append(f"Agent: {item.reply.text}")
        return "\n".join(lines)[:INPUT_LENGTH]
