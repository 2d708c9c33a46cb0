"""How a turn ends, and what a person is told if it failed."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from keryx import events as ev
from keryx.engine.limits import Limits
from keryx.errors import ModelError
from keryx.messages import Reason, well_formed

LONGEST_DEFECT: Final = 2_000
"""Characters of an unexpected error that a person is shown."""


class TurnEnd(msgspec.Struct, frozen=True):
    """How a turn ends; a suspended one gets no terminal fact and goes on at the next start."""

    outcome: ev.TurnOutcome | Literal["suspended"]
    reason: Reason | Literal["no_progress"] | None = None
    error: ev.TurnError | None = None


def cancelled(reason: Reason, limits: Limits) -> TurnEnd:
    """Say how a turn ends whose scope was cancelled for that reason."""
    if reason == "shutdown":
        return TurnEnd("suspended")
    if reason == "timeout" and limits.seconds is not None:
        return TurnEnd("failed", reason, limits.out_of_time())
    return TurnEnd("cancelled", reason)


def defect(error: Exception) -> ev.TurnError:
    """What a person is told of a defect."""
    text = well_formed(f"{type(error).__name__}: {error}")
    return ev.TurnError(
        kind="internal",
        message=f"something in Keryx or in a part of it failed: {text[:LONGEST_DEFECT]}",
        hint="nothing is lost: send the message again; if it fails again, report this text",
    )


def failure(error: ModelError) -> ev.TurnError:
    """What a person is told of a model that gave no answer."""
    return ev.TurnError(kind=error.kind, message=error.message, hint=error.hint)
