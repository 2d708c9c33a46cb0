"""What will be done about an update. It is stored before it is done, so a repetition does the same.

Without this, an answer to a question that was given before a crash would be taken for a new message
after it.
"""

from __future__ import annotations

from typing import Final

import msgspec

from keryx.decoding import json_decoder
from keryx.messages import Decision, File, Image, Mode


class SendPlan(msgspec.Struct, frozen=True, kw_only=True, tag="send"):
    """Send this message to the session."""

    session_id: str
    key: str
    text: str
    mode: Mode = "queue"
    attachments: tuple[Image | File, ...] = ()
    joined: tuple[int, ...] = ()
    """The places of the updates that are parts of this message."""


class ChangePlan(msgspec.Struct, frozen=True, kw_only=True, tag="change"):
    """Change the text of this message, if it still waits in the session's queue."""

    session_id: str
    message_id: str
    text: str


class AnswerPlan(msgspec.Struct, frozen=True, kw_only=True, tag="answer"):
    """Answer this question."""

    session_id: str
    question_id: str
    answer: str


class DecidePlan(msgspec.Struct, frozen=True, kw_only=True, tag="decide"):
    """Answer this approval request."""

    session_id: str
    approval_id: str
    decision: Decision


class StopPlan(msgspec.Struct, frozen=True, kw_only=True, tag="stop"):
    """Cancel this turn."""

    session_id: str
    turn_id: str


class SwitchPlan(msgspec.Struct, frozen=True, kw_only=True, tag="switch"):
    """Let the conversation go on in this session; `is_new`: create it."""

    session_id: str
    conversation: str
    is_new: bool = False


class ModelPlan(msgspec.Struct, frozen=True, kw_only=True, tag="model"):
    """Let the session use this model."""

    session_id: str
    model: str


class SayPlan(msgspec.Struct, frozen=True, kw_only=True, tag="say"):
    """Only say something; nothing at all if there is no text."""

    text: str = ""


Plan = SendPlan | ChangePlan | AnswerPlan | DecidePlan | StopPlan | SwitchPlan | ModelPlan | SayPlan

_decoder: Final = json_decoder(Plan)


def encode(plan: Plan) -> bytes:
    return msgspec.json.encode(plan)


def decode(body: bytes) -> Plan:
    return _decoder.decode(body)
