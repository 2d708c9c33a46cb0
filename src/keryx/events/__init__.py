"""The events of a session: one tagged union of logged and live events, with a JSON form.

A *logged* event is a fact with a sequence number. A *live* event is streamed and not stored; the
logged event that follows it has the complete content.

Names never change their meaning. Fields may be added, with a default. A reader ignores unknown
fields. An unknown `type` is an error: a reader that skipped a fact would compute a wrong state.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

import msgspec

from keryx.decoding import json_decoder
from keryx.errors import ErrorKind, InvalidFactError
from keryx.events.fields import (
    AbandonCause,
    CallAccess,
    CallEffects,
    ContextSize,
    Expiry,
    ForkPoint,
    NestedCall,
    NestedCalls,
    NestedProgress,
    NestedSum,
    NestedSummary,
    Offer,
    ParentCall,
    Purpose,
    Replay,
    RiskLevel,
    RunningCall,
    RunningNested,
    ShownNested,
    ShownTool,
    Stream,
    TurnError,
    TurnOutcome,
    Usage,
)
from keryx.events.live import (
    ArgumentsDelta,
    CallOutput,
    CallProgress,
    CallsSnapshot,
    ContextCompacting,
    LiveEvent,
    ReasoningDelta,
    Resync,
    StepReset,
    StepSnapshot,
    TextDelta,
)
from keryx.events.logged import (
    ApprovalAnswered,
    ApprovalAsked,
    ApprovalExpired,
    CallAmended,
    CallFinished,
    CallsAnswered,
    CallSettled,
    CallStarted,
    FilesChanged,
    LoggedEvent,
    MessageAccepted,
    MessageChanged,
    MessageDelivered,
    MessageExpired,
    MessageWithdrawn,
    NestedFinished,
    PromptChanged,
    QuestionAnswered,
    QuestionAsked,
    QuestionExpired,
    SessionChanged,
    SessionOpened,
    StepAbandoned,
    StepReplied,
    StepStarted,
    TurnCancelling,
    TurnFinished,
    TurnRestored,
    TurnResumed,
    TurnStarted,
    TurnSuspended,
    TurnUndone,
)
from keryx.events.memory import (
    MemoryAbout,
    MemoryChanged,
    MemoryKind,
    MemoryRecalled,
    RecalledMemory,
    Trust,
)
from keryx.events.models import (
    ContextCompacted,
    ModelRetried,
    ModelSwitched,
    Said,
    ToolsLoaded,
    UsageRecorded,
    Verbatim,
)
from keryx.messages import Opaque, well_formed

__all__ = [
    "AbandonCause",
    "ApprovalAnswered",
    "ApprovalAsked",
    "ApprovalExpired",
    "ArgumentsDelta",
    "CallAccess",
    "CallAmended",
    "CallEffects",
    "CallFinished",
    "CallOutput",
    "CallProgress",
    "CallSettled",
    "CallStarted",
    "CallsAnswered",
    "CallsSnapshot",
    "ContextCompacted",
    "ContextCompacting",
    "ContextSize",
    "ErrorKind",
    "Event",
    "Expiry",
    "FilesChanged",
    "ForkPoint",
    "LiveEvent",
    "LoggedEvent",
    "MemoryAbout",
    "MemoryChanged",
    "MemoryKind",
    "MemoryRecalled",
    "MessageAccepted",
    "MessageChanged",
    "MessageDelivered",
    "MessageExpired",
    "MessageWithdrawn",
    "ModelRetried",
    "ModelSwitched",
    "NestedCall",
    "NestedCalls",
    "NestedFinished",
    "NestedProgress",
    "NestedSum",
    "NestedSummary",
    "Offer",
    "Opaque",
    "ParentCall",
    "PromptChanged",
    "Purpose",
    "QuestionAnswered",
    "QuestionAsked",
    "QuestionExpired",
    "ReasoningDelta",
    "RecalledMemory",
    "Replay",
    "Resync",
    "RiskLevel",
    "RunningCall",
    "RunningNested",
    "Said",
    "SessionChanged",
    "SessionOpened",
    "ShownNested",
    "ShownTool",
    "StepAbandoned",
    "StepReplied",
    "StepReset",
    "StepSnapshot",
    "StepStarted",
    "Stream",
    "TextDelta",
    "ToolsLoaded",
    "Trust",
    "TurnCancelling",
    "TurnError",
    "TurnFinished",
    "TurnOutcome",
    "TurnRestored",
    "TurnResumed",
    "TurnStarted",
    "TurnSuspended",
    "TurnUndone",
    "Usage",
    "UsageRecorded",
    "Verbatim",
    "as_logged",
    "decode",
    "decode_logged",
    "encode",
    "type_of",
]

Event = LoggedEvent | LiveEvent

E = TypeVar("E", bound=LoggedEvent)

_encoder: Final = msgspec.json.Encoder()


# Created on first use: most processes start without decoding an event.
@functools.cache
def _decoder() -> msgspec.json.Decoder[Event]:
    return json_decoder(Event)


@functools.cache
def _logged_decoder() -> msgspec.json.Decoder[LoggedEvent]:
    return json_decoder(LoggedEvent)


# One decoder per kind: a process that starts needs only a few of them.
@functools.cache
def _decoder_of(kind: type[E]) -> msgspec.json.Decoder[E]:
    return json_decoder(kind)


encode: Final[Callable[[Event], bytes]] = _encoder.encode
"""Encodes an event as one line of JSON."""


def decode(data: bytes) -> Event:
    """Decode any event.

    `msgspec.ValidationError` for an unknown type and for a missing or wrong field; its parent
    `msgspec.DecodeError` for invalid JSON.
    """
    return _decoder().decode(data)


def decode_logged(data: bytes) -> LoggedEvent:
    """Decode a fact, as `decode` does; a live event is an error."""
    return _logged_decoder().decode(data)


def as_logged(fact: E) -> tuple[E, bytes]:
    """Return the fact as a reader of the log will decode it, and its bytes.

    Lone surrogates become visible escapes. `InvalidFactError` if it cannot be decoded again.
    """
    try:
        try:
            data = _encoder.encode(fact)
        except UnicodeEncodeError:
            data = _encoder.encode(_well_formed(fact))
        return _decoder_of(type(fact)).decode(data), data
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        raise InvalidFactError(
            f"the fact {type_of(fact)!r} could not be read back, so it was not written: {error}"
        ) from error


def _well_formed(value: Any) -> Any:
    match value:
        case str():
            return well_formed(value)
        case msgspec.Struct():
            fields = ((name, getattr(value, name)) for name in value.__struct_fields__)
            return type(value)(**{name: _well_formed(item) for name, item in fields})
        case list() | tuple():
            return [_well_formed(item) for item in cast("list[Any]", value)]
        case dict():
            items = cast("dict[Any, Any]", value).items()
            return {_well_formed(key): _well_formed(item) for key, item in items}
        case _:
            return value


type_of: Final[Callable[[Event], str]] = operator.attrgetter("__struct_config__.tag")
"""Returns the type of an event, such as `turn.started`."""
