"""The commands to a session: one tagged union with a JSON form.

The sender of a command creates its id. A command names its target by id; there is no "current"
turn or call. Sessions are opened and deleted by the app, not by commands.

Names never change their meaning. Fields may be added, with a default. A reader ignores unknown
fields; an unknown `type` is an error.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from keryx import messages as ms
from keryx.decoding import json_decoder


class _Command(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """`by` names the sender."""

    command_id: str
    session_id: str
    by: str
    v: int = ms.VERSION


class SendMessage(_Command, frozen=True, kw_only=True, tag="message.send"):
    """Send a message to the agent. `mode` says what it does to a running turn.

    `wait`: a steer waits for the next boundary. `key` is the client's own id: a message that is
    sent twice with one key counts once. `workspace` None: the session's. `turn_id` names the target
    of a steer or an interrupt. If that turn has ended, or none is named and none runs, the message
    is queued, so that it never affects a turn that its sender has not seen. `schema` is the text of
    a JSON schema that the answer must match. `attended` False: nobody can answer approval requests
    and questions of the turn, so they are denied. The turn that it `replaces`, and those after it,
    make room for it, with their file changes if `revert`; `turn.restore` brings them back.
    """

    text: str
    mode: ms.Mode = "queue"
    turn_id: str | None = None
    attachments: tuple[ms.Image | ms.File, ...] = ()
    workspace: str | None = None
    key: str | None = None
    wait: bool = False
    schema: str | None = None
    attended: bool = True
    options: ms.TurnOptions | None = None
    replaces: str | None = None
    revert: bool = False


class ChangeMessage(_Command, frozen=True, kw_only=True, tag="message.change"):
    """Change or reorder a message that is not yet delivered; absent fields stay unchanged.

    `before` names the message to stand before in the queue, None its end.
    """

    message_id: str
    mode: ms.Mode | UnsetType = UNSET
    text: str | UnsetType = UNSET
    attachments: tuple[ms.Image | ms.File, ...] | UnsetType = UNSET
    workspace: str | UnsetType = UNSET
    before: str | UnsetType | None = UNSET


class WithdrawMessage(_Command, frozen=True, kw_only=True, tag="message.withdraw"):
    """Withdraw a message that is not yet delivered."""

    message_id: str


# -- turn


class CancelTurn(_Command, frozen=True, kw_only=True, tag="turn.cancel"):
    """Cancel this turn, started or not. Has no effect if it has ended."""

    turn_id: str
    reason: ms.Reason = "interrupt"


class UndoTurn(_Command, frozen=True, kw_only=True, tag="turn.undo"):
    """Remove this turn, which has ended, from the transcript, and revert its file changes.

    If someone edited such a file since, nothing happens, unless `files` is false.
    """

    turn_id: str
    files: bool = True


class RestoreTurn(_Command, frozen=True, kw_only=True, tag="turn.restore"):
    """Bring back a turn that was replaced, and those that followed it; files stay as they are."""

    turn_id: str


# -- call


class CancelCall(_Command, frozen=True, kw_only=True, tag="call.cancel"):
    """Cancel this call; its turn goes on with the outcome."""

    call_id: str
    reason: ms.Reason = "interrupt"


class RunCall(_Command, frozen=True, kw_only=True, tag="call.run"):
    """Run a tool for a person, without a model. The sender creates the id of the call too.

    `attended` says that someone answers what the call asks; if not, what would ask is denied.
    """

    call_id: str
    tool: str
    arguments: str = "{}"
    workspace: str | None = None
    attended: bool = True


class AnswerCalls(_Command, frozen=True, kw_only=True, tag="calls.answer"):
    """Give the results of all calls of client tools that wait; the first result of a call wins.

    `request` is what the sender wants to read again about its request.
    """

    answers: tuple[ms.CallAnswer, ...]
    request: str = ""


# -- files


class RevertFiles(_Command, frozen=True, kw_only=True, tag="files.revert"):
    """Revert these file changes, each named by the seq of its `files.changed`."""

    changes: tuple[int, ...]


# -- approval and question


class AnswerApproval(_Command, frozen=True, kw_only=True, tag="approval.answer"):
    """Answer an approval request; the first answer wins.

    `reach` is how far `session` and `always` go, one of the offers; None: the narrowest.
    """

    approval_id: str
    decision: ms.Decision
    where: str
    reach: ms.Reach | None = None


class AnswerQuestion(_Command, frozen=True, kw_only=True, tag="question.answer"):
    """Answer a question; the first answer wins."""

    question_id: str
    answer: str
    where: str


# -- session


class ChangeSession(_Command, frozen=True, kw_only=True, tag="session.change"):
    """Change the session; absent fields stay unchanged. A running turn keeps its settings.

    `tools` is a closed set of tools and toolsets: an empty one means no tools.
    """

    model: str | UnsetType = UNSET
    profile: str | UnsetType = UNSET
    place: str | UnsetType = UNSET
    workspace: str | UnsetType = UNSET
    tools: tuple[str, ...] | UnsetType = UNSET
    effort: ms.Effort | UnsetType | None = UNSET
    personality: str | UnsetType | None = UNSET
    title: str | UnsetType = UNSET
    pinned: bool | UnsetType = UNSET
    archived: bool | UnsetType = UNSET
    approvals: ms.ApprovalMode | UnsetType | None = UNSET
    read_only: bool | UnsetType = UNSET
    tags: tuple[str, ...] | UnsetType = UNSET


class CompactContext(_Command, frozen=True, kw_only=True, tag="context.compact"):
    """Replace the conversation so far by a summary, for the model.

    `focus` names what the summary is to keep above all.
    """

    focus: str = ""


class ForkSession(_Command, frozen=True, kw_only=True, tag="session.fork"):
    """Create a session that begins with the turns of this one, under an id from the sender.

    `turn_id` is the last turn that it gets; None: all that have ended. No `title`: "… (fork)".
    """

    new_session_id: str
    turn_id: str | None = None
    title: str | UnsetType = UNSET


class SetDraft(_Command, frozen=True, kw_only=True, tag="draft.set"):
    """Store what a person is typing; an empty text removes it."""

    text: str
    attachments: tuple[ms.Image | ms.File, ...] = ()


Command = (
    SendMessage
    | ChangeMessage
    | WithdrawMessage
    | CancelTurn
    | UndoTurn
    | RestoreTurn
    | CancelCall
    | RunCall
    | AnswerCalls
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
    """Return the decoder, created on first use: most processes decode no command."""
    return json_decoder(Command)


encode: Final[Callable[[Command], bytes]] = _encoder.encode
"""Encodes a command as one line of JSON."""


def decode(data: bytes) -> Command:
    """Decode a command: `msgspec.ValidationError` for an unknown type and for a missing or wrong
    field; its parent `msgspec.DecodeError` for invalid JSON."""
    return _decoder().decode(data)
