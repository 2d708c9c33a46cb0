"""Turns errors into problem documents (RFC 9457): what happened, its kind, and what to do.

An unexpected error is reported with an id only; its details are in the server's log.
"""

from __future__ import annotations

import http
import logging
import secrets
from collections.abc import Generator, Mapping
from contextlib import contextmanager
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
    """A request is refused; the problem document says why."""

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


def not_found(detail: str, hint: str) -> ProblemError:
    return ProblemError(NOT_FOUND, "not_found", detail, hint)


def conflict(detail: str, hint: str) -> ProblemError:
    return ProblemError(CONFLICT, "conflict", detail, hint)


def unprocessable(detail: str, hint: str) -> ProblemError:
    return ProblemError(UNPROCESSABLE, "refused", detail, hint)


# The first class that matches wins.
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
    """Return the problem document of any error."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, er.ModelError):
        return ProblemError(UNPROCESSABLE, error.kind, error.message, error.hint)
    for kind, status, word in _KINDS:
        if isinstance(error, kind):
            return from_error(error, status, word)
    return unexpected(error)


def from_error(error: er.KeryxError, status: int, word: str) -> ProblemError:
    """Split the text of an error at its semicolon: what happened, and what to do."""
    detail, _, hint = str(error).partition("; ")
    return ProblemError(status, word, detail, hint or _HINTS[word])


@contextmanager
def refusals_as_conflicts() -> Generator[None]:
    """Turn a refusal of the session into a conflict with its state: the request was not wrong."""
    try:
        yield
    except (er.UnsupportedError, er.StoreError, er.ModelError):
        raise
    except er.UserMustActError as error:
        raise from_error(error, CONFLICT, "conflict") from error


_HINTS: Final = {
    "refused": "change the request, and send it again",
    "conflict": "look at the current state, and decide again",
    "store": "check whether the disk is full or damaged, and try again",
    "damaged": "repair the store with `keryx sessions repair`, or delete the session",
    "key_reused": "use a new key for a new request",
    "ending": "the server is stopping; try again when it is back",
    "already_taken": "the first answer counts; the session shows which it was",
    "already_entered": "nothing to do: it took effect before",
    "not_ours": "try again; if that does not help, another Keryx owns the session",
    "changed_meanwhile": "look at the current state, and decide again",
    "unsupported": "the documentation says what this version can do",
}


def unexpected(error: BaseException) -> ProblemError:
    """Log the error under a new id, and return a problem document that names the id."""
    name = secrets.token_hex(6)
    _log.error("problem %s", name, exc_info=error)
    return ProblemError(
        INTERNAL,
        "internal",
        f"The server failed unexpectedly (problem {name})",
        f"try again; if it fails again, look for {name} in the server's log",
    )


def encode(error: ProblemError) -> bytes:
    return msgspec.json.encode(error.problem)
