"""Writes the terminal: finished rows into the scrollback, and a live region below them.

There is one writer. Everything of a frame (erase the live region, finished rows, the live region
again) is one write inside a synchronised update, so nothing comes between the parts. The first row
is erased on its own: some terminals copy what `erase below` removes from the top of the screen into
the scrollback.

A frame may be on its way while the terminal changes its size, and nothing tells the chat. So a
frame must find the top of the region in a terminal of another width. tmux says where a wrapped row
begins. Elsewhere rows above the caret leave a part of the width free, and while the size changes
nothing is written: the first frame after that is computed for a size that has settled.

This module uses private members of prompt_toolkit's renderer; the tests run it in a real terminal.
"""

from __future__ import annotations

import os
import re
import select
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any, Final, TextIO

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Point, Size
from prompt_toolkit.layout import Layout
from prompt_toolkit.layout.screen import Char, Screen
from prompt_toolkit.output.color_depth import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.renderer import Renderer
from prompt_toolkit.styles import BaseStyle
from prompt_toolkit.utils import get_cwidth

from keryx.aio.clock import RealClock, Timer

BEGIN_UPDATE: Final = "\x1b[?2026h"
END_UPDATE: Final = "\x1b[?2026l"
ERASE_ROW: Final = "\x1b[2K"
ERASE_FROM_HERE: Final = f"{ERASE_ROW}\x1b7\x1b[B\x1b[J\x1b8"
"""Erases this row and all rows below it; the cursor stays."""
CURSOR_UP: Final = "\x1b[A"
WRAP_OFF: Final = "\x1b[?7l"
WRAP_ON: Final = "\x1b[?7h"
HOME: Final = "\x1b[H"
FREE_PART: Final = 4
"""This part of the width is left free by live rows outside tmux: a frame that is on its way while
the terminal becomes narrower by less finds them as they were, not wrapped."""
READABLE: Final = 30
"""Columns that live rows may have in any case."""
NARROWEST: Final = 10
"""Columns of the narrowest terminal in which the region is still found."""
SHORT_ROW: Final = 16
_STYLE_SEQUENCE: Final = re.compile("\x1b\\[[0-9;]*m")
RESIZE_PAUSE: Final = 0.3
"""Seconds without a change of size until the screen is drawn again: tmux tells of changes late."""
MOST_REPRINTED: Final = 500
"""Finished rows that are remembered, to print the last screenful again."""


class LiveOutput(Vt100_Output):
    """Holds back what is flushed inside `one_write`, and writes it at the end of the block."""

    def __init__(
        self,
        stdout: TextIO,
        get_size: Callable[[], Size],
        term: str | None = None,
        default_color_depth: ColorDepth | None = None,
        enable_bell: bool = True,  # noqa: FBT001, FBT002 (as prompt_toolkit calls it)
        enable_cpr: bool = False,  # noqa: ARG002, FBT001, FBT002 (replies would get into the draft)
    ) -> None:
        super().__init__(stdout, get_size, term, default_color_depth, enable_bell, enable_cpr=False)
        self._depth = 0
        self.is_in_tmux = False
        self.is_lost = False
        """Whether the terminal cannot be written any more."""
        self.finds_row_starts = (term or "").startswith(("tmux", "screen"))
        """Whether a backspace at the left edge goes back to the row that was wrapped, as in tmux.

        Then the top of the region is found whatever the width is. tmux tells of a new width up to
        250 ms after it has wrapped the rows anew, and a frame may be on its way in any case.
        """

    @property
    def live_columns(self) -> int:
        """The columns that live rows above the draft may have."""
        columns = self.get_size().columns
        if self.finds_row_starts:
            return columns
        return max(min(columns, READABLE), columns - columns // FREE_PART)

    @contextmanager
    def one_write(self) -> Generator[None]:
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if self._depth == 0:
                self.flush()

    def flush(self) -> None:
        if self._depth or not self._buffer:
            return
        text, self._buffer = "".join(self._buffer), []
        encoding = self.stdout.encoding or "utf-8"
        data = f"{BEGIN_UPDATE}{text}{END_UPDATE}".encode(encoding, "replace")
        try:
            _write_all(self.stdout.fileno(), data)
        except OSError:
            self.is_lost = True

    def write_through(self, sequence: str) -> None:
        """Write a sequence for the terminal itself, also if tmux is in between."""
        wrapped = "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"
        self.write_raw(wrapped if self.is_in_tmux else sequence)

    def erase_down(self) -> None:
        """Do nothing: the renderer has erased the rows already."""

    def cursor_up(self, amount: int) -> None:
        """Go up; in a terminal that finds the starts of rows the renderer does this itself."""
        if not self.finds_row_starts:
            super().cursor_up(amount)

    def get_size(self) -> Size:
        """Return the size without the last column: a full row would wrap in some terminals."""
        size = super().get_size()
        return Size(rows=max(1, size.rows), columns=max(2, size.columns - 1))


def _write_all(descriptor: int, data: bytes) -> None:
    remaining = memoryview(data)
    while remaining:
        try:
            remaining = remaining[os.write(descriptor, remaining) :]
        except BlockingIOError:
            select.select([], [descriptor], [])


class LiveRenderer(Renderer):
    """Renders the live region, and puts finished rows above it."""

    def __init__(self, style: BaseStyle, output: LiveOutput) -> None:
        self._live_output = output
        self._finished: list[str] = []
        self._history: deque[str] = deque(maxlen=MOST_REPRINTED)
        self.is_paused = False
        """While the size changes nothing is written; in tmux one short row, which cannot wrap."""
        super().__init__(style, output)

    @property
    def has_history(self) -> bool:
        return bool(self._history or self._finished)

    def finish(self, rows: Iterable[str]) -> None:
        """Put finished rows into the scrollback, with the next frame."""
        self._finished.extend(rows)

    def render(self, app: Application[Any], layout: Layout, is_done: bool = False) -> None:  # noqa: FBT001, FBT002 (as prompt_toolkit calls it)
        with self._live_output.one_write():
            size = self._live_output.get_size()
            if self.is_paused and not is_done:
                if not self._live_output.finds_row_starts:
                    return
                self._erase_rows(size)
                self._write_short_row(app.current_buffer.document.current_line_before_cursor)
                return
            height = layout.container.preferred_height(size.columns, size.rows).preferred
            has_shrunk = self._last_screen is not None and height < self._last_screen.height
            is_new = self._finished or has_shrunk or self._last_size not in (None, size)
            if is_new or self._live_output.finds_row_starts:
                self._erase_rows(size)
                self._write_finished()
            super().render(app, layout, is_done)
            if self._live_output.finds_row_starts and not is_done:
                self._place_cursor()

    def erase(self, leave_alternate_screen: bool = True) -> None:  # noqa: FBT001, FBT002 (as prompt_toolkit calls it)
        """Erase the live region, so that only finished rows are left."""
        with self._live_output.one_write():
            self._erase_rows(self._live_output.get_size())
            self._write_finished()
            self.reset(leave_alternate_screen=leave_alternate_screen)

    def reprint(self) -> None:
        """Erase what this chat has written on the screen, and print its last rows again."""
        size = self._live_output.get_size()
        room = max(1, size.rows - (0 if self._last_screen is None else self._last_screen.height))
        rows: list[str] = []
        height = 0
        for row in reversed(self._history):
            height += row_height(row, size.columns + 1)
            if height > room:
                break
            rows.insert(0, row)
        with self._live_output.one_write():
            if height < room:
                # What is above belongs to the shell.
                self._erase_rows(size)
                self.output.write_raw(CURSOR_UP * height)
            else:
                self.output.write_raw(HOME)
            self.output.write_raw(ERASE_FROM_HERE)
            self._forget_screen()
            self._write_rows(rows)

    def _write_finished(self) -> None:
        rows, self._finished = self._finished, []
        self._history.extend(rows)
        self._write_rows(rows)

    def _write_rows(self, rows: Sequence[str]) -> None:
        """Write rows that stay. A terminal that is narrower by now wraps them, and cuts nothing."""
        if rows:
            self.output.write_raw(WRAP_ON + "".join(f"{row}\r\n" for row in rows) + WRAP_OFF)

    def _write_short_row(self, line: str) -> None:
        """Show the end of the draft in a row that fits into any terminal."""
        text = f"> {line[-SHORT_ROW:]}" if line.isascii() else ">"
        self.output.write_raw(text)
        self._last_screen = Screen(initial_height=1)
        self._cursor_pos = Point(x=len(text), y=0)

    def _place_cursor(self) -> None:
        """Move the cursor from the last row of the region to the caret."""
        screen, caret = self._last_screen, self._cursor_pos
        assert screen is not None
        below = [_row_start(_length(screen, y)) for y in range(caret.y + 1, screen.height)]
        self.output.write_raw(WRAP_OFF)
        self.output.write_raw("".join(f"{start}{CURSOR_UP}" for start in reversed(below)))
        self.output.write_raw("\r")
        self.output.cursor_forward(caret.x)
        self.output.write_raw(WRAP_ON)

    def _erase_rows(self, size: Size) -> None:
        """Erase the region row by row and leave the cursor at its top, whatever its width is now.

        When a terminal becomes narrower, it wraps the rows that no longer fit.
        """
        screen, columns, cursor = self._last_screen, size.columns + 1, self._cursor_pos
        if screen is not None:
            lengths = [max(1, _length(screen, y)) for y in range(max(screen.height, cursor.y + 1))]
            if self._live_output.finds_row_starts:
                lengths[cursor.y] = max(lengths[cursor.y], cursor.x)
                starts = [_row_start(length) for length in lengths[: cursor.y + 1]]
                self.output.write_raw(WRAP_OFF + CURSOR_UP.join(reversed(starts)) + WRAP_ON)
            else:
                heights = [-(-length // columns) for length in lengths]
                self.output.write_raw("\r")
                self.output.cursor_up(sum(heights[: cursor.y]) + cursor.x // columns)
            # The first row may also be the last one of the screen.
            self.output.write_raw(ERASE_FROM_HERE if len(lengths) > 1 else ERASE_ROW)
        self._forget_screen()

    def _forget_screen(self) -> None:
        self._cursor_pos = Point(x=0, y=0)
        self._last_screen = None
        self._last_size = None
        self._last_style = None


def _row_start(length: int) -> str:
    """Return what moves the cursor to the start of a row of this length, however it is wrapped."""
    return "\r" + "\b\r" * (length // NARROWEST)


def row_height(row: str, columns: int) -> int:
    """Return how many rows of the terminal a finished row takes."""
    return max(1, -(-get_cwidth(_STYLE_SEQUENCE.sub("", row)) // columns))


def _length(screen: Screen, y: int) -> int:
    """Return how many columns of a row are in use."""
    row: dict[int, Char] = screen.data_buffer[y]
    return max((x + 1 for x, cell in row.items() if cell.char != " "), default=0)


class LiveApplication(Application[None]):
    """An application that waits until the terminal's size has settled."""

    pause: Timer | None = None

    def _on_resize(self) -> None:
        renderer = self.renderer
        assert isinstance(renderer, LiveRenderer)
        renderer.is_paused = True
        self._redraw()
        if self.pause is not None:
            self.pause.cancel()
        clock = RealClock()
        self.pause = clock.call_at(clock.monotonic() + RESIZE_PAUSE, self._draw_resized)

    def _draw_resized(self) -> None:
        renderer = self.renderer
        assert isinstance(renderer, LiveRenderer)
        renderer.is_paused = False
        self.invalidate()
