"""The protocol of the local socket: method names, and the parameters and results of the calls."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from keryx.app.trust.trusted_folders import TrustedFolder
from keryx.decoding import convert, json_decoder
from keryx.errors import DeveloperMustActError
from keryx.messages import EFFORT_ADVICE, ApprovalMode, Effort
from keryx.ports.dispatch import Answer, Change
from keryx.ports.memory import PERSON
from keryx.ports.view import SessionView

HELLO: Final = "hello"
OPEN: Final = "open"
TELL: Final = "tell"
WATCH: Final = "watch"
DELETE: Final = "delete"
VIEW: Final = "view"
CHANGES: Final = "changes"
REMOVE_RULE: Final = "rule.remove"
TRUST: Final = "trust"
DISTRUST: Final = "trust.remove"
RESCAN_MEMORY: Final = "memory.rescan"
# Between the owner of a home and its guests:
ANNOUNCE: Final = "announce"
TAKE: Final = "take"
HOSTED: Final = "hosted"
STOP_HOSTING: Final = "let_go"
STAY: Final = "stay"
CATCH_UP: Final = "catch_up"
# Of a process with a temporary session:
HOLD: Final = "hold"

# A host that does not know of a field drops it: sessions of the gateway would be for the owner.
VERSION: Final = 4
WRONG_SECRET: Final = "SecretError"  # noqa: S105 (the name of an error)
# An id of two hundred letters may need twelve signs for each.
LONGEST_PERSON: Final = 3_000


class Hello(msgspec.Struct, frozen=True):
    """The first call of every connection. Without the home's secret, all calls are refused."""

    secret: str
    version: int = VERSION


class NewSession(msgspec.Struct, frozen=True, kw_only=True):
    """A request to create a session, or to open an existing one. The host fills in what is None."""

    session_id: str
    exists: bool = False
    workspace: str = ""
    model: str | None = None
    tools: tuple[str, ...] | None = None
    personality: str | None = None
    effort: Effort | None = None
    profile: str | None = None
    title: str = ""
    archived: bool = False
    approvals: ApprovalMode | None = None
    read_only: bool = False
    person: Annotated[str, Meta(pattern=rf"\A{PERSON}\Z", max_length=LONGEST_PERSON)] | None = None
    """For whom the session is; None: for the owner of the home."""
    for_others: bool = False
    """Whether another process than the host's own asks for the session."""


def checked(request: NewSession) -> NewSession:
    """Return the request with its types checked, as if it came over the socket.

    `DeveloperMustActError` if a value is wrong: the session's first event must be readable later.
    """
    try:
        converted = convert(msgspec.structs.asdict(request), NewSession)
        encode_value(converted)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        choice = f"; {EFFORT_ADVICE}" if "`$.effort`" in str(error) else ""
        raise DeveloperMustActError(
            f"the session was not opened, because an argument is wrong: {error}{choice}"
        ) from error
    return converted


class Announcement(msgspec.Struct, frozen=True):
    """A guest runs; its address file says how to reach it."""

    guest: str


class TakeRequest(msgspec.Struct, frozen=True):
    """A guest asks to host this session; `is_new` if it is about to create it."""

    guest: str
    session_id: str
    is_new: bool


class HostedSessions(msgspec.Struct, frozen=True):
    """The sessions that a guest hosts, and its capabilities (`brings`)."""

    sessions: tuple[str, ...]
    brings: tuple[str, ...]


class SessionRef(msgspec.Struct, frozen=True):
    """The session that a call is about."""

    session_id: str


class DeleteRequest(msgspec.Struct, frozen=True):
    """Delete a session; `keep_memory`: what it taught stays."""

    session_id: str
    keep_memory: bool = False


class MemoryRescan(msgspec.Struct, frozen=True):
    """Deliver what other processes wrote; `retry`: at once, `wait`: answer when it is delivered."""

    retry: bool = False
    wait: bool = False


class RuleRef(msgspec.Struct, frozen=True):
    """A rule that the answer `always` made."""

    rule_id: str


class FolderRef(msgspec.Struct, frozen=True):
    """A folder that a person trusts no more."""

    workspace: str


class ChangesRequest(msgspec.Struct, frozen=True):
    """Send changes after this position of the store; None: from now on."""

    after: int | None


class WatchRequest(msgspec.Struct, frozen=True):
    """Send this session's events after that sequence number."""

    session_id: str
    after: int


encode_value: Final = msgspec.json.Encoder().encode
decode_answer: Final = json_decoder(Answer).decode
decode_session_ref: Final = json_decoder(SessionRef).decode
decode_delete_request: Final = json_decoder(DeleteRequest).decode
decode_memory_rescan: Final = json_decoder(MemoryRescan).decode
decode_rule_ref: Final = json_decoder(RuleRef).decode
decode_folder_ref: Final = json_decoder(FolderRef).decode
decode_trusted_folder: Final = json_decoder(TrustedFolder).decode
decode_changes_request: Final = json_decoder(ChangesRequest).decode
decode_announcement: Final = json_decoder(Announcement).decode
decode_take_request: Final = json_decoder(TakeRequest).decode
decode_hosted: Final = json_decoder(HostedSessions).decode
decode_view: Final = json_decoder(SessionView).decode

decode_change: Final = json_decoder(Change).decode
