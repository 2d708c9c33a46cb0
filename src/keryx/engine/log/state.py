"""What the state of a session is made of: the shapes. How facts change them is the fold's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import msgspec

from keryx import events as ev
from keryx.messages import ApprovalMode, File, Image, Mode, ToolCall

SETTINGS = (
    "model",
    "profile",
    "place",
    "workspace",
    "tools",
    "effort",
    "personality",
    "title",
    "pinned",
    "archived",
    "approvals",
    "read_only",
)


class Settings(msgspec.Struct):
    """What a session works with; a running turn keeps what it started with."""

    model: str = ""
    profile: str = ""
    place: str = ""
    workspace: str = ""
    tools: tuple[str, ...] = ()
    effort: str | None = None
    personality: str | None = None
    title: str = ""
    pinned: bool = False
    archived: bool = False
    approvals: ApprovalMode | None = None
    read_only: bool = False

    def take(self, event: ev.SessionOpened | ev.SessionChanged) -> None:
        """What the fact sets, and nothing else."""
        for name in SETTINGS:
            value = getattr(event, name)
            if value is not msgspec.UNSET:
                setattr(self, name, value)


class Queued(msgspec.Struct):
    """A message that was accepted and not delivered yet."""

    message_id: str
    turn_id: str
    mode: Mode
    text: str
    workspace: str
    attachments: tuple[Image | File, ...]
    wait: bool
    by: str
    schema: str | None = None
    attended: bool = True

    @classmethod
    def of(cls, event: ev.MessageAccepted) -> Self:
        return cls(
            message_id=event.message_id,
            turn_id=event.turn_id,
            mode=event.mode,
            text=event.text,
            workspace=event.workspace,
            attachments=event.attachments,
            wait=event.wait,
            by=event.by,
            schema=event.schema,
            attended=event.attended,
        )


def reordered(
    queue: Mapping[str, Queued], message: Queued, before: str | None
) -> dict[str, Queued]:
    """The queue with the message before that one; None, or one that is not there: at its end."""
    others = [other for other in queue.values() if other is not message]
    names = [other.message_id for other in others]
    others.insert(names.index(before) if before in names else len(others), message)
    return {other.message_id: other for other in others}


class Delivered(msgspec.Struct):
    """A message that is part of the conversation."""

    seq: int
    turn_id: str
    message: Queued


class Replied(msgspec.Struct):
    """A model's reply, and how the calls that it asked for ended so far."""

    turn_id: str
    reply: ev.StepReplied
    results: dict[str, ev.CallFinished] = msgspec.field(default_factory=dict[str, ev.CallFinished])

    @property
    def seq(self) -> int:
        return self.reply.seq

    @property
    def complete(self) -> bool:
        return len(self.results) == len(self.reply.calls)

    @property
    def unfinished(self) -> list[ToolCall]:
        return [call for call in self.reply.calls if call.call_id not in self.results]


HistoryItem = Delivered | Replied


class QuestionAnswer(msgspec.Struct, frozen=True):
    """What a call asked, with the choices it offered, and the answer; None: nobody gave one."""

    question: tuple[str, tuple[str, ...]]
    answer: str | None


class NestedSoFar(msgspec.Struct):
    """The calls of a container that runs: those that have ended, as far as the log knows."""

    calls: list[ev.NestedCall] = msgspec.field(default_factory=list[ev.NestedCall])
    sums: tuple[ev.NestedSum, ...] = ()
    total: int = 0
    completed: int = 0


class OpenTurn(msgspec.Struct):
    """The turn under way."""

    turn_id: str
    workspace: str
    settings: Settings
    """As they were when it started; what is changed later holds for the next turn."""
    schema: str | None = None
    """What its answer must fit."""
    attended: bool = True
    """Whether a person is there who can answer what it asks."""
    cancelling: ev.TurnCancelling | None = None
    step: ev.StepStarted | None = None
    """The step whose reply is awaited."""
    started: dict[str, ev.CallStarted] = msgspec.field(default_factory=dict[str, ev.CallStarted])
    """Calls that started and have not finished."""
    steps: int = 0
    resumes: int = 0
    """How often it was resumed without a new fact since."""
    suspended: bool = False
    """Whether it was stopped gracefully, to go on at the next start."""
    usage: ev.Usage = msgspec.field(default_factory=ev.Usage)
    cost: float | None = 0.0
    left_over: tuple[str, ...] = ()

    def spend(self, reply: ev.StepReplied) -> None:
        """Add what a reply took; a cost that is unknown once stays unknown."""
        if reply.usage is not None:
            self.usage = ev.Usage(
                input_tokens=self.usage.input_tokens + reply.usage.input_tokens,
                output_tokens=self.usage.output_tokens + reply.usage.output_tokens,
                cached_tokens=self.usage.cached_tokens + reply.usage.cached_tokens,
                reasoning_tokens=self.usage.reasoning_tokens + reply.usage.reasoning_tokens,
            )
        self.cost = None if self.cost is None or reply.cost is None else self.cost + reply.cost
