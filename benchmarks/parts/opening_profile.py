"""Where the time goes until a page is drawn: what the main thread of its tab works on.

The figures are CPU time, which other programs on the machine disturb less than wall time.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from playwright.async_api import Browser

CATEGORIES: Final = [
    "devtools.timeline",
    "disabled-by-default-devtools.timeline",
    "disabled-by-default-v8.compile",
    "loading",
    "toplevel",
    "v8",
    "v8.execute",
]
KINDS: Final = {
    "styles and layout": ("Layout", "UpdateLayoutTree", "ParseAuthorStyleSheet"),
    "painting": ("Paint", "PrePaint", "Layerize", "Commit"),
    "the document": ("ParseHTML", "DocumentLoader", "LocalWindowProxy", "HTMLDocumentParser"),
    "compiling scripts": ("V8.Compile", "V8.Parse", "V8.PreParse", "v8.compile"),
    "garbage collection": ("MinorGC", "MajorGC", "V8.GC"),
    "running scripts": ("FunctionCall", "RunMicrotasks", "v8.", "EvaluateScript", "TimerFire"),
}
OTHER: Final = "messages between processes, and the rest"


@dataclass(frozen=True, slots=True)
class MainThread:
    """CPU milliseconds of a tab's main thread from the navigation to the paint, by kind of work."""

    kinds: Counter[str]

    @property
    def total(self) -> float:
        return sum(self.kinds.values())


async def start_profile(browser: Browser) -> None:
    await browser.start_tracing(categories=CATEGORIES)


async def end_profile(browser: Browser, url: str, took: float) -> MainThread:
    """Return what the tab at this address did in the `took` milliseconds after its navigation."""
    events = json.loads(await browser.stop_tracing())["traceEvents"]
    commit = next(event for event in events if _is_commit(event, url))
    thread = (commit["pid"], commit["tid"])
    until = commit["ts"] + took * 1_000
    work = [
        event
        for event in events
        if event.get("ph") == "X"
        and (event["pid"], event["tid"]) == thread
        and event["ts"] <= until
    ]
    return MainThread(_self_times(sorted(work, key=lambda event: (event["ts"], -event["dur"]))))


def _is_commit(event: dict[str, Any], url: str) -> bool:
    if event["name"] != "CommitLoad":
        return False
    return str(event["args"]["data"].get("url", "")).startswith(url)


def _self_times(events: Sequence[dict[str, Any]]) -> Counter[str]:
    """Add up each event without those inside it; they are sorted, the outer one first."""
    kinds: Counter[str] = Counter()
    outer: list[dict[str, Any]] = []
    for event in events:
        while outer and outer[-1]["ts"] + outer[-1]["dur"] <= event["ts"]:
            outer.pop()
        cpu = event.get("tdur", 0) / 1_000
        kinds[_kind(event["name"])] += cpu
        if outer:
            kinds[_kind(outer[-1]["name"])] -= cpu
        outer.append(event)
    return kinds


def _kind(name: str) -> str:
    for kind, prefixes in KINDS.items():
        if name.startswith(prefixes):
            return kind
    return OTHER
