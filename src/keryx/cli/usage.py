"""Show tokens and cost by model, for all sessions or one."""

from __future__ import annotations

import argparse
import sys
from datetime import datetime, time
from itertools import groupby

from keryx.aio.loops import run_loop
from keryx.app import Keryx
from keryx.ports.usage import UsageRow

UNKNOWN = "unknown"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--session", help="only this session")
    parser.add_argument("--today", action="store_true", help="only since midnight")
    parser.add_argument("--home", help="where state lives; default: KERYX_HOME")


def run(options: argparse.Namespace) -> int:
    return run_loop(_run(options))


async def _run(options: argparse.Namespace) -> int:
    async with Keryx(home=options.home, resume=False) as app:
        rows = await app.store.usage(options.session, since=_midnight() if options.today else None)
    if not rows:
        print(f"no tokens were used {'today' if options.today else 'yet'}", file=sys.stderr)
        return 0
    print(
        f"{'model':<32} {'input':>12} {'cached':>12} {'output':>12} {'reasoning':>12} {'cost':>10}"
    )
    by_model = sorted(rows, key=lambda row: row.model)
    for model, model_rows in groupby(by_model, key=lambda row: row.model):
        _print(model, list(model_rows))
    return 0


def _midnight() -> float:
    """Return the start of this day in the local time zone."""
    today = datetime.now().astimezone().date()
    return datetime.combine(today, time.min).astimezone().timestamp()


def _print(model: str, rows: list[UsageRow]) -> None:
    counts = [
        sum(getattr(row, name) for row in rows)
        for name in ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens")
    ]
    costs = [row.cost for row in rows if row.cost is not None]
    # If one cost is unknown, the sum is unknown; it must not look smaller than it is.
    cost = f"${sum(costs):.4f}" if len(costs) == len(rows) else UNKNOWN
    print(f"{model:<32} " + " ".join(f"{count:>12,}" for count in counts) + f" {cost:>10}")
