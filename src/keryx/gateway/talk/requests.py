"""Approvals and questions as messages with buttons, and the data that the buttons carry.

The words agree with those of the page and the terminal.
"""

from __future__ import annotations

import hashlib
from typing import Final

from keryx import events as ev
from keryx.messages import Decision
from keryx.ports.platform import Button, Content

STOP: Final = "stop"
APPROVAL: Final = "a"
QUESTION: Final = "q"
SESSION: Final = "s"
DRAFT: Final = "draft"
DECISIONS: Final[dict[str, Decision]] = {"o": "once", "s": "session", "a": "always", "d": "deny"}
ANSWERED: Final[dict[Decision, str]] = {
    "once": "Allowed once",
    "session": "Allowed for this session",
    "always": "Always allowed",
    "deny": "Denied",
}
EXPIRED: Final = "Expired: this request can no longer be answered."
LONGEST_BUTTON: Final = 60
_LONGEST_REQUEST: Final = 3000


def stop_button(turn_id: str) -> tuple[tuple[Button, ...], ...]:
    return ((Button("Stop", f"{STOP}:{turn_id}"),),)


def draft_id(turn_id: str) -> int:
    """Return the number of the draft that shows this turn; never 0."""
    return int.from_bytes(hashlib.sha256(turn_id.encode()).digest()[:4]) >> 1 or 1


def approval_key(approval_id: str) -> str:
    """Return the ledger's key of the message that asks."""
    return f"approval:{approval_id}"


def question_key(question_id: str) -> str:
    return f"question:{question_id}"


def approval_text(request: ev.ApprovalAsked) -> str:
    return f"Allow {request.tool or 'this call'}?\n\n{request.what}\n\n{request.why}"[
        :_LONGEST_REQUEST
    ]


def approval_content(request: ev.ApprovalAsked) -> Content:
    def button(text: str, letter: str) -> Button:
        return Button(text[:LONGEST_BUTTON], f"{APPROVAL}:{letter}:{request.approval_id}")

    rows = [(button("Allow once", "o"), button("Deny", "d"))]
    if request.offers or request.patterns != ():
        rows.append(
            (
                button("Allow for this session", "s"),
                button(f"Always allow {request.tool}".strip(), "a"),
            )
        )
    return Content(text=approval_text(request), buttons=tuple(rows))


def question_content(request: ev.QuestionAsked) -> Content:
    rows = tuple(
        (Button(choice[:LONGEST_BUTTON], f"{QUESTION}:{number}:{request.question_id}"),)
        for number, choice in enumerate(request.choices)
    )
    hint = "\n\nChoose, or write your answer." if rows else "\n\nWrite your answer."
    return Content(text=request.text[:_LONGEST_REQUEST] + hint, buttons=rows)


def outcome_text(
    event: ev.ApprovalAnswered | ev.ApprovalExpired | ev.QuestionAnswered | ev.QuestionExpired,
) -> str:
    """Return what came of a request."""
    match event:
        case ev.ApprovalAnswered():
            return ANSWERED[event.decision]
        case ev.QuestionAnswered():
            return f"Answer: {event.answer:.500}"
        case ev.ApprovalExpired() | ev.QuestionExpired():
            return "Expired"
