"""Approvals and questions as messages with buttons, and the data that the buttons carry.

The words agree with those of the page and the terminal.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final, cast

import msgspec

from keryx import events as ev
from keryx.gateway.formatting.splitting import plain
from keryx.messages import Decision
from keryx.ports.platform import Button, Content

STOP: Final = "stop"
APPROVAL: Final = "a"
QUESTION: Final = "q"
DRAFT: Final = "draft"
DECISIONS: Final[dict[str, Decision]] = {"o": "once", "s": "session", "a": "always", "d": "deny"}
ANSWERED: Final[dict[Decision, str]] = {
    "once": "Allowed once",
    "session": "Allowed for this session",
    "always": "Always allowed",
    "deny": "Denied",
}
READ_ELSEWHERE: Final = "Read all of it on the page or in `keryx chat` before you answer."
EXPIRED: Final = "Expired: this request can no longer be answered."
LONGEST_BUTTON: Final = 60
MOST_BUTTONS: Final = 50
MOST_PARTS: Final = 8
"""Messages of one request; what is longer is read on the page or in the terminal."""
LONGEST_OUTCOME: Final = 600
"""UTF-16 units that are left free in the message with the buttons, for what came of it."""


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
    """Return the whole call: nobody should allow what they cannot read."""
    parts = [f"Allow {request.tool or 'this call'}?", _call_text(request), request.why]
    return "\n\n".join(part for part in parts if part)


def _call_text(request: ev.ApprovalAsked) -> str:
    """Return the command, and all other arguments by their names."""
    try:
        arguments: Any = msgspec.json.decode(request.arguments or "null")
    except msgspec.DecodeError:
        return f"{request.what}\n\n{request.arguments}"
    if not isinstance(arguments, dict) or not arguments:
        return request.what
    fields = cast("dict[str, Any]", arguments)
    lines = [
        value if name == "command" else f"{name}: {value}"
        for name, item in fields.items()
        if (value := item if isinstance(item, str) else msgspec.json.encode(item).decode())
    ]
    return "\n".join(lines) or request.what


def approval_contents(request: ev.ApprovalAsked, longest: int | None) -> list[Content]:
    """Return the messages that ask; the last one has the buttons."""

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
    return _contents(approval_text(request), tuple(rows), longest)


def question_contents(request: ev.QuestionAsked, longest: int | None) -> list[Content]:
    """Return the messages that ask; the last one has the buttons."""
    rows = tuple(
        (Button(label, f"{QUESTION}:{number}:{request.question_id}"),)
        for number, choice in enumerate(request.choices[:MOST_BUTTONS])
        if (label := choice.strip()[:LONGEST_BUTTON])
    )
    hint = "\n\nChoose, or write your answer." if rows else "\n\nWrite your answer."
    return _contents(request.text + hint, rows, longest)


def _contents(
    text: str, buttons: tuple[tuple[Button, ...], ...], longest: int | None
) -> list[Content]:
    contents = plain(text, None if longest is None else longest - LONGEST_OUTCOME)
    if len(contents) > MOST_PARTS:
        left_out = contents[MOST_PARTS - 1 : -1]
        count = sum(len(content.text) for content in left_out)
        note = Content(text=f"({count:,} characters are left out here. {READ_ELSEWHERE})")
        contents = [*contents[: MOST_PARTS - 1], note, contents[-1]]
    return [*contents[:-1], msgspec.structs.replace(contents[-1], buttons=buttons)]


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
