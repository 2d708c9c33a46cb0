"""Prints what became of the merges of memories that a model proposed."""

from __future__ import annotations

import sys

import msgspec

from keryx.app.memory.consolidating import ConsolidationReport
from keryx.cli.chatting.pieces import printable
from keryx.cli.streams import write_json


def print_merges(report: ConsolidationReport, *, as_json: bool) -> int:
    """Print each merge and each rejection with its reason; return 1 if the answer was no use."""
    result = report.result
    if as_json:
        write_json(msgspec.json.encode(report))
        return int(bool(result.error))
    for merge in result.applied:
        print(f"{merge.memory.id}  {_line(merge.memory.text)}")
        print(f"    instead of {', '.join(merge.replaced)}")
    for rejection in result.rejected:
        ids = ", ".join(rejection.proposal.ids)
        print(_line(f"not applied to {ids}: {rejection.reason}"), file=sys.stderr)
    if result.error:
        print(f"keryx: {_line(result.error)}; nothing was changed", file=sys.stderr)
    elif not result.applied:
        print("nothing was changed", file=sys.stderr)
    else:
        print(f"undo with: keryx memory undo {result.operation}", file=sys.stderr)
    if report.model:
        print(f"asked {report.model}: {_usage(report)}", file=sys.stderr)
    return int(bool(result.error))


def _line(text: str) -> str:
    return " ".join(printable(text).split())


def _usage(report: ConsolidationReport) -> str:
    tokens = f"{report.usage.input_tokens:,} tokens in, {report.usage.output_tokens:,} out"
    return tokens if report.cost is None else f"{tokens}, ${report.cost:.4f}"
