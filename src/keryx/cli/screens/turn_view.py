"""A running turn on a terminal: the model's text, and its calls as bars on one time axis.

The view depends on events alone: the same events give the same picture.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from keryx import events as ev
from keryx.cli.screens.outcomes import MARKS, STYLES, ending_of

BAR = 28
"""The width of the time axis, in characters."""
TAIL = 500
"""Characters of a call's output that are kept, to find its last line."""


@dataclass(slots=True)
class _Bar:
    tool: str
    preview: str
    began: float
    ended: float | None = None
    ending: str = ""
    reason: str | None = None
    printed: str = ""
    """The end of its output."""

    @property
    def last(self) -> str:
        """Return the last line of its output."""
        return self.printed.rstrip("\n").rpartition("\n")[2]


@dataclass(slots=True)
class _Step:
    text: str = ""
    cut: bool = False
    bars: dict[str, _Bar] = field(default_factory=dict[str, _Bar])
    steers: list[str] = field(default_factory=list[str])


class TurnView:
    """The state of one turn: feed it events, and render it at any time."""

    def __init__(self) -> None:
        self._steps: list[_Step] = []
        self._finished: ev.TurnFinished | None = None

    def show(self, event: ev.Event) -> None:
        """Apply one event."""
        match event:
            case ev.StepStarted():
                self._steps.append(_Step())
            case ev.TextDelta() if self._steps:
                self._steps[-1].text += event.text
            case ev.StepSnapshot() if self._steps:
                self._steps[-1].text = event.text
            case ev.StepReset() if self._steps:
                self._steps[-1] = _Step()
            case ev.StepReplied() if self._steps:
                self._steps[-1].text, self._steps[-1].cut = event.text, event.cut
            case ev.MessageAccepted() if event.mode == "steer" and self._steps:
                self._steps[-1].steers.append(event.text)
            case ev.TurnFinished():
                self._finished = event
            case _:
                self._show_call(event)

    def _show_call(self, event: ev.Event) -> None:
        match event:
            case ev.CallStarted() if self._steps:
                bar = _Bar(event.tool, event.preview, event.at)
                self._steps[-1].bars[event.call_id] = bar
            case ev.CallOutput() if (bar := self._bar(event.call_id)) is not None:
                bar.printed = (bar.printed + event.text)[-TAIL:]
            case ev.CallFinished() if (bar := self._bar(event.call_id)) is not None:
                bar.ended = event.at
                bar.ending, exit_code = ending_of(event)
                bar.reason = exit_code or event.reason
            case _:
                return

    def _bar(self, call_id: str) -> _Bar | None:
        return next((s.bars[call_id] for s in self._steps if call_id in s.bars), None)

    def render(self, now: float) -> RenderableType:
        """Return the picture at the time `now`."""
        parts: list[RenderableType] = []
        for step in self._steps:
            if step.text:
                parts.append(Text(step.text + (" [cut]" if step.cut else "")))
            if step.bars:
                parts.append(_table(list(step.bars.values()), now))
            parts += [Text(f"> {steer}", style="bold") for steer in step.steers]
        if self._finished is not None:
            parts.append(Text(f"— {self._finished.outcome}", style="dim"))
        return Group(*parts)


def _table(bars: list[_Bar], now: float) -> Table:
    table = Table.grid(padding=(0, 1))
    for _ in range(4):
        table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis")
    began = min(bar.began for bar in bars)
    span = max(max(bar.ended or now for bar in bars) - began, 0.001)
    for bar in bars:
        ended = now if bar.ended is None else bar.ended
        style = STYLES.get(bar.ending, "cyan")
        indent = round((bar.began - began) / span * BAR)
        width = max(1, round((ended - bar.began) / span * BAR))
        line = " " * indent + ("━" if bar.ending else "╍") * min(width, BAR - indent or 1)
        table.add_row(
            Text(MARKS.get(bar.ending, "▶"), style=style),
            Text(bar.tool, style="bold"),
            Text(line.ljust(BAR), style=style),
            Text(f"{ended - bar.began:5.2f} s"),
            Text(_note(bar), style="dim"),
        )
    return table


def _note(bar: _Bar) -> str:
    if bar.ending == "exited":
        return bar.reason or ""
    if bar.ending not in ("", "completed"):
        return f"{bar.ending}: {bar.reason}" if bar.reason else bar.ending
    return bar.last or bar.preview
