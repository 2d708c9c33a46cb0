"""Measurements inside a tab: moments, frames, and the memory after a garbage collection.

Scripts in the tab take the times, by its own clock, so the way to the driver is not included.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from playwright.async_api import Page

WATCH: Final = """
(() => {
  const watch = { moment: null, frames: [], long: [], on: false };
  const frame = requestAnimationFrame;
  const painted = (tell) => frame(() => frame(() => tell(performance.now())));
  const until = (found, tell) => {
    const look = () => (found() ? painted(tell) : frame(look));
    look();
  };
  /* The end of the transcript is in view, and it is this. */
  const ended = (words) => {
    const last = [...document.querySelectorAll(".transcript-scroll article")].at(-1);
    if (!last || !last.textContent.includes(words)) return false;
    const { bottom, height } = last.getBoundingClientRect();
    return height > 0 && bottom > 0 && bottom <= innerHeight;
  };
  watch.fromNavigation = (words) => {
    watch.moment = new Promise((tell) => until(() => ended(words), tell));
  };
  const fromClick = (selector, found) => {
    watch.moment = new Promise((tell) => {
      const clicked = (event) => {
        if (!event.target.closest(selector)) return;
        removeEventListener("click", clicked, true);
        until(() => found(event.target), (now) => tell(now - event.timeStamp));
      };
      addEventListener("click", clicked, true);
    });
  };
  watch.opening = (words) => fromClick("nav", () => ended(words));
  watch.cancelling = () => {
    let call = null;
    const isCancelled = (target) => {
      call ??= target.closest(".call-row");
      return call.classList.contains("is-cancelled");
    };
    fromClick(".button-x", isCancelled);
  };
  let round = 0;
  const count = (mine, before) => (now) => {
    if (!watch.on || mine !== round) return;
    if (before !== null) watch.frames.push(now - before);
    frame(count(mine, now));
  };
  new PerformanceObserver((list) => {
    if (!watch.on) return;
    for (const { duration, scripts, styleAndLayoutStart, startTime } of list.getEntries()) {
      const said = scripts.map((each) => `${each.invoker} ${Math.round(each.duration)} ms`);
      const layout = styleAndLayoutStart ? startTime + duration - styleAndLayoutStart : 0;
      watch.long.push({ duration, layout, by: said.join(", ") });
    }
  }).observe({ type: "long-animation-frame" });
  watch.begin = () => {
    Object.assign(watch, { frames: [], long: [], on: true });
    frame(count(++round, null));
  };
  watch.end = () => {
    watch.on = false;
    return { frames: watch.frames, long: watch.long };
  };
  window.__watch = watch;
})();
"""
MOST_FRAME: Final = 50.0
EMPTY: Final = """<!doctype html><title>empty</title><p>empty</p><script>
requestAnimationFrame(() => requestAnimationFrame(() => { window.__painted = performance.now(); }));
</script>"""


def percentile(values: Sequence[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


@dataclass(slots=True)
class Frames:
    """Milliseconds from each frame to the next, and the scripts that made frames long."""

    durations: list[float] = field(default_factory=list[float])
    long: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def summary(self) -> str:
        p50, p99, worst = (percentile(self.durations, part) for part in (0.5, 0.99, 1.0))
        late = sum(duration > MOST_FRAME for duration in self.durations)
        return (
            f"p50 {p50:5.1f}  p99 {p99:5.1f}  worst {worst:6.1f} ms, "
            f"{late} of {len(self.durations):,} over {MOST_FRAME:.0f} ms"
        )

    @property
    def worst(self) -> float:
        return max(self.durations)

    def blame(self, most: int = 3) -> list[str]:
        """Return lines about the longest frames in which the page worked."""
        ordered = sorted(self.long, key=lambda frame: -frame["duration"])[:most]
        return [
            f"{frame['duration']:.0f} ms, of it {frame['layout']:.0f} from style and layout on: "
            f"{frame['by'] or 'no script'}"
            for frame in ordered
        ]


@asynccontextmanager
async def frames(page: Page) -> AsyncGenerator[Frames]:
    """Measure every frame while this context is entered."""
    measured = Frames()
    await page.evaluate("__watch.begin()")
    yield measured
    result = await page.evaluate("__watch.end()")
    measured.durations, measured.long = result["frames"], result["long"]


class Devtools:
    """The DevTools protocol of one tab."""

    def __init__(self, session: Any) -> None:
        self._session = session

    @classmethod
    async def of(cls, page: Page) -> Devtools:
        return cls(await page.context.new_cdp_session(page))

    async def ask(self, method: str, **parameters: object) -> dict[str, Any]:
        return await self._session.send(method, parameters)

    def listen(self, event: str, on_event: Callable[[dict[str, Any]], None]) -> None:
        self._session.on(event, on_event)


@dataclass(frozen=True, slots=True)
class HeapSample:
    """The memory of a tab after so many turns, after a garbage collection."""

    turns: int
    heap: int
    nodes: int
    listeners: int


async def sample_heap(tools: Devtools, turns: int) -> HeapSample:
    for _ in range(2):  # what the first one finalizes, the second one frees
        await tools.ask("HeapProfiler.collectGarbage")
    heap = await tools.ask("Runtime.getHeapUsage")
    counters = await tools.ask("Memory.getDOMCounters")
    return HeapSample(turns, int(heap["usedSize"]), counters["nodes"], counters["jsEventListeners"])


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the slope of the straight line that is nearest to the points."""
    count = len(points)
    mean_x, mean_y = sum(x for x, _ in points) / count, sum(y for _, y in points) / count
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0
