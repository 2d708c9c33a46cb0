"""How each built-in tool stops: hung, cancelled, measured. Writes `docs/cancelling.md`.

Run as `python -m benchmarks.cancelling`; the scenarios are those of the tests.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.tools.hanging_tools import ATOMIC, HANGING, opened

from keryx.aio.loops import run_loop

ROUNDS = 5
DOCUMENT = Path(__file__).parent.parent / "docs" / "cancelling.md"
HEAD = """# How each tool stops

Made by `python -m benchmarks.cancelling --write` from the scenarios that the tests run: each tool
is made to hang and then cancelled. The time is from the cancel to the outcome, the median of some
rounds. A tool that ends within the grace of 200 ms ends as `cancelled`, with what it had printed.

| tool | long-running? | how it stops | measured | outcome |
|---|---|---|---|---|
"""


async def measure(name: str) -> tuple[float, str]:
    times: list[float] = []
    outcome = ""
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            async with opened(Path(folder), HANGING[name]) as (shop, call, hangs):
                batch = shop.start(call)
                await hangs()
                began = time.perf_counter()
                batch.cancel(call.call_id, "interrupt", by="benchmark")
                (ended,) = await batch.outcomes()
                times.append(time.perf_counter() - began)
                outcome = ended.outcome
    return statistics.median(times), outcome


async def table() -> str:
    rows: list[str] = []
    for name, scenario in HANGING.items():
        seconds, outcome = await measure(name)
        rows.append(f"| `{name}` | yes | {scenario.how} | {seconds * 1e3:.1f} ms | `{outcome}` |")
    how = "checked before it acts; atomic, and over in a moment"
    rows += [f"| `{name}` | no | {how} | | `cancelled`, not started |" for name in ATOMIC]
    return HEAD + "\n".join(rows) + "\n" + _text_below()


def _text_below() -> str:
    """Return what people wrote below the table."""
    _, heading, text = DOCUMENT.read_text().partition("\n## ")
    return heading + text


def main() -> int:
    text = run_loop(table())
    print(text)
    if "--write" in sys.argv:
        DOCUMENT.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
