"""How calls ended: marks, colours and lines, for people at a terminal and for logs of scripts."""

from __future__ import annotations

from typing import Final

from keryx import events as ev
from keryx.messages import exit_code_of

MARKS: Final = {
    "completed": "✓",
    "exited": "!",
    "failed": "✗",
    "denied": "⊘",
    "cancelled": "■",
    "unknown": "?",
}
STYLES: Final = {
    "completed": "green",
    "exited": "yellow",
    "failed": "red",
    "denied": "yellow",
    "cancelled": "yellow",
    "unknown": "magenta",
}
NO_TERMINAL: Final = "Refused: needs approval, and there is no terminal to ask"
HOW_TO_APPROVE: Final = "run it in a terminal, allow it with a rule, or pass --approve"
_EXPIRED: Final = {"timeout": "nobody answered in time"}
_WORDS: Final = {
    "denied": "Refused",
    "failed": "Failed",
    "cancelled": "Cancelled",
    "unknown": "The outcome is unknown, and the call may still run",
}
_REASONS: Final = {"denied": "a person denied it", "expired": "nobody answered in time"}


class CallLines:
    """Turns events into lines, one for each call that did not complete."""

    def __init__(self) -> None:
        self._approvals: dict[str, ev.ApprovalAsked] = {}
        self._unasked_calls: set[str] = set()

    def line(self, event: ev.Event) -> str:
        """Return the line for this event, or an empty text."""
        match event:
            case ev.ApprovalAsked():
                self._approvals[event.approval_id] = event
            case ev.ApprovalExpired():
                return self._expired(event)
            case ev.CallFinished() if event.call_id not in self._unasked_calls:
                return outcome_line(event)
            case _:
                pass
        return ""

    def _expired(self, event: ev.ApprovalExpired) -> str:
        approval = self._approvals.get(event.approval_id)
        subject, why = ("a call", "") if approval is None else (approval.what, f" ({approval.why})")
        if event.cause == "undelivered":
            self._unasked_calls.add(event.call_id)
            return f"{subject}: {NO_TERMINAL}{why}; {HOW_TO_APPROVE}"
        return f"{subject}: no longer waiting for you: {_EXPIRED.get(event.cause, event.cause)}"


def ending_of(finished: ev.CallFinished) -> tuple[str, str]:
    """Return the key of the mark and style, and what to say about an exit code that is not 0."""
    code = exit_code_of(finished.outcome, finished.result)
    return (finished.outcome, "") if code is None else ("exited", f"exit code {code}")


def outcome_line(finished: ev.CallFinished) -> str:
    """Return the tool, what happened to its call and why; an empty text if the call completed."""
    if finished.outcome == "completed":
        return ""
    word = _WORDS.get(finished.outcome, finished.outcome)
    reason = _REASONS.get(finished.reason or "", finished.reason)
    return f"{finished.tool}: {word}: {reason}" if reason else f"{finished.tool}: {word}"
