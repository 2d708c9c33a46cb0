"""The facts about requests to models: retries, other models, summaries, usage, loaded tools."""

from __future__ import annotations

import msgspec

from keryx.errors import ErrorKind
from keryx.events.fields import AtWork, InTurn, Logged, Purpose, Usage


class ModelRetried(InTurn, frozen=True, kw_only=True, tag="model.retried"):
    """The request to the model failed and is retried after `delay` seconds."""

    step_id: str
    cause: ErrorKind
    message: str
    delay: float


class ModelSwitched(InTurn, frozen=True, kw_only=True, tag="model.switched"):
    """Another model takes over the step."""

    step_id: str
    cause: ErrorKind
    from_: str = msgspec.field(name="from")
    to: str


class Said(msgspec.Struct, frozen=True):
    """A message of a person, of which a long one has only its beginning and end."""

    message_id: str
    text: str


class Verbatim(msgspec.Struct, frozen=True, kw_only=True):
    """What stays word for word beside a summary."""

    said: tuple[Said, ...] = ()
    left_out: int = 0
    """How many messages between the first and the others are not there."""
    plan: str = ""
    files: tuple[str, ...] = ()
    """The files that were changed, the last ones last."""


class ContextCompacted(AtWork, frozen=True, kw_only=True, tag="context.compacted"):
    """In requests to the model, the summary replaces all facts up to `up_to`."""

    summary: str
    up_to: int
    tokens_before: int
    tokens_after: int
    focus: str = ""
    """What the summary is to keep above all, if somebody said so."""
    verbatim: Verbatim = Verbatim()


class UsageRecorded(Logged, frozen=True, kw_only=True, tag="usage.recorded"):
    """Usage outside of steps, for instance by a call. No turn: a title may come after its end."""

    purpose: Purpose
    model: str
    usage: Usage | None
    cost: float | None
    call_id: str | None = None


class ToolsLoaded(Logged, frozen=True, kw_only=True, tag="tools.loaded"):
    """A call found these tools: from now on, requests to the model describe them."""

    names: tuple[str, ...]
    call_id: str
