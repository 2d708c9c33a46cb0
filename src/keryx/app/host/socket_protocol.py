"""What a process says to the host of its home: the calls of the local socket and their values."""

from __future__ import annotations

from typing import Final

import msgspec

from keryx.errors import DeveloperMustActError
from keryx.messages import ApprovalMode
from keryx.ports.dispatch import Answer, Change
from keryx.ports.view import SessionView

HELLO: Final = "hello"
OPEN: Final = "open"
TELL: Final = "tell"
WATCH: Final = "watch"
DELETE: Final = "delete"
VIEW: Final = "view"
CHANGES: Final = "changes"
REMOVE_RULE: Final = "rule.remove"
# Between a host and programs that host sessions of their own in its home:
ANNOUNCE: Final = "announce"
TAKE: Final = "take"
HOSTED: Final = "hosted"
LET_GO: Final = "let_go"
STAY: Final = "stay"
# Of a process whose session shall not outlive it:
HOLD: Final = "hold"

VERSION: Final = 2
WRONG_SECRET: Final = "SecretError"  # noqa: S105 (the name of an error)


class Hello(msgspec.Struct, frozen=True):
    """The first call of every connection: who comes without the home's secret is turned away."""

    secret: str
    version: int = VERSION


class NewSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session to be made, or to be opened if it exists. What is None, the host decides."""

    session_id: str
    exists: bool = False
    workspace: str = ""
    model: str | None = None
    tools: tuple[str, ...] | None = None
    personality: str | None = None
    effort: str | None = None
    profile: str | None = None
    title: str = ""
    approvals: ApprovalMode | None = None
    read_only: bool = False
    for_others: bool = False
    """Whether it is made for another process than the host's own program."""


def checked(wanted: NewSession) -> NewSession:
    """The same, as strictly as if it had come over the wire; `DeveloperMustActError` if not so.

    Nothing may become a session's first fact that could not be read back.
    """
    try:
        converted = msgspec.convert(msgspec.structs.asdict(wanted), NewSession)
        encode_value(converted)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise DeveloperMustActError(f"a session cannot be opened like this: {error}") from error
    return converted


class Announced(msgspec.Struct, frozen=True):
    """A guest is there; its plate says how to reach it."""

    guest: str


class Taken(msgspec.Struct, frozen=True):
    """A guest would host this session; `is_new` if it is about to make it."""

    guest: str
    session_id: str
    is_new: bool


class Hosted(msgspec.Struct, frozen=True):
    """What a guest hosts, and what it brought along."""

    sessions: tuple[str, ...]
    brings: tuple[str, ...]


class Named(msgspec.Struct, frozen=True):
    """A session that something is asked of."""

    session_id: str


class NamedRule(msgspec.Struct, frozen=True):
    """A rule that an answer with `always` made."""

    rule_id: str


class Since(msgspec.Struct, frozen=True):
    """A position of the store; None: the present one."""

    after: int | None


class Watch(msgspec.Struct, frozen=True):
    """Read this session's stream after that fact."""

    session_id: str
    after: int


encode_value: Final = msgspec.json.Encoder().encode
decode_answer: Final = msgspec.json.Decoder(Answer).decode
decode_named: Final = msgspec.json.Decoder(Named).decode
decode_rule: Final = msgspec.json.Decoder(NamedRule).decode
decode_since: Final = msgspec.json.Decoder(Since).decode
decode_announced: Final = msgspec.json.Decoder(Announced).decode
decode_taken: Final = msgspec.json.Decoder(Taken).decode
decode_hosted: Final = msgspec.json.Decoder(Hosted).decode
decode_view: Final = msgspec.json.Decoder(SessionView).decode

decode_change: Final = msgspec.json.Decoder(Change).decode
