"""`keryx sessions replay`: shows a turn again as it happened, or compares it with another model."""

from __future__ import annotations

import argparse
import asyncio
import difflib
import math
import sys
from collections.abc import Sequence

from keryx import events as ev
from keryx.app import Keryx
from keryx.app.portable.session_file import read_session
from keryx.app.replay.recording import RecordedTurn, call_key, recorded_turns
from keryx.app.replay.replaying import ReplayedTurn, replay_turn
from keryx.app.services.places import find_workspace
from keryx.cli.chatting.pieces import printable
from keryx.cli.values import rows, speed
from keryx.engine.money.spent import Amount
from keryx.errors import UserMustActError


def add_replay_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--turn", type=rows, help="the number of the turn; default: the last one")
    parser.add_argument(
        "--speed", type=speed, default=1.0, help="times as fast as it happened, or max; default: 1"
    )
    parser.add_argument("--step", action="store_true", help="wait for Enter before each event")
    parser.add_argument("--model", help="run the turn with this model, and compare; no tool runs")


async def replay(app: Keryx, options: argparse.Namespace) -> int:
    """Show a turn again; with a model, run it there and compare."""
    session = await read_session(app.store, options.session)
    turn = _chosen(recorded_turns(session.events), options.turn)
    if options.model is None:
        await _show(app, turn, math.inf if options.step else options.speed, step=options.step)
        return 0
    models, client = app.host_client.models, app.host_client
    models.check(options.model)
    descriptions = (await client.tools_to_choose()).by_name
    workspace = await client.to_thread(lambda: find_workspace("."))
    model = models.find(options.model)
    again = await replay_turn(session, turn, model, descriptions=descriptions, workspace=workspace)
    print("\n".join(_comparison(turn, again, options.model)))
    return 0 if again.result.outcome == "completed" else 1


def _chosen(turns: Sequence[RecordedTurn], number: int | None) -> RecordedTurn:
    if not turns:
        raise UserMustActError("this session has no finished turn that could be shown again")
    if number is None:
        return turns[-1]
    if number > len(turns):
        raise UserMustActError(
            f"this session has {len(turns)} finished turns; choose a number up to that"
        )
    return turns[number - 1]


# -- as it happened


async def _show(app: Keryx, turn: RecordedTurn, speed_: float, *, step: bool) -> None:
    before = turn.events[0].at
    for event in turn.events:
        line = _line(event)
        if not line:
            continue
        if step:
            await app.host_client.to_thread(sys.stdin.readline)
        else:
            await asyncio.sleep(max(0.0, event.at - before) / speed_)
        before = max(before, event.at)
        print(line, flush=True)


def _line(event: ev.LoggedEvent) -> str:
    match event:
        case ev.MessageAccepted():
            return printable(f"> {event.text}")
        case ev.StepReplied():
            calls = "".join(f"\n[{call.tool}] {call.arguments}" for call in event.calls)
            return printable(f"{event.text}{' [cut]' if event.cut else ''}{calls}".strip())
        case ev.CallFinished():
            return printable(f"[{event.tool}: {event.outcome} after {event.duration:.1f} s]")
        case ev.TurnFinished():
            why = "" if event.error is None else f": {event.error.message}"
            return printable(f"[the turn {event.outcome}{why}]")
        case _:
            return ""


# -- with another model


def _comparison(turn: RecordedTurn, again: ReplayedTurn, model: str) -> list[str]:
    recorded = [reply.text for reply in turn.replies]
    calls = [
        " ".join(call_key(call.tool, call.arguments))
        for reply in turn.replies
        for call in reply.calls
    ]
    other_calls = [
        " ".join(call_key(call.tool, call.arguments))
        + ("" if call.is_recorded else "  (different: it has no recorded result)")
        for call in again.calls
    ]
    amount = Amount()
    for reply in turn.replies:
        amount += Amount.of(reply)
    seconds = turn.finished.at - turn.events[0].at
    return [
        *_diff("text", _lines(recorded), _lines(again.texts), model),
        *_diff("calls", calls, other_calls, model),
        f"{'':<10} {'recorded':>14} {printable(model)[:30]:>14}",
        f"{'outcome':<10} {turn.finished.outcome:>14} {again.result.outcome:>14}",
        f"{'tokens':<10} {amount.tokens:>14,} {again.amount.tokens:>14,}",
        f"{'cost':<10} {_cost(amount):>14} {_cost(again.amount):>14}",
        f"{'seconds':<10} {seconds:>14.1f} {again.seconds:>14.1f}",
    ]


def _lines(texts: Sequence[str]) -> list[str]:
    return [printable(line) for text in texts for line in text.splitlines()]


def _diff(title: str, before: Sequence[str], after: Sequence[str], model: str) -> list[str]:
    if list(before) == list(after):
        return [f"{title}: the same", ""]
    lines = difflib.unified_diff(
        list(map(printable, before)),
        list(map(printable, after)),
        f"{title} (recorded)",
        f"{title} ({printable(model)})",
        lineterm="",
    )
    return [*lines, ""]


def _cost(amount: Amount) -> str:
    return "unknown" if amount.unpriced else f"${amount.cost:.4f}"
