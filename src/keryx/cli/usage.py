"""Show tokens, cost, turns and calls by day, model, purpose, session or tool."""

from __future__ import annotations

import argparse
import sys
from datetime import date, datetime, time, timedelta

import msgspec

from keryx.aio.loops import run_loop
from keryx.app import Keryx
from keryx.app.money.usage_report import GROUPINGS, csv_of, report
from keryx.cli.screens.usage_table import tool_table, usage_table
from keryx.cli.values import day


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--by", choices=GROUPINGS, default="model", help="how to group; default: model"
    )
    parser.add_argument("--session", help="only this session, with its child agents")
    parser.add_argument("--today", action="store_true", help="only since midnight")
    parser.add_argument("--since", type=day, help="from this day on, as YYYY-MM-DD")
    parser.add_argument("--until", type=day, help="up to this day and with it, as YYYY-MM-DD")
    formats = parser.add_mutually_exclusive_group()
    formats.add_argument("--csv", action="store_true", help="print CSV")
    formats.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    return run_loop(_run(options))


async def _run(options: argparse.Namespace) -> int:
    since = _start(datetime.now().astimezone().date()) if options.today else None
    if options.since is not None:
        since = max(since or 0.0, _start(options.since))
    until = None if options.until is None else _start(options.until + timedelta(days=1))
    async with Keryx(home=options.home, resume=False) as app:
        period = {"since": since, "until": until}
        cells = await app.store.usage_cells(options.session, **period)
        uses = await app.store.tool_use(options.session, **period)
        turns = await app.store.turn_counts(options.session, **period)
    used = report(options.by, cells, uses, turns)
    groups = used.tools if options.by == "tool" else used.usage
    if options.json:
        print(msgspec.json.encode(groups).decode())
    elif options.csv:
        print(csv_of(groups, options.by), end="")
    elif not groups:
        what = "calls were made" if options.by == "tool" else "tokens were used"
        print(f"no {what} {_period(options)}", file=sys.stderr)
    elif options.by == "tool":
        print("\n".join(tool_table(used.tools, sys.stdout)))
    else:
        print("\n".join(usage_table(options.by, used.usage, sys.stdout)))
    return 0


def _period(options: argparse.Namespace) -> str:
    if options.today:
        return "today"
    return "in this time" if options.since or options.until else "yet"


def _start(day_: date) -> float:
    """Return when a day begins in the local time zone."""
    return datetime.combine(day_, time.min).astimezone().timestamp()
