"""The interactive terminal: the draft, the live region above it and the status line below it.

Finished pieces go to the terminal's own scrollback. The screen is one view of a conversation; it
starts before the conversation is connected, so that typing can begin at once.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer
from prompt_toolkit.document import Document
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition, has_completions, is_searching
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindingsBase
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.output.color_depth import ColorDepth
from prompt_toolkit.styles import Style
from prompt_toolkit.utils import get_term_environment_variable
from prompt_toolkit.widgets import SearchToolbar

from keryx.aio.clock import RealClock, Timer
from keryx.cli.chatting.pieces import Piece
from keryx.cli.chatting.screen.completion import completion_rows
from keryx.cli.chatting.screen.draft_history import DraftHistory
from keryx.cli.chatting.screen.live_renderer import LiveApplication, LiveOutput, LiveRenderer

if TYPE_CHECKING:
    from keryx.cli.chatting.screen.drawing import Drawing
    from keryx.cli.chatting.view import Source

FRAME: Final = 0.08
"""Seconds between frames while text streams. Keys are echoed at once."""
SECOND: Final = 1.0
HINT_TIME: Final = 2.0
MOST_COMPLETIONS: Final = 6
ROOMY: Final = 16
"""Rows of a terminal in which a blank row above the draft is no waste."""
STYLE: Final = Style.from_dict(
    {
        "dim": "fg:ansibrightblack",
        "running": "fg:ansicyan",
        "waiting": "fg:ansiyellow bold",
        "prompt": "bold",
        "chosen": "reverse",
    }
)


class Screen:
    """Draws a conversation and holds the draft."""

    def __init__(self, completer: Completer, *, vi: bool) -> None:
        self._clock = RealClock()
        output = LiveOutput.from_pty(
            sys.stdout,
            term=get_term_environment_variable(),
            default_color_depth=ColorDepth.from_env() or ColorDepth.DEPTH_4_BIT,  # NO_COLOR
        )
        self._output = cast("LiveOutput", output)
        self.history = DraftHistory()
        self.draft = Buffer(
            multiline=True,
            history=self.history,
            completer=completer,
            complete_while_typing=Condition(self._completes_while_typing),
            enable_history_search=False,
        )
        self.source: Source | None = None
        self.drawing: Drawing | None = None
        """Loaded after the first frame, since its packages are large."""
        self.shown_request = ""
        """The id of the request that the last frame shows, below its whole text."""
        self._hint = ""
        self._hint_timer: Timer | None = None
        self._frame_timer: Timer | None = None
        self._second_timer: Timer | None = None
        self.app = self._application(vi=vi)

    def _application(self, *, vi: bool) -> LiveApplication:
        search = SearchToolbar()
        control = BufferControl(
            self.draft,
            search_buffer_control=search.control,
            preview_search=True,
            input_processors=[BeforeInput("> ", style="class:prompt")],
        )
        draft_window = Window(
            control,
            height=lambda: Dimension(min=1, max=max(1, self._output.get_size().rows // 3)),
            wrap_lines=True,
            dont_extend_height=True,
        )
        completions = Window(
            FormattedTextControl(self._completion_rows),
            dont_extend_height=True,
            height=lambda: Dimension.exact(self._completion_count()),
        )
        live = Window(FormattedTextControl(self._live_text), dont_extend_height=True)
        blank = ConditionalContainer(Window(height=1), Condition(self._has_room_for_a_blank_row))
        status_row = Window(FormattedTextControl(self._status_text), height=1)
        root = HSplit(
            [
                ConditionalContainer(live, Condition(lambda: bool(self._live_list()))),
                blank,
                draft_window,
                ConditionalContainer(search, is_searching),
                ConditionalContainer(completions, has_completions),
                status_row,
            ]
        )
        app = LiveApplication(
            layout=Layout(root, focused_element=draft_window),
            style=STYLE,
            output=self._output,
            erase_when_done=True,
            editing_mode=EditingMode.VI if vi else EditingMode.EMACS,
            terminal_size_polling_interval=None,
        )
        app.ttimeoutlen = 0.1
        app.renderer = LiveRenderer(app._merged_style, self._output)  # pyright: ignore[reportPrivateUsage] (there is no other way in)
        return app

    def bind(self, keys: KeyBindingsBase) -> None:
        self.app.key_bindings = keys

    @property
    def renderer(self) -> LiveRenderer:
        renderer = self.app.renderer
        assert isinstance(renderer, LiveRenderer)
        return renderer

    # -- what a conversation asks of a view

    @property
    def columns(self) -> int:
        return self._output.get_size().columns

    def show(self, pieces: Sequence[Piece]) -> None:
        assert self.drawing is not None
        self.renderer.finish(self.drawing.rows(pieces, self.columns))
        self.refresh()

    def refresh(self) -> None:
        if self._frame_timer is None:
            self._frame_timer = self._clock.call_at(self._clock.monotonic() + FRAME, self._draw)

    def put_back(self, text: str) -> None:
        if not text:
            return
        if self.draft.text:
            self.history.append_string(text)
            self.hint("Up brings the text back")
        else:
            self.draft.document = Document(text)
        self.app.invalidate()

    def alert(self, text: str) -> None:
        self._output.bell()
        self._output.write_through(f"\x1b]9;{text}\x07")
        self.refresh()

    def leave(self) -> None:
        if self.app.is_running and not self.app.is_done:
            self.app.exit()

    # -- drawing

    def enter_tmux(self) -> None:
        """Remember that tmux is between the chat and the terminal."""
        self._output.is_in_tmux = self._output.finds_row_starts = True

    def write_through(self, sequence: str) -> None:
        self._output.write_through(sequence)
        self.app.invalidate()

    def hint(self, text: str) -> None:
        """Show a text in the status line for a moment."""
        self._hint = text
        if self._hint_timer is not None:
            self._hint_timer.cancel()
        self._hint_timer = self._clock.call_at(self._clock.monotonic() + HINT_TIME, self.drop_hint)
        self.app.invalidate()

    def drop_hint(self, only: str = "") -> None:
        """Show the status again; `only`: if this is the hint."""
        if self._hint and only in ("", self._hint):
            self._hint = ""
            self.app.invalidate()

    def has_unloaded_history(self) -> bool:
        """Return whether the draft was just cleared, and its history is not loaded again yet."""
        is_cleared = not self.draft.text and self.draft.working_index == 0
        return is_cleared and bool(self.history.get_strings())

    def reprint(self) -> None:
        """Draw the last screenful again."""
        self.renderer.reprint()
        self.app.invalidate()

    def _draw(self) -> None:
        self._frame_timer = None
        if self._output.is_lost:
            self.leave()
            return
        self.app.invalidate()
        if self.source is not None and self.source.transcript.is_running:
            self._tick()

    def _tick(self) -> None:
        """Draw the times of calls every second while a turn runs."""
        if self._second_timer is None:
            when = self._clock.monotonic() + SECOND
            self._second_timer = self._clock.call_at(when, self._second_passed)

    def _second_passed(self) -> None:
        self._second_timer = None
        self._draw()

    def _live_list(self) -> list[StyleAndTextTuples]:
        if self.source is None or self.drawing is None:
            return []
        size = self._output.get_size()
        draft_rows = min(self.draft.document.line_count, size.rows // 3)
        height = max(2, min(size.rows // 2, size.rows - draft_rows - 4))
        transcript, now = self.source.transcript, self._clock.wall()
        self.shown_request = next(iter(transcript.pending.requests), "")
        return self.drawing.live_rows(transcript, self._output.live_columns, height, now)

    def _has_room_for_a_blank_row(self) -> bool:
        return self.renderer.has_history and self._output.get_size().rows >= ROOMY

    def _live_text(self) -> StyleAndTextTuples:
        text: StyleAndTextTuples = []
        for row in self._live_list():
            text += [*row, ("", "\n")]
        return text[:-1]

    def _status_text(self) -> StyleAndTextTuples:
        if self.source is None or self.drawing is None:
            return [("class:dim", self._hint or "Starting…")]
        width, source = self._output.get_size().columns, self.source
        line = self.drawing.status(source.transcript, width, source.attached, self._hint)
        return [("class:dim", line)]

    # -- completion

    def _completes_while_typing(self) -> bool:
        text = self.draft.document.current_line_before_cursor
        return text.startswith("/") or "@" in text

    def _completion_count(self) -> int:
        state = self.draft.complete_state
        return 0 if state is None else min(MOST_COMPLETIONS, len(state.completions))

    def _completion_rows(self) -> StyleAndTextTuples:
        state = self.draft.complete_state
        if state is None:
            return []
        return completion_rows(state, self._output.get_size().columns, MOST_COMPLETIONS)

    async def run(self, started: Callable[[], None]) -> None:
        """Run until `leave`; `started` is called when the first frame is drawn."""
        await self.app.run_async(
            pre_run=partial(_call_soon, started),
            handle_sigint=False,
            set_exception_handler=False,
        )

    def close(self) -> None:
        for timer in (self._hint_timer, self._frame_timer, self._second_timer, self.app.pause):
            if timer is not None:
                timer.cancel()


def _call_soon(callback: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_soon(callback)
