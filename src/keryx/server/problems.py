"""Errors as problem documents (RFC 9457): what went wrong, its kind, and what to do about it.

What nobody foresaw is told by an id alone; the rest of it stands in the log of the server.
"""

from __future__ import annotations

import http
import logging
import secrets
from collections.abc import Mapping
from typing import Final

import msgspec

from keryx import errors as er

MEDIA_TYPE: Final = "application/problem+json"
BAD_REQUEST: Final = 400
NOT_FOUND: Final = 404
CONFLICT: Final = 409
UNPROCESSABLE: Final = 422
INTERNAL: Final = 500
NOT_YET: Final = 501
ENDING: Final = 503

_log: Final = logging.getLogger("keryx.server")


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong, and what to do about it."""

    type: str
    title: str
    status: int
    detail: str
    kind: str
    hint: str


class ProblemError(er.KeryxError):
    """A request that is refused."""

    def __init__(
        self,
        status: int,
        kind: str,
        detail: str,
        hint: str = "",
        *,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(f"{detail}; {hint}" if hint else detail)
        self.headers = headers or {}
        self.problem = Problem(
            type=f"urn:keryx:{kind}",
            title=http.HTTPStatus(status).phrase,
            status=status,
            detail=detail,
            kind=kind,
            hint=hint,
        )


def not_found(what: str, hint: str) -> ProblemError:
    return ProblemError(NOT_FOUND, "not_found", what, hint)


def conflict(what: str, hint: str) -> ProblemError:
    return ProblemError(CONFLICT, "conflict", what, hint)


def unprocessable(what: str, hint: str) -> ProblemError:
    return ProblemError(UNPROCESSABLE, "refused", what, hint)


# The first that fits counts.
_KINDS: Final = (
    (er.UnsupportedError, NOT_YET, "unsupported"),
    (er.SessionDamagedError, CONFLICT, "damaged"),
    (er.StoreError, INTERNAL, "store"),
    (er.KeyReusedError, CONFLICT, "key_reused"),
    (er.AlreadyTakenError, CONFLICT, "already_taken"),
    (er.AlreadyEnteredError, CONFLICT, "already_entered"),
    (er.RecordChangedError, CONFLICT, "changed_meanwhile"),
    (er.FencedError, CONFLICT, "not_ours"),
    (er.ScopeClosedError, ENDING, "ending"),
    (er.ToolCancelledError, ENDING, "ending"),
    (er.UserMustActError, UNPROCESSABLE, "refused"),
    (er.ModelMustActError, UNPROCESSABLE, "refused"),
    (er.DeveloperMustActError, UNPROCESSABLE, "refused"),
)


def problem_of(error: BaseException) -> ProblemError:
    """Any error as what is told of it."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, er.ModelError):
        return ProblemError(UNPROCESSABLE, error.kind, error.message, error.hint)
    for kind, status, word in _KINDS:
        if isinstance(error, kind):
            return told(error, status, word)
    return unforeseen(error)


def told(error: er.KeryxError, status: int, word: str) -> ProblemError:
    """The text of an error says what to do next, behind a semicolon."""
    what, _, hint = str(error).partition("; ")
    return ProblemError(status, word, what, hint or _HINTS[word])


_HINTS: Final = {
    "refused": "change what is asked for, and ask again",
    "conflict": "look at how things are now, and decide anew",
    "store": "see whether the disk is full or damaged, and try again",
    "damaged": "repair the store with `keryx sessions repair`, or delete the session",
    "key_reused": "choose a new key for what is new",
    "ending": "the server is ending; try again once it is back",
    "already_taken": "the first answer counts; see the session for what it was",
    "already_entered": "nothing; it took effect before",
    "not_ours": "try again; if that does not help, another Keryx owns the session",
    "changed_meanwhile": "look again, and decide anew",
    "unsupported": "see what this version can do in its documentation",
}


def unforeseen(error: BaseException) -> ProblemError:
    """Logged with an id, by which whoever runs the server finds it."""
    name = secrets.token_hex(6)
    _log.error("problem %s", name, exc_info=error)
    return ProblemError(
        INTERNAL,
        "internal",
        f"something went wrong that nobody foresaw (problem {name})",
        "look for that id in what the server logs",
    )


def encode(error: ProblemError) -> bytes:
    return msgspec.json.encode(error.problem)
