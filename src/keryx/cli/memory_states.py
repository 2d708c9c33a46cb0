"""Prints how far the providers of the memory are behind, and what failed there."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from keryx.app.memory.memory_client import STUCK_AFTER, is_stuck, item_text
from keryx.cli.chatting.pieces import printable
from keryx.cli.streams import write_json
from keryx.dates import time_text

if TYPE_CHECKING:
    from keryx.memory.deliveries import FailedDelivery, ProviderState

_UNITS: Final = (("d", 86_400), ("h", 3_600), ("min", 60))


def print_states(states: Sequence[ProviderState], *, as_json: bool) -> int:
    """Print a line for each provider; return 1 if a person must look at one of them."""
    for state in states:
        if as_json:
            fields = msgspec.to_builtins(state) | {"stuck": is_stuck(state)}
            write_json(msgspec.json.encode(fields))
        else:
            print(f"{state.name}: {_described(state)}")
        _warn(state)
    return int(any(is_stuck(state) for state in states))


def _described(state: ProviderState) -> str:
    lag, parts = state.lag, list[str]()
    if state.left_out is not None:
        parts.append("left out")
    if state.syncing_for is not None:
        parts.append(f"{lag.waiting} waiting, the oldest for {age(state.syncing_for)}")
    if lag.breaker.failures and state.left_out is None:
        seconds = max(0.0, lag.breaker.retry_at - time.time())
        parts.append(
            f"failures in a row: {lag.breaker.failures} ({printable(lag.breaker.error)}), "
            f"next attempt in {age(seconds)}"
        )
    parts += [f"{lag.refused} refused"] * bool(lag.refused)
    parts += [f"{lag.unknown} of unknown fate"] * bool(lag.unknown)
    return "; ".join(parts) or "up to date"


def _warn(state: ProviderState) -> None:
    if state.left_out is not None:
        print(
            f"keryx: warning: {printable(state.left_out)}; what it misses waits for it",
            file=sys.stderr,
        )
    elif state.syncing_for is not None and state.syncing_for > STUCK_AFTER:
        print(
            f"keryx: warning: {state.name} has been stuck for {age(state.syncing_for)}; check the "
            "provider, then `keryx memory retry`",
            file=sys.stderr,
        )
    if state.lag.refused or state.lag.unknown:
        print(
            f"keryx: warning: {state.name} has items that failed; `keryx memory failed` shows why",
            file=sys.stderr,
        )


def print_failures(failures: Sequence[FailedDelivery], *, as_json: bool) -> None:
    """Print what a provider refused, and what nobody knows the fate of."""
    for failure in failures:
        if as_json:
            write_json(msgspec.json.encode(failure))
            continue
        date = time_text(failure.since)
        text = printable(item_text(failure.item))
        print(f"{failure.place}  {failure.provider}  {failure.state}  {date}  {text}")
        print(f"  after {failure.attempts} attempts: {printable(failure.error)}")
    if not failures:
        print("nothing has failed", file=sys.stderr)


def age(seconds: float) -> str:
    """Return a duration in its largest unit."""
    for unit, size in _UNITS:
        if seconds >= size:
            return f"{seconds // size:.0f} {unit}"
    return f"{seconds:.0f} s"
