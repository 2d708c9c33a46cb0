"""A running turn on a terminal: what the model says, and its calls as bars on one time axis.

It is made of events alone: whatever reads the same events shows the same picture.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from keryx import events as ev

BAR = 28
"""How wide the time axis is, in letters."""
TAIL = 500
"""How much of a call's output is kept, to find its last line."""
MARKS = {"completed": "✓", "failed": "✗", "denied": "⊘", "cancelled": "■", "unknown": "?"}
STYLES = {
    "completed": "green",
    "failed": "red",
    "denied": "yellow",
    "cancelled": "yellow",
    "unknown": "magenta",
}


@dataclass(slots=True)
class _Bar:
    tool: str
    preview: str
    began: float
    ended: float | None = None
    outcome: str = ""
    reason: str | None = None
    printed: str = ""
    """The end of what it printed."""

    @property
    def last(self) -> str:
        """The last line that it printed."""
        return self.printed.rstrip("\n").rpartition("\n")[2]


@dataclass(slots=True)
class _Step:
    text: str = ""
    cut: bool = False
    bars: dict[str, _Bar] = field(default_factory=dict[str, _Bar])
    steers: list[str] = field(default_factory=list[str])


class TurnView:
    """What is known of a turn so far. Feed it events; render it whenever there is time."""

    def __init__(self) -> None:
        self._steps: list[_Step] = []
        self._finished: ev.TurnFinished | None = None

    def show(self, event: ev.Event) -> None:
        """Take one event."""
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
                bar.ended, bar.outcome, bar.reason = event.at, event.outcome, event.reason
            case _:
                return

    def _bar(self, call_id: str) -> _Bar | None:
        return next((s.bars[call_id] for s in self._steps if call_id in s.bars), None)

    def render(self, now: float) -> RenderableType:
        """The picture at this instant."""
        shown: list[RenderableType] = []
        for step in self._steps:
            if step.text:
                shown.append(Text(step.text + (" [cut]" if step.cut else "")))
            if step.bars:
                shown.append(_table(list(step.bars.values()), now))
            shown += [Text(f"> {steer}", style="bold") for steer in step.steers]
        if self._finished is not None:
            shown.append(Text(f"— {self._finished.outcome}", style="dim"))
        return Group(*shown)


def _table(bars: list[_Bar], now: float) -> Table:
    table = Table.grid(padding=(0, 1))
    for _ in range(4):
        table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis")
    began = min(bar.began for bar in bars)
    span = max(max(bar.ended or now for bar in bars) - began, 0.001)
    for bar in bars:
        ended = now if bar.ended is None else bar.ended
        style = STYLES.get(bar.outcome, "cyan")
        left = round((bar.began - began) / span * BAR)
        width = max(1, round((ended - bar.began) / span * BAR))
        drawn = " " * left + ("━" if bar.outcome else "╍") * min(width, BAR - left or 1)
        table.add_row(
            Text(MARKS.get(bar.outcome, "▶"), style=style),
            Text(bar.tool, style="bold"),
            Text(drawn.ljust(BAR), style=style),
            Text(f"{ended - bar.began:5.2f} s"),
            Text(_note(bar), style="dim"),
        )
    return table


def _note(bar: _Bar) -> str:
    if bar.outcome not in ("", "completed"):
        return f"{bar.outcome}: {bar.reason}" if bar.reason else bar.outcome
    return bar.last or bar.preview
