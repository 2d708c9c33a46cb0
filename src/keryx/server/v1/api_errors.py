"""Errors in OpenAI's form: a message that says what to do, a type, the parameter and a code."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from keryx.errors import ErrorKind, KeryxError
from keryx.server import problems
from keryx.server.problems import ProblemError

INVALID: Final = "invalid_request_error"
_PLACE: Final = re.compile(r" - at `(?:key in )?\$\.?([^`]*)`$")
_UNKNOWN_FIELD: Final = re.compile(r"Object contains unknown field `([^`]*)`")


class ApiError(KeryxError):
    """A request is refused, or failed; the client reads the message."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        kind: str = INVALID,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param
        self.kind = kind

    @property
    def body(self) -> dict[str, Any]:
        """The error as an OpenAI client reads it."""
        error = {"message": str(self), "type": self.kind, "param": self.param, "code": self.code}
        return {"error": error}

    def encode(self) -> bytes:
        return msgspec.json.encode(self.body)


def invalid(message: str, param: str | None = None, code: str | None = None) -> ApiError:
    return ApiError(problems.BAD_REQUEST, message, param=param, code=code)


def no_response(response_id: str) -> ApiError:
    return ApiError(
        problems.NOT_FOUND,
        f"There is no response {response_id[:80]!r}; it may have been deleted",
        param="response_id",
        code="response_not_found",
    )


def no_previous_response(response_id: str) -> ApiError:
    """Return the error that lets clients send the whole conversation instead."""
    return invalid(
        f"Previous response with id {response_id[:80]!r} not found; it may have been deleted",
        "previous_response_id",
        "previous_response_not_found",
    )


def no_key() -> ApiError:
    return ApiError(
        401,
        "A token is missing or wrong; make one with `keryx tokens make NAME` and send it as the "
        "API key",
        code="invalid_api_key",
    )


def unreadable(error: Exception) -> ApiError:
    """Return the error for a body that is not JSON of the right form."""
    text = str(error)
    place = _PLACE.search(text)
    unknown_field = _UNKNOWN_FIELD.match(text)
    param = place[1] if place else None
    if unknown_field is not None:
        param = ".".join(filter(None, (param, unknown_field[1])))
        text = f"Unknown parameter: {param!r}; remove it"
        return invalid(text, param, "unknown_parameter")
    if isinstance(error, msgspec.ValidationError):
        return invalid(f"{_PLACE.sub('', text)}: `{param or 'body'}`", param, "invalid_type")
    return invalid(f"The body is not JSON: {text}", code="invalid_json")


def from_problem(error: ProblemError) -> ApiError:
    """Return a problem of the server as a client of OpenAI reads it."""
    problem = error.problem
    text = f"{problem.detail}; {problem.hint}" if problem.hint else problem.detail
    kind = "server_error" if problem.status >= problems.INTERNAL else INVALID
    return ApiError(problem.status, text, code=problem.kind, kind=kind)


def of_error(error: BaseException) -> ApiError:
    return error if isinstance(error, ApiError) else from_problem(problems.problem_of(error))


_STATUS: Final[dict[ErrorKind, tuple[int, str]]] = {
    "rate_limit": (429, "rate_limit_exceeded"),
    "quota": (429, "insufficient_quota"),
    "limit": (400, "limit_reached"),  # with 429 a client would ask again by itself, and pay again
    "context_too_long": (400, "context_length_exceeded"),
    "model_not_found": (404, "model_not_found"),
    "not_configured": (400, "model_not_configured"),
}


def of_turn(kind: ErrorKind, message: str, hint: str) -> ApiError:
    """Return the error for a turn that failed."""
    status, code = _STATUS.get(kind, (502, kind))
    text = f"{message}; {hint}" if hint else message
    return ApiError(status, text, code=code, kind="server_error" if status > 500 else INVALID)  # noqa: PLR2004
