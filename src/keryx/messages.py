"""The data types of a conversation: messages, their parts, tool calls and their outcomes.

Plain data with a stable JSON form. Unknown fields are tolerated on reading, so that an older
reader survives a newer writer. Large values are named by the hash of a blob.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal, get_args

import msgspec

VERSION = 1
"""The version of the JSON form; it rises only if a field changes its meaning."""


def well_formed(text: str) -> str:
    """Return the text with every lone surrogate, which UTF-8 cannot encode, as a visible escape.

    They come from file names and output that are not UTF-8. `TypeError` if it is not text.
    """
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] (comes from outside)
        raise TypeError(f"expected text, got {type(text).__name__}")
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="backslashreplace").decode()
    return text


class Text(msgspec.Struct, frozen=True, tag_field="type", tag="text"):
    """Plain text."""

    text: str


class Json(msgspec.Struct, frozen=True, tag_field="type", tag="json"):
    """A structured value as JSON bytes, which are encoded only once."""

    value: msgspec.Raw

    def decode(self) -> Any:
        return msgspec.json.decode(self.value)


class Image(msgspec.Struct, frozen=True, tag_field="type", tag="image"):
    """An image, by the hash of its blob."""

    blob: str
    media_type: str
    name: str = ""


class File(msgspec.Struct, frozen=True, tag_field="type", tag="file"):
    """An attached file, by the hash of its blob."""

    blob: str
    media_type: str
    name: str = ""


Part = Text | Json | Image | File

Outcome = Literal["completed", "failed", "denied", "cancelled", "unknown"]
"""How a call ended. cancelled: nothing of it runs any more. unknown: it may still run."""

Reason = Literal["interrupt", "steer", "timeout", "shutdown", "parent"]
"""Why something was cancelled. `aio.scope` defines the same type: it imports nothing of ours."""

Mode = Literal["queue", "steer", "interrupt"]
"""What a message does to the turn that runs when it comes."""

Decision = Literal["once", "session", "always", "deny"]
"""The answer to an approval request."""


Reach = Literal["exact", "folder", "everywhere"]
"""What a lasting approval covers: calls like this one in this folder; all calls of the tool in this
folder; calls like this one in every folder."""


Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
"""How much a model thinks. Each adapter maps what its API lacks."""

EFFORTS: Final[tuple[Effort, ...]] = get_args(Effort)
EFFORT_ADVICE: Final = f"choose one of {', '.join(EFFORTS)}"

ApprovalMode = Literal["ask", "auto", "never"]
"""Which calls need approval: all that change something, only risky ones, or none."""


class Needs(msgspec.Struct, frozen=True):
    """What a call needs beyond its session's confinement: absolute paths, the network."""

    network: bool = False
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.network or bool(self.reads or self.writes)

    def __or__(self, other: Needs) -> Needs:
        return Needs(
            self.network or other.network,
            tuple(dict.fromkeys(self.reads + other.reads)),
            tuple(dict.fromkeys(self.writes + other.writes)),
        )

    def within(self, granted: Needs) -> bool:
        """Return whether all of these needs are granted. A folder includes everything below it."""
        return (
            (granted.network or not self.network)
            and all(_below(path, granted.reads + granted.writes) for path in self.reads)
            and all(_below(path, granted.writes) for path in self.writes)
        )


def _below(path: str, trees: tuple[str, ...]) -> bool:
    return any(path == tree or path.startswith(tree.rstrip("/") + "/") for tree in trees)


NO_NEEDS = Needs()


class HookAction(msgspec.Struct, frozen=True):
    """What a hook did about one call: it refused it, changed its input or its result, or failed."""

    hook: str
    event: Literal["before_call", "after_call"]
    action: Literal["deny", "input", "result", "note", "fault"]
    detail: str = ""
    """The reason, the note, or why the hook failed."""


class ToolCall(msgspec.Struct, frozen=True):
    """A call that a model requested; the arguments are JSON text as the model wrote it."""

    call_id: str
    tool: str
    arguments: str = "{}"


class ClientTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool of the program that sent a message. It runs the tool itself and sends the result."""

    name: str
    parameters: str
    """The JSON schema of the arguments, as text."""
    description: str = ""


class ToolChoice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A reply must call a tool."""

    name: str = ""
    """Which one; empty: any that the model sees."""


class CallAnswer(msgspec.Struct, frozen=True):
    """The result of one call of a client tool, from the client."""

    call_id: str
    text: str


class TurnOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the sender of a message wants for the turn that the message starts, and no other."""

    instructions: str = ""
    """Added to the system prompt."""
    client_tools: tuple[ClientTool, ...] = ()
    tool_choice: ToolChoice | None = None
    """The first reply must call one of the client's tools; None: the model chooses."""
    max_tokens: int | None = None
    """The most tokens of one reply; None: the model's own limit."""
    request: str = ""
    """What the sender wants to read again about its request. The engine does not read it."""


class CallOutcome(msgspec.Struct, frozen=True):
    """How one call ended. There is exactly one for each call."""

    call_id: str
    tool: str
    outcome: Outcome
    reason: str | None = None
    started: bool = False
    content: tuple[Part, ...] = ()
    duration: float = 0.0
    left_over: tuple[str, ...] = ()
    overlaps: tuple[str, ...] = ()
    hooks: tuple[HookAction, ...] = ()

    @property
    def text(self) -> str:
        """The content as text for a model."""
        return text_of(self.content)

    @property
    def exit_code(self) -> int | None:
        """The code of a command that came to its end with another one than 0; None: any other."""
        return exit_code_of(self.outcome, self.content)


def exit_code_of(outcome: Outcome, content: Sequence[Part]) -> int | None:
    """Return the code of a command that came to its end with another one than 0, else None."""
    for part in content if outcome == "completed" else ():
        if isinstance(part, Json) and b'"exit_code"' in bytes(part.value):
            return _exit_code(part.decode())
    return None


def _exit_code(value: Any) -> int | None:
    match value:
        case {"exit_code": int(code)} if code != 0:
            return code
        case _:
            return None


def text_of(content: Iterable[Part]) -> str:
    """Return parts as text for a model."""
    return "\n".join(map(_shown, content))


def _shown(part: Part) -> str:
    match part:
        case Text():
            return part.text
        case Json():
            return bytes(part.value).decode()
        case Image() | File():
            return f"[{part.media_type} {part.name or part.blob}]"


class UserMessage(msgspec.Struct, frozen=True, tag_field="role", tag="user"):
    """A message from a person."""

    content: tuple[Part, ...]


class Opaque(msgspec.Struct, frozen=True, kw_only=True):
    """An item that is sent back unchanged, and only to the provider that it came from."""

    provider: str
    """The format, the model and the address that the item came from."""
    item: msgspec.Raw
    after_text: int = 0
    """How many characters of the reply's text come before the item."""
    after_calls: int = 0
    """How many calls of the reply come before the item."""


class AssistantMessage(msgspec.Struct, frozen=True, tag_field="role", tag="assistant"):
    """A reply of a model, and the calls that it requests."""

    content: tuple[Part, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    opaque: tuple[Opaque, ...] = ()
    """What the provider signed, in the order of the reply."""


class ToolMessage(msgspec.Struct, frozen=True, tag_field="role", tag="tool"):
    """The result of one call for a model."""

    call_id: str
    content: tuple[Part, ...] = ()
    tool: str = ""


Message = UserMessage | AssistantMessage | ToolMessage
