"""How a turn ends, and the error that a person reads if it failed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Literal

import msgspec

from keryx import events as ev
from keryx.engine.limits import Limits
from keryx.errors import ModelError
from keryx.messages import Reason, well_formed

LONGEST_DEFECT: Final = 2_000
"""Characters of an unexpected error that a person is shown."""


class TurnEnd(msgspec.Struct, frozen=True):
    """How a turn ends. A suspended turn gets no terminal fact; it is resumed at the next start."""

    outcome: ev.TurnOutcome | Literal["suspended"]
    reason: Reason | Literal["no_progress"] | None = None
    error: ev.TurnError | None = None


def cancelled(reason: Reason, limits: Limits) -> TurnEnd:
    """Return how a turn ends whose scope was cancelled for this reason."""
    if reason == "shutdown":
        return TurnEnd("suspended")
    if reason == "timeout" and limits.seconds is not None:
        return TurnEnd("failed", reason, limits.out_of_time())
    return TurnEnd("cancelled", reason)


def defect(error: Exception) -> ev.TurnError:
    """Return the error that a person reads after a defect."""
    text = well_formed(f"{type(error).__name__}: {error}")
    return ev.TurnError(
        kind="internal",
        message=f"something in Keryx or in a part of it failed: {text[:LONGEST_DEFECT]}",
        hint="nothing is lost: send the message again; if it fails again, report this text",
    )


async def refusal(check_budget: Callable[[], Awaitable[None]]) -> ModelError | None:
    """Return why a limit does not allow another request; None: it is allowed."""
    try:
        await check_budget()
    except ModelError as error:
        return error
    return None


def failure(error: ModelError) -> ev.TurnError:
    """Return the error that a person reads if the model gave no answer."""
    return ev.TurnError(kind=error.kind, message=error.message, hint=error.hint)
