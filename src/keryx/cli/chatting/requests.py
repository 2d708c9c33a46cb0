"""What waits for a person: approvals and questions, their texts and their numbered choices.

The texts are those of the page. A request is answered by its id, so an answer can never reach
another request than the one that a person has seen.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import msgspec

from keryx import events as ev
from keryx.cli.chatting.pieces import Piece, one_line, printable
from keryx.cli.screens.approval_prompt import needs_in_words
from keryx.messages import Decision, Reach

Request = ev.ApprovalAsked | ev.QuestionAsked
WAITING: Final = "Waiting for you"
LARGEST_FILE: Final = 1_000_000
"""Characters of a file that is compared with what a call would write."""


class Choice(NamedTuple):
    """One answer that a person can pick by its number or its key."""

    key: str
    label: str
    decision: Decision | None = None
    answer: str = ""
    reach: Reach | None = None


def request_id(event: Any) -> str:
    """Return the id of the request that this event is about."""
    return getattr(event, "approval_id", "") or event.question_id


def choices_of(request: Request) -> list[Choice]:
    """Return the answers to choose from, in the order of their numbers."""
    if isinstance(request, ev.QuestionAsked):
        return [
            Choice(str(number), printable(text), answer=text)
            for number, text in enumerate(request.choices, 1)
        ]
    choices = [Choice("y", "Allow once", "once")]
    if request.offers or request.patterns != ():
        lasting = f"Always allow {printable(request.tool)}".rstrip()
        choices += [
            Choice("s", "Allow for this session", "session"),
            Choice("a", lasting, "always"),
        ]
    return [*choices, Choice("n", "Deny", "deny")]


def short_text(request: Request, longest: int) -> str:
    """Return the request as one line."""
    if isinstance(request, ev.QuestionAsked):
        return one_line(request.text, longest)
    return one_line(f"Allow {request.tool or 'a call'}? {_subject(request)}", longest)


def _subject(request: ev.ApprovalAsked) -> str:
    return request.what.removeprefix(f"{request.tool}: ")


class Pending:
    """The requests that wait, the oldest first. Each is shown whole when it becomes the first.

    So the last whole request that a person sees is the one that the keys and commands answer.
    """

    def __init__(self) -> None:
        self.requests: dict[str, Request] = {}
        self._arguments: dict[str, str] = {}

    @property
    def first(self) -> Request | None:
        return next(iter(self.requests.values()), None)

    @property
    def heading(self) -> str:
        """What stands before the first request, with how many wait."""
        count = len(self.requests)
        return f"{WAITING} (1 of {count})" if count > 1 else WAITING

    def apply(self, event: ev.Event) -> list[Piece]:
        """Apply an event; return what is finished, and the whole request that is the first now."""
        before = self.first
        pieces = self._apply(event)
        return pieces if self.first is before else [*pieces, *self.first_pieces()]

    def _apply(self, event: ev.Event) -> list[Piece]:
        match event:
            case ev.StepReplied():
                self._arguments = {call.call_id: call.arguments for call in event.calls}
            case ev.ApprovalAsked() | ev.QuestionAsked():
                self.requests[request_id(event)] = event
            case ev.ApprovalAnswered():
                return self._answered(event, _decision_text(event))
            case ev.QuestionAnswered():
                return self._answered(event, printable(event.answer))
            case ev.ApprovalExpired() | ev.QuestionExpired():
                if self.requests.pop(request_id(event), None) is not None:
                    return [Piece("note", f"No longer waiting for you ({event.cause})")]
            case _:
                pass
        return []

    def _answered(self, event: ev.ApprovalAnswered | ev.QuestionAnswered, text: str) -> list[Piece]:
        if self.requests.pop(request_id(event), None) is None:
            return []
        return [Piece("note", f"{text} ({printable(event.by)})")]

    def _arguments_of(self, request: ev.ApprovalAsked) -> str:
        # Those of the request are what will run: hooks may have changed what the model wrote.
        return request.arguments or self._arguments.get(request.call_id, "")

    def first_pieces(self) -> list[Piece]:
        """Return the whole first request: the command or the diff, and the risk."""
        request = self.first
        if request is None:
            return []
        if isinstance(request, ev.QuestionAsked):
            lines = [f"{self.heading}: {printable(request.text)}"]
            lines += [f"  {choice.key} {choice.label}" for choice in choices_of(request)]
            return [Piece("request", "\n".join(lines))]
        return [
            Piece("request", f"{self.heading}: Allow {request.tool or 'this call'}?"),
            *_content(request, self._arguments_of(request)),
            Piece("request", "\n".join(_risk_lines(request))),
        ]


def _risk_lines(request: ev.ApprovalAsked) -> list[str]:
    risk = "High risk: " if request.risk == "high" else ""
    lines = [f"{risk}{printable(request.why)}".strip()] if request.why or risk else []
    lines += [f"It needs {printable(need)}" for need in needs_in_words(request.needs)]
    offers = [printable(offer.says) for offer in request.offers]
    if offers:
        lines.append(f"“Allow for this session” and “Always allow” cover: {offers[0]}")
    for number, says in enumerate(offers[1:], 2):
        lines.append(f"/allow session {number} or /allow always {number}: {says}")
    return lines


def _content(request: ev.ApprovalAsked, arguments: str) -> list[Piece]:
    """Return the whole command, the diff, or all arguments."""
    try:
        fields: Any = msgspec.json.decode(arguments) if arguments else {}
    except msgspec.DecodeError:
        fields = {}
    if not isinstance(fields, dict) or not fields:
        return [Piece("code", printable(_subject(request)))]
    values = cast("Mapping[str, Any]", fields)
    match request.tool, values:
        case "write_file", {"path": str(path), "content": str(content)}:
            return [Piece("diff", _file_diff(request.workspace, path, content))]
        case "patch", {"patch": str(patch)}:
            return [Piece("diff", printable(patch.strip("\n")))]
        case _, {"command": str(command)}:
            return [Piece("code", printable(command), "bash"), *_rest(values, "command")]
        case _, {"code": str(code)}:
            return [Piece("code", printable(code), "python"), *_rest(values, "code")]
        case _:
            return _rest(values, "")


def _rest(values: Mapping[str, Any], shown: str) -> list[Piece]:
    lines = [
        f"{printable(name)}: {printable(value if isinstance(value, str) else _json(value))}"
        for name, value in values.items()
        if name != shown
    ]
    return [Piece("code", "\n".join(lines))] if lines else []


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _file_diff(workspace: str, path: str, content: str) -> str:
    """Return a diff of the file as it is now and as it would be."""
    try:
        file = Path(workspace) / path
        before = file.read_text()[:LARGEST_FILE] if file.is_file() else ""
    except (OSError, ValueError):
        before = ""
    return unified_diff(path, before, content)


def unified_diff(path: str, before: str, after: str) -> str:
    rows: Sequence[str] = list(
        difflib.unified_diff(
            before.splitlines(), after.splitlines(), f"a/{path}", f"b/{path}", lineterm=""
        )
    )
    return printable("\n".join(rows)) or f"{printable(path)}: no change"


def _decision_text(event: ev.ApprovalAnswered) -> str:
    labels: dict[Decision, str] = {
        "once": "Allowed once",
        "session": "Allowed for this session",
        "always": "Always allowed",
        "deny": "Denied",
    }
    return labels[event.decision]
