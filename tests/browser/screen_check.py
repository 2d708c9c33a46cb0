"""What the screen shows against what the API says: the same rows, each once."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from playwright.async_api import Locator, expect

from tests.browser.browser_user import Person, Tab

QUIET = (
    "turn.finished",
    "turn.started",
    "turn.resumed",
    "model.retried",
    "session.changed",
    "context.compacted",
)
"""What the screen says in lines of their own, which are no rows of somebody's."""
OUTCOMES = {
    "Failed": "failed",
    "Denied": "denied",
    "Cancelled": "cancelled",
    "Not started": "cancelled",
    "Unknown": "unknown",
    "Running": "running",
    "Waiting for you": "waiting",
}
"""What the screen calls them, and what the API does."""


@dataclass(frozen=True, slots=True)
class Call:
    tool: str
    outcome: str
    result: Any


@dataclass(slots=True)
class Row:
    """A message or a reply, in the words of whoever said it."""

    who: str
    text: str
    calls: list[Call] = field(default_factory=list[Call])


async def stored_rows(person: Person, session_id: str) -> list[Row]:
    """The transcript as the API has it."""
    page = await person.asks(f"/api/sessions/{session_id}/messages?limit=200")
    assert page["next"] is None
    rows: list[Row] = []
    open_calls: dict[str, tuple[Row, int]] = {}
    for entry in page["rows"]:
        event = entry["event"]
        match event["type"]:
            case "message.accepted":
                rows.append(Row("You", event["text"]))
            case "step.replied":
                row = Row("Reply", event["text"])
                for call in event.get("calls", ()):
                    open_calls[call["call_id"]] = (row, len(row.calls))
                    row.calls.append(Call(call["tool"], "running", None))
                rows.append(row)
            case "call.finished":
                row, at = open_calls.pop(event["call_id"])
                result = [_value(part) for part in event["result"]]
                row.calls[at] = Call(event["tool"], event["outcome"], result)
            case kind if kind in QUIET:
                continue
            case other:
                raise AssertionError(f"the transcript has a row of the kind {other}")
    assert open_calls == {}
    return rows


def _value(part: dict[str, Any]) -> Any:
    """As the screen shows it: what a command printed is read as such."""
    if part["type"] != "json":
        return part["text"]
    match part["value"]:
        case {"output": str(output)}:
            return output or "No output."
        case value:
            return value


async def shown(tab: Tab) -> list[Row]:
    """The transcript as the screen has it; calls are unfolded to read them."""
    rows: list[Row] = []
    for article in await tab.articles.all():
        who = await article.get_attribute("aria-label") or ""
        if who == "You":
            rows.append(Row(who, await article.locator(".row-text").inner_text()))
            continue
        text = "\n\n".join(await article.locator(".markdown").all_inner_texts())
        calls = article.locator(".call-row")
        rows.append(Row(who, text, [await _call(call) for call in await calls.all()]))
    return rows


async def _call(call: Locator) -> Call:
    fold = call.get_by_role("button", expanded=False)
    if await fold.count() > 0:
        await fold.first.click()
    standing = await call.locator(".call-line-standing").inner_text()
    outcome = next((OUTCOMES[text] for text in OUTCOMES if text in standing), "completed")
    parts = call.get_by_role("group", name="Result").locator("pre")
    results = [await part.text_content() or "" for part in await parts.all()]
    tool = await call.get_attribute("aria-label") or ""
    return Call(tool, outcome, _read(results))


def _read(results: list[str]) -> list[Any]:
    read: list[Any] = []
    for text in results:
        try:
            read.append(json.loads(text))
        except ValueError:
            read.append(text)
    return read


async def compare(person: Person, *tabs: Tab) -> list[Row]:
    """Each screen is what the transcript says, quiet lines too, and so is one that reads anew."""
    expected = await stored_rows(person, tabs[0].session_id)
    fresh = await person.opens(tabs[0].page.url)
    seen: list[str] = []
    for tab in (fresh, *tabs):
        await tab.looks_here()
        await expect(tab.articles).to_have_count(len(expected))
        assert await shown(tab) == expected
        seen.append(await tab.transcript.aria_snapshot())
    assert seen == [seen[0]] * len(seen)
    await fresh.page.close()
    return expected
