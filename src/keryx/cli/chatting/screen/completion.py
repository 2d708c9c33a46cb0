"""Completes commands after a slash, files after an @, and sessions after /resume."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Final

from prompt_toolkit.buffer import CompletionState
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples

from keryx.cli.chatting.commands.slash_commands import COMMANDS, typed_path
from keryx.errors import UserMustActError

MOST_FILES: Final = 50
TAKE_FILES: Final = ("/attach ", "/workspace ", "/export ")


class ChatCompleter(Completer):
    """`workspace` and `sessions` return the present ones."""

    def __init__(self) -> None:
        self.workspace: Callable[[], str] = str
        self.sessions: list[tuple[str, str]] = []
        """Ids and titles, the last changed first."""

    def get_completions(
        self,
        document: Document,
        complete_event: CompleteEvent,  # noqa: ARG002 (as prompt_toolkit calls it)
    ) -> Iterable[Completion]:
        text = document.text_before_cursor
        if text.startswith("/") and " " not in text and "\n" not in text:
            for command in COMMANDS:
                if f"/{command.name}".startswith(text):
                    yield Completion(
                        f"/{command.name}",
                        -len(text),
                        display=command.usage,
                        display_meta=command.about,
                    )
        elif text.startswith("/resume "):
            word = text.removeprefix("/resume ")
            for session_id, title in self.sessions:
                if session_id.startswith(word) or word.lower() in title.lower():
                    yield Completion(session_id, -len(word), display_meta=title)
        elif text.startswith(TAKE_FILES):
            yield from self._files(text.partition(" ")[2])
        elif (word := text.rpartition("@")[2]) != text and not any(map(str.isspace, word)):
            yield from self._files(word)

    def _files(self, word: str) -> Iterable[Completion]:
        workspace = self.workspace()
        folder, _, start = word.rpartition("/")
        try:
            base = typed_path(workspace or ".", folder or ("/" if word.startswith("/") else ""))
            with os.scandir(base) as entries:
                names = sorted(
                    f"{entry.name}/" if entry.is_dir() else entry.name
                    for entry in entries
                    if entry.name.startswith(start) and (start or not entry.name.startswith("."))
                )
        except (OSError, ValueError, UserMustActError):
            return
        for name in names[:MOST_FILES]:
            if name.isprintable():
                yield Completion(name, -len(start))


def completion_rows(state: CompletionState, width: int, most: int) -> StyleAndTextTuples:
    """Return some of the completions as rows, the chosen one among them."""
    chosen = state.complete_index or 0
    first = max(0, min(chosen - 2, len(state.completions) - most))
    rows: StyleAndTextTuples = []
    for number, completion in enumerate(state.completions[first:][:most], first):
        is_chosen = number == state.complete_index
        line = f"  {completion.display_text}  {completion.display_meta_text}".rstrip()
        rows += [("class:chosen" if is_chosen else "class:dim", line[: width - 1]), ("", "\n")]
    return rows[:-1]
