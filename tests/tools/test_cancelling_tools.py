"""Every built-in tool, hung and cancelled with each reason: dead, named, its output kept.

The browser tools share one browser, in `tests/tools/browser/test_browser_cancelling.py`.
`docs/cancelling.md` is made from the same scenarios by `python -m benchmarks.cancelling`.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from keryx.aio.bridge import Bridge
from keryx.aio.scope import Scope
from keryx.messages import Reason
from tests.tools.hanging_tools import ATOMIC, HANGING, opened

REASONS: tuple[Reason, ...] = ("interrupt", "steer", "timeout", "shutdown", "parent")
DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "cancelling.md"

pytestmark = pytest.mark.promise("001.2", "tools.1", "kit.9")


@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.parametrize("name", [name for name, scenario in HANGING.items() if not scenario.page])
async def test_a_hanging_tool_gives_control_back_and_leaves_nothing(
    tmp_path: Path, name: str, reason: Reason
) -> None:
    async with opened(tmp_path, HANGING[name]) as (shop, call, hangs):
        batch = shop.start(call)
        await hangs()
        batch.cancel(call.call_id, reason, by="tester")
        (outcome,) = await batch.outcomes()
        assert (outcome.outcome, outcome.reason) == ("cancelled", reason)
        assert outcome.left_over == ()
        assert HANGING[name].keeps in outcome.text


@pytest.mark.parametrize("name", ATOMIC)
async def test_a_short_tool_that_is_cancelled_before_it_acts_does_nothing(
    tmp_path: Path, name: str
) -> None:
    async with opened(tmp_path, HANGING["terminal"]) as (shop, _, _hangs):
        before = await shop.runtime.bridge.to_thread(_tree, shop.workspace)
        # A terminal that holds the workspace keeps the short one from starting.
        first = shop.call("terminal", command="echo hanging; sleep 1000", alone=True)
        call = shop.call(name, **ATOMIC[name])
        batch = shop.start(first, call)
        await shop.watch.until(first.call_id, "hanging")
        batch.cancel(call.call_id, "interrupt", by="tester")
        batch.cancel(first.call_id, "interrupt", by="tester")
        outcome = (await batch.outcomes())[1]
        assert (outcome.outcome, outcome.started) == ("cancelled", False)
        assert await shop.runtime.bridge.to_thread(_tree, shop.workspace) == before


def _tree(folder: Path) -> dict[str, Any]:
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


async def test_every_tool_is_in_the_table_and_in_the_document(tmp_path: Path) -> None:
    async with opened(tmp_path, HANGING["terminal"]) as (shop, _, _hangs):
        registered = {tool.name for tool in shop.tools}
    assert registered == {*HANGING, *ATOMIC}
    scope = Scope("reader")
    bridge = Bridge(scope)
    text = await bridge.to_thread(DOCUMENT.read_text)
    await bridge.close()
    scope.close()
    for name in registered:
        assert f"| `{name}` |" in text
    await asyncio.sleep(0)
