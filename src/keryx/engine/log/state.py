"""The data types of a session's state. The fold changes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Self

import msgspec

from keryx import events as ev
from keryx.engine.money.spent import Amount
from keryx.messages import ApprovalMode, Decision, File, Image, Mode, Reach, ToolCall, TurnOptions
from keryx.ports.memory import memory_profile

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
    "tags",
)


NO_OPTIONS: Final = TurnOptions()


class Settings(msgspec.Struct):
    """A session's settings. A running turn keeps those that it started with."""

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
    tags: tuple[str, ...] = ()
    person: str | None = None
    """For whom the session is. Only its opening says that, and nobody can change it."""

    @property
    def memory_profile(self) -> str:
        """Whose memories the session reaches."""
        return memory_profile(self.profile, self.person)

    def apply(self, event: ev.SessionOpened | ev.SessionChanged) -> None:
        """Apply the settings that the fact names."""
        if isinstance(event, ev.SessionOpened):
            self.person = event.person
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
    options: TurnOptions | None = None

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
            options=event.options,
        )

    def apply(self, event: ev.MessageChanged) -> None:
        """Apply the fields that the fact names."""
        for name in ("turn_id", "mode", "text", "workspace", "attachments"):
            value = getattr(event, name)
            if value is not msgspec.UNSET:
                setattr(self, name, value)


def reordered(
    queue: Mapping[str, Queued], message: Queued, before: str | None
) -> dict[str, Queued]:
    """Return the queue with the message moved before `before`; to the end if that is not in it."""
    messages = [queued for queued in queue.values() if queued is not message]
    ids = [queued.message_id for queued in messages]
    messages.insert(ids.index(before) if before in ids else len(messages), message)
    return {queued.message_id: queued for queued in messages}


class Delivered(msgspec.Struct):
    """A message that was delivered to the model."""

    seq: int
    turn_id: str
    message: Queued
    memory_profile: str
    """Whose memories the turn reached."""
    memories: tuple[ev.RecalledMemory, ...] = ()
    """What the model is given with the message, as data."""


class Replied(msgspec.Struct):
    """A model's reply, with the results of its calls so far."""

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
    """A question of a call, with its choices, and the answer; None: nobody answered."""

    question: tuple[str, tuple[str, ...]]
    answer: str | None


class NestedSoFar(msgspec.Struct):
    """The nested calls of a running container that have ended, as far as they are logged."""

    calls: list[ev.NestedCall] = msgspec.field(default_factory=list[ev.NestedCall])
    sums: tuple[ev.NestedSum, ...] = ()
    total: int = 0
    completed: int = 0

    def add(self, event: ev.NestedFinished) -> None:
        self.calls += event.calls
        self.sums, self.total, self.completed = event.sums, event.total, event.completed


class OpenTurn(msgspec.Struct):
    """The running turn."""

    turn_id: str
    workspace: str
    settings: Settings
    """The settings when it started; later changes apply to the next turn."""
    schema: str | None = None
    """The JSON schema that its answer must match."""
    attended: bool = True
    """Whether a person is there who can answer its requests."""
    options: TurnOptions = NO_OPTIONS
    cancelling: ev.TurnCancelling | None = None
    step: ev.StepStarted | None = None
    """The step that waits for its reply."""
    started: dict[str, ev.CallStarted] = msgspec.field(default_factory=dict[str, ev.CallStarted])
    """Calls that started and have not finished, by id."""
    steps: int = 0
    resumes: int = 0
    """How often it was resumed since the last new fact."""
    suspended: bool = False
    """Whether it was stopped gracefully, to be resumed at the next start."""
    usage: ev.Usage = msgspec.field(default_factory=ev.Usage)
    cost: float | None = 0.0
    left_over: tuple[str, ...] = ()
    agents: dict[str, Amount] = msgspec.field(default_factory=dict[str, Amount])
    """What the child agents spent that are counted in the usage, by their calls."""
    own_amount: Amount = msgspec.field(default_factory=Amount)
    """What it spent itself: its steps, and what its calls asked of models."""

    def waiting_client_calls(self) -> set[str]:
        """Return the calls of client tools that have started and not finished."""
        names = {tool.name for tool in self.options.client_tools}
        return {call_id for call_id, call in self.started.items() if call.tool in names}

    def abandon_step(self, event: ev.StepAbandoned) -> None:
        self.step = None
        self.suspended = event.cause == "shutdown"
        if event.asked:
            self.cost = None
            self.own_amount += Amount.of(event)

    def note_usage(self, event: ev.UsageRecorded) -> None:
        """Add what a child agent or another request spent. A title belongs to no turn."""
        if event.purpose == "agent" and event.call_id is not None:
            self.agents[event.call_id] = Amount.of(event)
            self.spend(event)
        elif event.purpose != "title":
            self.own_amount += Amount.of(event)

    def spend(self, reply: ev.StepReplied | ev.UsageRecorded) -> None:
        """Add what a reply or a child agent used. If one cost is unknown, the sum is unknown."""
        if reply.usage is not None:
            self.usage = ev.Usage(
                input_tokens=self.usage.input_tokens + reply.usage.input_tokens,
                output_tokens=self.usage.output_tokens + reply.usage.output_tokens,
                cached_tokens=self.usage.cached_tokens + reply.usage.cached_tokens,
                reasoning_tokens=self.usage.reasoning_tokens + reply.usage.reasoning_tokens,
            )
        self.cost = None if self.cost is None or reply.cost is None else self.cost + reply.cost


class Requests:
    """The approval requests and questions of a session, computed from its log."""

    def __init__(self) -> None:
        self.approvals: dict[str, ev.ApprovalAsked] = {}
        """The open ones, by id."""
        self.answers: dict[str, tuple[ev.ApprovalAsked, Decision]] = {}
        """The decisions about calls that have not ended, by call."""
        self.granted: list[tuple[ev.ApprovalAsked, Reach | None]] = []
        """Requests that were answered with `session`: similar calls may run too. The host records
        what `always` allows."""
        self.questions: dict[str, ev.QuestionAsked] = {}
        """The open ones, by id."""
        self.question_answers: dict[str, list[QuestionAnswer]] = {}
        """The answers to the questions of calls that have not ended, in order, by call."""
        self.client_results: dict[str, str] = {}
        """The results that the client gave to calls of its tools that have not ended, by call."""

    def ask_approval(self, event: ev.ApprovalAsked) -> None:
        self.approvals[event.approval_id] = event

    def answer_approval(self, event: ev.ApprovalAnswered) -> None:
        request = self.approvals.pop(event.approval_id, None)
        if request is not None:
            self.answers[event.call_id] = (request, event.decision)
            if event.decision == "session" and event.follows is None:
                self.granted.append((request, event.reach))

    def expire_approval(self, event: ev.ApprovalExpired) -> None:
        self.approvals.pop(event.approval_id, None)

    def ask(self, event: ev.QuestionAsked) -> None:
        self.questions[event.question_id] = event

    def take_results(self, event: ev.CallsAnswered) -> None:
        self.client_results.update({answer.call_id: answer.text for answer in event.answers})

    def forget_answers(self, call_id: str) -> None:
        """Forget the answers to a call that has ended."""
        for answers in (self.answers, self.question_answers, self.client_results):
            answers.pop(call_id, None)

    def end_question(self, event: ev.QuestionAnswered | ev.QuestionExpired) -> None:
        question = self.questions.pop(event.question_id, None)
        if question is not None:
            text = event.answer if isinstance(event, ev.QuestionAnswered) else None
            answer = QuestionAnswer((question.text, question.choices), text)
            self.question_answers.setdefault(event.call_id, []).append(answer)
