"""What will be done about an update. It is stored before it is done, so a repetition does the same.

Without this, an answer to a question that was given before a crash would be taken for a new message
after it.
"""

from __future__ import annotations

from typing import Final

import msgspec

from keryx.decoding import json_decoder
from keryx.messages import Decision, File, Image, Mode


class _Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What all plans have. `joined`: the places of the updates that are parts of one message."""

    joined: tuple[int, ...] = ()


class SendPlan(_Plan, frozen=True, kw_only=True, tag="send"):
    """Send this message to the session."""

    session_id: str
    key: str
    text: str
    mode: Mode = "queue"
    attachments: tuple[Image | File, ...] = ()
    is_stopped: bool = False
    """Whether its turn is cancelled at once: it was being sent when somebody stopped it."""


class ChangePlan(_Plan, frozen=True, kw_only=True, tag="change"):
    """Change the text of this message, if it still waits in the session's queue."""

    session_id: str
    message_id: str
    text: str


class AnswerPlan(_Plan, frozen=True, kw_only=True, tag="answer"):
    """Answer this question."""

    session_id: str
    question_id: str
    answer: str


class DecidePlan(_Plan, frozen=True, kw_only=True, tag="decide"):
    """Answer this approval request."""

    session_id: str
    approval_id: str
    decision: Decision


class StopPlan(_Plan, frozen=True, kw_only=True, tag="stop"):
    """Cancel this turn. `note`: what else is to be said."""

    session_id: str
    turn_id: str
    note: str = ""


class DropPlan(_Plan, frozen=True, kw_only=True, tag="drop"):
    """Do nothing: somebody stopped this before it was sent, and was told so."""


class SwitchPlan(_Plan, frozen=True, kw_only=True, tag="switch"):
    """Let the conversation go on in this session; `is_new`: create it, and send it `first`."""

    session_id: str
    conversation: str
    is_new: bool = False
    first: SendPlan | None = None


class ModelPlan(_Plan, frozen=True, kw_only=True, tag="model"):
    """Let the session use this model."""

    session_id: str
    model: str


class SayPlan(_Plan, frozen=True, kw_only=True, tag="say"):
    """Only say something; nothing at all if there is no text."""

    text: str = ""


Plan = (
    SendPlan
    | ChangePlan
    | AnswerPlan
    | DecidePlan
    | StopPlan
    | DropPlan
    | SwitchPlan
    | ModelPlan
    | SayPlan
)


def stopped(plan: Plan) -> Plan | None:
    """Return the plan as it is if its turn is stopped; None: it has none, or that is done."""
    match plan:
        case SendPlan(is_stopped=False):
            return msgspec.structs.replace(plan, is_stopped=True)
        case SwitchPlan(first=SendPlan(is_stopped=False) as first):
            first = msgspec.structs.replace(first, is_stopped=True)
            return msgspec.structs.replace(plan, first=first)
        case _:
            return None


_decoder: Final = json_decoder(Plan)


def encode(plan: Plan) -> bytes:
    return msgspec.json.encode(plan)


def decode(body: bytes) -> Plan:
    return _decoder.decode(body)
