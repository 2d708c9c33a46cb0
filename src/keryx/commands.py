"""Everything that a session is told: one tagged union, the other half of the vocabulary.

This module owns the names of the commands, their fields and their JSON form. It refuses to
know which front end makes them and what the session answers. Each command has an id that its
maker minted and names its target by id: "the current one" cannot be said. Whoever opens or
deletes sessions speaks to the app, so that is not here.

Names never change meaning; fields may be added, with a default. A reader skips fields that it
does not know; a `type` that it does not know is an error.
"""

from __future__ import annotations

import datetime as dt
import decimal
import functools
import typing
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from keryx.errors import InvalidCommandError
from keryx.messages import VERSION, ApprovalMode, Decision, File, Image, Mode, Reach, Reason


class _Command(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """`by` is who asks."""

    command_id: str
    session_id: str
    by: str
    v: int = VERSION


# -- message


class SendMessage(_Command, frozen=True, kw_only=True, tag="message.send"):
    """Say something to the agent; while a turn runs, the mode is the verb.

    `wait` lets a steer wait for the next boundary. `key` is the client's own id: the same key
    twice is one message. No workspace means the session's. `turn_id` is the turn that a steer
    or an interrupt is meant for: if that is over, or none is named and none runs, the message
    is a plain one, so that it never hits a turn that its sender has not seen. `schema` is the text
    of a JSON schema that the answer must fit. `attended`: whether a person is there who can answer
    what the turn asks; if not, what would ask is denied.
    """

    text: str
    mode: Mode = "queue"
    turn_id: str | None = None
    attachments: tuple[Image | File, ...] = ()
    workspace: str | None = None
    key: str | None = None
    wait: bool = False
    schema: str | None = None
    attended: bool = True


class ChangeMessage(_Command, frozen=True, kw_only=True, tag="message.change"):
    """Change or reorder a message that was not delivered yet; what is absent stays as it is.

    `before` names the message to stand before in the queue, None its end.
    """

    message_id: str
    mode: Mode | UnsetType = UNSET
    text: str | UnsetType = UNSET
    attachments: tuple[Image | File, ...] | UnsetType = UNSET
    workspace: str | UnsetType = UNSET
    before: str | UnsetType | None = UNSET


class WithdrawMessage(_Command, frozen=True, kw_only=True, tag="message.withdraw"):
    """Take back a message that was not delivered yet."""

    message_id: str


# -- turn


class CancelTurn(_Command, frozen=True, kw_only=True, tag="turn.cancel"):
    """End this turn, started or not; nothing happens if it is over."""

    turn_id: str
    reason: Reason = "interrupt"


class UndoTurn(_Command, frozen=True, kw_only=True, tag="turn.undo"):
    """Let projections skip this turn, which is over, and take back its changes of files.

    If someone edited such a file since, nothing happens, unless `files` is false.
    """

    turn_id: str
    files: bool = True


# -- call


class CancelCall(_Command, frozen=True, kw_only=True, tag="call.cancel"):
    """End this call; its turn goes on with the outcome."""

    call_id: str
    reason: Reason = "interrupt"


class RunCall(_Command, frozen=True, kw_only=True, tag="call.run"):
    """Run a tool for a person, with no model; the maker mints the call's id too.

    `attended` says that someone answers what the call asks; if not, what would ask is denied.
    """

    call_id: str
    tool: str
    arguments: str = "{}"
    workspace: str | None = None
    attended: bool = True


# -- files


class RevertFiles(_Command, frozen=True, kw_only=True, tag="files.revert"):
    """Take back these changes, each named by the seq of its `files.changed`."""

    changes: tuple[int, ...]


# -- approval and question


class AnswerApproval(_Command, frozen=True, kw_only=True, tag="approval.answer"):
    """Decide on a call that waits; the first answer wins.

    `reach` is how far `session` and `always` go, one of the offers; None: the narrowest.
    """

    approval_id: str
    decision: Decision
    where: str
    reach: Reach | None = None


class AnswerQuestion(_Command, frozen=True, kw_only=True, tag="question.answer"):
    """Answer a question; the first answer wins."""

    question_id: str
    answer: str
    where: str


# -- session


class ChangeSession(_Command, frozen=True, kw_only=True, tag="session.change"):
    """Change the session; what is absent stays as it is. A running turn keeps what it has.

    `tools` is a closed set of tools and toolsets: an empty one means no tools.
    """

    model: str | UnsetType = UNSET
    profile: str | UnsetType = UNSET
    place: str | UnsetType = UNSET
    workspace: str | UnsetType = UNSET
    tools: tuple[str, ...] | UnsetType = UNSET
    effort: str | UnsetType | None = UNSET
    personality: str | UnsetType | None = UNSET
    title: str | UnsetType = UNSET
    pinned: bool | UnsetType = UNSET
    archived: bool | UnsetType = UNSET
    approvals: ApprovalMode | UnsetType | None = UNSET
    read_only: bool | UnsetType = UNSET


class CompactContext(_Command, frozen=True, kw_only=True, tag="context.compact"):
    """Let a summary stand for what was said so far."""


class ForkSession(_Command, frozen=True, kw_only=True, tag="session.fork"):
    """Begin a session, under an id that the maker minted, that shares this one's past.

    The turn is the last one that it shares; None: all that are over.
    """

    new_session_id: str
    turn_id: str | None = None


class SetDraft(_Command, frozen=True, kw_only=True, tag="draft.set"):
    """Keep what a person is typing; an empty text clears it."""

    text: str
    attachments: tuple[Image | File, ...] = ()


Command = (
    SendMessage
    | ChangeMessage
    | WithdrawMessage
    | CancelTurn
    | UndoTurn
    | CancelCall
    | RunCall
    | RevertFiles
    | AnswerApproval
    | AnswerQuestion
    | ChangeSession
    | CompactContext
    | ForkSession
    | SetDraft
)

_encoder: Final = msgspec.json.Encoder()


@functools.cache
def _decoder() -> msgspec.json.Decoder[Command]:
    """Made when first needed: most processes read no command."""
    return msgspec.json.Decoder(Command)


_FOREIGN: Final = (bytes, bytearray, memoryview, dt.datetime, dt.date, dt.time, decimal.Decimal)
"""Types that have a JSON form and that no command takes: they must not pass as text."""


def checked(command: Command) -> Command:
    """The same command, with every field of its declared type, as if it had come as JSON.

    `InvalidCommandError` names the field that does not fit.
    """
    kind = type(command)
    if kind not in _kinds():
        raise InvalidCommandError(f"{kind.__name__} is not a command; see keryx.commands")
    try:
        fields = msgspec.to_builtins(command, builtin_types=_FOREIGN)
        strict = msgspec.convert(fields, kind)
        if _decoder_of(kind).decode(encode(strict)) == strict:
            return strict
    except (msgspec.ValidationError, TypeError, ValueError, RecursionError) as error:
        raise _refusal(command, error) from error
    raise InvalidCommandError(f"{_name(kind)} has a field that JSON cannot hold; nothing was done")


def _refusal(command: Command, error: Exception) -> InvalidCommandError:
    if isinstance(error, UnicodeEncodeError):
        why = "a text holds half of a surrogate pair, which is not Unicode; send text that is"
    else:
        why = f"{error}; see the fields of {type(command).__name__}"
    return InvalidCommandError(f"{_name(type(command))} was refused: {why}")


def _name(kind: type[Command]) -> str:
    return f"the command {kind.__struct_config__.tag!r}"


@functools.cache
def _kinds() -> frozenset[type[Command]]:
    return frozenset(typing.get_args(Command))


@functools.cache
def _decoder_of(kind: type[Command]) -> msgspec.json.Decoder[Command]:
    return msgspec.json.Decoder(kind)


encode: Final[Callable[[Command], bytes]] = _encoder.encode
"""The command as one line of JSON."""


def decode(data: bytes) -> Command:
    """Read a command.

    `msgspec.ValidationError` for a type that this version does not know, and for a field that
    is missing or does not fit; its parent `msgspec.DecodeError` for what is no JSON.
    """
    return _decoder().decode(data)
