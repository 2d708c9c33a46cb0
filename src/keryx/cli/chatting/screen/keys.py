"""The keys of the interactive terminal.

Requests that wait for a person have chords of their own (Ctrl+X and a letter): no key that can be
meant for the draft answers them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import unquote

from prompt_toolkit.application.current import get_app
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.input import ansi_escape_sequences
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.search import stop_search

from keryx.cli.chatting.screen.screen import Screen

LONG_PASTE: Final = 4_000
"""Characters; a longer paste is shown as one short mark in the draft."""
LONG_PASTE_LINES: Final = 30
IMAGES: Final = (".png", ".jpg", ".jpeg", ".gif", ".webp")
NEW_LINE: Final = ("\x1b[13;2u", "\x1b[27;2;13~")
"""Shift+Enter, as terminals report it that can."""
STEER: Final = ("\x1b[13;5u", "\x1b[27;5;13~", "\x1b[13;3u", "\x1b[27;3;13~")
"""Ctrl+Enter and Alt+Enter, likewise."""


class Typist(Protocol):
    """What the keys do."""

    def submit(self, text: str) -> None: ...

    def steer(self, text: str) -> None: ...

    def interrupt(self) -> None: ...

    def choose(self, key: str) -> None: ...

    def answer_with(self, text: str) -> None: ...

    def take_back(self) -> None: ...

    def attach(self, path: str) -> None:
        """Attach a file; no path: the image in the clipboard."""
        ...


class Pastes:
    """Long texts that were pasted; the draft has a mark for each of them."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def mark(self, text: str) -> str:
        """Return what is put into the draft for a pasted text."""
        lines = text.count("\n") + 1
        if len(text) < LONG_PASTE and lines < LONG_PASTE_LINES:
            return text
        mark = f"[Pasted text {len(self._texts) + 1}: {lines} lines]"
        self._texts[mark] = text
        return mark

    def expand(self, text: str) -> str:
        """Return the text with the pasted texts in place of their marks."""
        for mark, pasted in self._texts.items():
            text = text.replace(mark, pasted)
        return text


def learn_sequences() -> None:
    """Teach prompt_toolkit the keys that it does not know; it has one table for the process."""
    for sequence in NEW_LINE:
        ansi_escape_sequences.ANSI_SEQUENCES[sequence] = Keys.ControlJ
    for sequence in STEER:
        ansi_escape_sequences.ANSI_SEQUENCES[sequence] = (Keys.Escape, Keys.ControlM)


def bindings(screen: Screen, typist: Typist, pastes: Pastes) -> KeyBindings:
    """Return the key bindings, besides those for editing."""
    keys = KeyBindings()
    draft = screen.draft

    def take_draft() -> str:
        text = pastes.expand(draft.text).encode(errors="replace").decode()
        if text.strip():
            screen.history.append_string(text)
        draft.reset()
        return text

    @keys.add("enter", filter=~is_searching)
    def _(_event: KeyPressEvent) -> None:
        state = draft.complete_state
        if state is not None and state.current_completion is not None:
            draft.complete_state = None
        elif draft.text.strip():
            typist.submit(take_draft())

    @keys.add("escape", "enter", filter=~is_searching)
    def _(_event: KeyPressEvent) -> None:
        if draft.text.strip():
            typist.steer(take_draft())

    @keys.add("c-j")
    def _(_event: KeyPressEvent) -> None:
        draft.insert_text("\n")

    _add_leaving(keys, screen, typist, take_draft)
    _add_completion(keys, screen)
    _add_answers(keys, screen, typist, take_draft)
    _add_paste(keys, screen, typist, pastes)
    return keys


def _add_leaving(
    keys: KeyBindings, screen: Screen, typist: Typist, take_draft: Callable[[], str]
) -> None:
    draft = screen.draft

    @keys.add("c-c", filter=is_searching)
    def _(_event: KeyPressEvent) -> None:
        stop_search()

    @keys.add("c-c", filter=~is_searching)
    def _(_event: KeyPressEvent) -> None:
        if draft.text:
            take_draft()
            screen.hint("Up brings the draft back")
        else:
            typist.interrupt()

    @keys.add("c-d")
    def _(_event: KeyPressEvent) -> None:
        if draft.text:
            draft.delete()
        else:
            screen.leave()

    @keys.add("c-l")
    def _(_event: KeyPressEvent) -> None:
        screen.reprint()

    @keys.add("c-z")
    def _(_event: KeyPressEvent) -> None:
        get_app().suspend_to_background()

    @keys.add("up", filter=Condition(screen.has_unloaded_history))
    def _(_event: KeyPressEvent) -> None:
        draft.document = Document(screen.history.get_strings()[-1])

    @keys.add("escape", "up")
    def _(_event: KeyPressEvent) -> None:
        typist.take_back()


def _add_completion(keys: KeyBindings, screen: Screen) -> None:
    draft = screen.draft

    @keys.add("tab")
    def _(_event: KeyPressEvent) -> None:
        if draft.complete_state is not None:
            draft.complete_next()
        else:
            draft.start_completion(select_first=True)

    @keys.add("s-tab")
    def _(_event: KeyPressEvent) -> None:
        if draft.complete_state is not None:
            draft.complete_previous()


def _add_answers(
    keys: KeyBindings, screen: Screen, typist: Typist, take_draft: Callable[[], str]
) -> None:
    for key in "ysan123456789":

        @keys.add("c-x", key)
        def _(_event: KeyPressEvent, key: str = key) -> None:
            typist.choose(key)

    @keys.add("c-x", "enter")
    def _(_event: KeyPressEvent) -> None:
        if screen.draft.text.strip():
            typist.answer_with(take_draft())


def _add_paste(keys: KeyBindings, screen: Screen, typist: Typist, pastes: Pastes) -> None:
    @keys.add(Keys.BracketedPaste)
    def _(event: KeyPressEvent) -> None:
        text = event.data.replace("\r\n", "\n").replace("\r", "\n")
        if not text:  # what terminals send for an image
            typist.attach("")
        elif (path := image_path(text)) is not None:
            typist.attach(path)
        else:
            screen.draft.insert_text(pastes.mark(text))

    @keys.add("c-v")
    def _(_event: KeyPressEvent) -> None:
        typist.attach("")


def image_path(text: str) -> str | None:
    """Return the path if the pasted text is that of an image, as a file manager drops it."""
    word = text.strip().strip("'\"").replace("\\ ", " ")
    if word.startswith("file://"):
        word = unquote(word.removeprefix("file://"))
    if "\n" in word or not word.startswith(("/", "~/")) or not word.lower().endswith(IMAGES):
        return None
    try:
        return word if Path(word).expanduser().is_file() else None
    except (OSError, RuntimeError):  # such as a name that is too long for one
        return None
