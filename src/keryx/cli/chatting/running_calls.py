"""The calls of a turn while they run: their numbers, output, progress and time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import msgspec

from keryx import events as ev
from keryx.cli.chatting.pieces import Piece, one_line, printable
from keryx.cli.screens.outcomes import MARKS, ending_of, outcome_line
from keryx.messages import Json, text_of

OUTPUT_TAIL: Final = 2_000
"""Characters of a running call's output that are kept, for its last line."""
RESULT_LINES: Final = 5
"""Lines of a result that are shown."""
OWN_RESULT_LINES: Final = 200
"""Lines of the result of a call that a person ran, to read it."""
LONGEST_PREVIEW: Final = 100


@dataclass(slots=True)
class CallRow:
    """One call; `number` is what a person types to stop it."""

    number: int
    call_id: str
    tool: str
    preview: str
    began: float
    is_own: bool = False
    """Whether a person ran it, and no model."""
    output: str = ""
    done: float | None = None
    total: float | None = None
    note: str = ""
    nested: int = 0

    @property
    def title(self) -> str:
        return f"{self.tool} {one_line(self.preview, LONGEST_PREVIEW)}".rstrip()

    @property
    def last_line(self) -> str:
        """The last line of the output that is not empty, or the note of its progress."""
        lines = printable(self.output).rstrip().splitlines()
        return lines[-1].strip() if lines else self.note


class RunningCalls:
    """Follows the calls of a session by their events."""

    def __init__(self) -> None:
        self.rows: dict[str, CallRow] = {}
        self._last_number = 0

    def by_number(self, number: int) -> CallRow | None:
        return next((row for row in self.rows.values() if row.number == number), None)

    def restart_numbers(self) -> None:
        """Number the calls of the next turn from 1."""
        if not self.rows:
            self._last_number = 0

    def apply(self, event: ev.Event) -> list[Piece]:
        """Apply an event; return what is finished."""
        match event:
            case ev.CallStarted():
                self._start(event)
            case ev.CallOutput() if (row := self._row(event)) is not None:
                row.output = (row.output + event.text)[-OUTPUT_TAIL:]
            case ev.CallProgress() if (row := self._row(event)) is not None:
                _show_progress(row, event)
            case ev.CallsSnapshot():
                self._restore(event)
            case ev.CallFinished():
                return self._finish(event)
            case _:
                pass
        return []

    def _row(self, event: ev.CallOutput | ev.CallProgress) -> CallRow | None:
        return self.rows.get(event.parent or event.call_id) or self.rows.get(event.call_id)

    def _start(self, event: ev.CallStarted) -> None:
        self._last_number += 1
        self.rows[event.call_id] = CallRow(
            self._last_number,
            event.call_id,
            event.tool,
            event.preview,
            event.at,
            is_own=event.step_id is None,
        )

    def _restore(self, event: ev.CallsSnapshot) -> None:
        for call in event.running:
            row = self.rows.get(call.call_id)
            if row is not None:
                row.output, row.done, row.total, row.note = (
                    call.output,
                    call.done,
                    call.total,
                    call.note,
                )

    def _finish(self, event: ev.CallFinished) -> list[Piece]:
        row = self.rows.pop(event.call_id, None)
        number = "" if row is None else f"{row.number} "
        title = event.tool if row is None else row.title
        ending, exit_code = ending_of(event)
        problem = outcome_line(event).removeprefix(f"{event.tool}: ")
        parts = [title, exit_code, problem or seconds(event.duration)]
        line = " · ".join(part for part in parts if part)
        pieces = [Piece("call", f"{MARKS.get(ending, '·')} {number}{line}")]
        most = OWN_RESULT_LINES if row is not None and row.is_own else RESULT_LINES
        if event.outcome in ("completed", "failed") and (output := _output_of(event, most)):
            pieces.append(Piece("output", output))
        return pieces


def _show_progress(row: CallRow, event: ev.CallProgress) -> None:
    if event.nested is not None:
        row.nested += event.nested.count if event.nested.outcome is None else 0
        return
    row.done, row.total = event.done, event.total
    row.note = one_line(event.note, LONGEST_PREVIEW)


def _output_of(event: ev.CallFinished, most: int) -> str:
    """Return the first lines of the result, and how many more there are."""
    text = "\n".join(
        _readable(part.decode()) if isinstance(part, Json) else text_of((part,))
        for part in event.result
    )
    lines = printable(text).strip("\n").splitlines()
    more = len(lines) - most
    if more > 1:
        return "\n".join([*lines[:most], f"… {more} more lines"])
    return "\n".join(lines)


def _readable(value: Any) -> str:
    if isinstance(value, dict) and isinstance(output := value.get("output"), str):  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType] (any JSON)
        return output
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def seconds(duration: float) -> str:
    """Return a duration, as the page writes it."""
    if duration < 60:  # noqa: PLR2004 (a minute)
        return f"{duration:.1f} s"
    return f"{int(duration) // 60} min {int(duration) % 60} s"
