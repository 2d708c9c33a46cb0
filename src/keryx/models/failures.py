"""Failures of models, as a `ModelError` with a kind, a cause and a hint.

This module owns the texts. It refuses to know the HTTP client and the retries. A failure that may
pass by itself has a `retry_after`, 0 if the server named no time. No text from here has a secret of
its source.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import msgspec

from keryx.errors import ErrorKind, ModelError
from keryx.models.wire.problems import SERVER_FAULT, Problem, problem_in

# The beginning of an HTML page or a stack trace is enough.
MAX_EXCERPT: Final = 300
# Shorter values ("true", "beta", "none") are not secrets, and removing them would damage other
# words.
MIN_SECRET: Final = 8

_KIND_BY_CODE: Final[tuple[tuple[frozenset[str], ErrorKind], ...]] = (
    (
        frozenset(
            {
                "insufficient_quota",
                "billing_hard_limit_reached",
                "billing_not_active",
                "billing_error",
            }
        ),
        "quota",
    ),
    (frozenset({"api_key_invalid"}), "auth"),
    (frozenset({"context_length_exceeded", "exceed_context_size_error"}), "context_too_long"),
    (frozenset({"model_not_found", "not_found_error"}), "model_not_found"),
)
"""Error codes that are more precise than the HTTP status."""
_KIND_BY_WORD: Final[Mapping[str, ErrorKind]] = {
    "invalid_api_key": "auth",
    "authentication_error": "auth",
    "permission_error": "auth",
    "rate_limit_exceeded": "rate_limit",
    "rate_limit_error": "rate_limit",
    "server_error": "unreachable",
    "internal_server_error": "unreachable",
    "api_error": "unreachable",
    "overloaded_error": "unreachable",
    "service_unavailable": "unreachable",
    "timeout": "stalled",
    "timeout_error": "stalled",
    "request_too_large": "context_too_long",
    "resource_exhausted": "rate_limit",
    "unavailable": "unreachable",
    "internal": "unreachable",
    "deadline_exceeded": "stalled",
    "unauthenticated": "auth",
    "permission_denied": "auth",
    "not_found": "model_not_found",
}
_REFUSALS: Final = frozenset(
    {
        "invalid_request_error",
        "invalid_argument",
        "invalid_prompt",
        "invalid_image",
        "content_policy_violation",
        "content_filter",
    }
)
"""Codes that say inside a stream that the request is at fault."""
_KIND_BY_STATUS: Final[Mapping[int, ErrorKind]] = {
    401: "auth",
    402: "quota",
    403: "auth",
    404: "model_not_found",
    408: "stalled",
    413: "context_too_long",
    429: "rate_limit",
}
_HINT: Final = "does {url} support this API, and does the model accept these options?"
_HINTS: Final[Mapping[ErrorKind, str]] = {
    "auth": "check the key for {url} and what it may use",
    "quota": "the account has no credit left: add some, or use another model",
    "model_not_found": "check the model's name and the address {url}",
    "rate_limit": "wait {wait}, or use another model",
    "context_too_long": "compact the session, or use a model with a larger window",
    "unreachable": "the server at {url} is in trouble: ask again later, or use another model",
    "stalled": "the server at {url} is in trouble: ask again later, or use another model",
}

# Plain texts: they are compiled at the first failure, to keep the start fast.
_KIND_BY_MESSAGE: Final[tuple[tuple[str, ErrorKind], ...]] = (
    (
        (
            r"context (length|window|size|limit)|maximum (context|prompt length|model length)"
            r"|too many tokens|(prompt|input) is too long|exceeds the maximum number of tokens"
            r"|exceeded model token limit|reduce the length of the (messages|input|prompt)"
        ),
        "context_too_long",
    ),
    (r"credit balance is too low", "quota"),
)
"""For refusals whose status and code say nothing."""
_TRY_AGAIN: Final = r"(?:try again|retry) (?:in|after) ((?:\d+(?:\.\d+)?\s*[a-z]+\s?)+)"
_SPAN: Final = r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)"
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class Source(msgspec.Struct, frozen=True):
    """The server that was asked, in a form that may be shown."""

    name: str
    url: str
    secrets: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Source({self.name!r}, {self.url!r})"

    def redact(self, text: str) -> str:
        """Return foreign text on one line, bounded, and without secrets."""
        for secret in self.secrets:
            if len(secret) >= MIN_SECRET:
                text = text.replace(secret, "[secret]")
        text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        return text if len(text) <= MAX_EXCERPT else text[:MAX_EXCERPT] + "…"


def source(name: str, url: str, api_key: str | None, headers: Mapping[str, str]) -> Source:
    """Return a source whose address has no user, password and query."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        shown_url = urlunsplit((parts.scheme, host, parts.path, "", ""))
    except ValueError:
        # The address is not valid, so any part of it may be secret.
        return Source(name, "the address that is configured", (url, *filter(None, [api_key])))
    # Of "Bearer abc" a server may repeat the second word alone.
    words = (value.rpartition(" ")[2] for value in headers.values())
    values = {parts.password, *headers.values(), *words}
    secrets = {value for value in values if value and len(value) >= MIN_SECRET}
    if api_key:
        secrets.add(api_key)
    # The longest first: a secret may be a part of another one.
    return Source(name, shown_url, tuple(sorted(secrets, key=len, reverse=True)))


def refused(
    source: Source, status: int, headers: Mapping[str, str], body: bytes, *, now: float
) -> ModelError:
    """Return the error for an answer that is not 200."""
    problem = problem_in(body)
    text = problem.message if problem is not None else body.decode(errors="replace")
    problem = problem or Problem(text)
    kind = _kind(problem, status)
    message = f"{source.name} answered {status}"
    if text := source.redact(text):
        message += f": {text}"
    delay = _delay(kind, headers, problem.message, now)
    return ModelError(kind, message, _hint(kind, source, delay), retry_after=delay)


def refused_in_stream(source: Source, problem: Problem, *, now: float) -> ModelError:
    """Return the error for an error object inside the stream."""
    kind = _kind(problem, problem.status)
    message = (
        f"{source.name} broke off with an error: {source.redact(problem.message) or 'no cause'}"
    )
    delay = _delay(kind, {}, problem.message, now)
    if kind == "bad_response" and not _is_refusal(problem):
        # The server had accepted the request, so the failure is its own and may pass.
        delay = 0.0
    return ModelError(kind, message, _hint(kind, source, delay), retry_after=delay)


def _is_refusal(problem: Problem) -> bool:
    """Return whether the request itself is at fault: the same one would be refused again."""
    has_status = problem.status is not None and 400 <= problem.status < SERVER_FAULT  # noqa: PLR2004 (HTTP)
    return has_status or bool(problem.words & _REFUSALS)


def unreachable(source: Source, cause: str) -> ModelError:
    return ModelError(
        "unreachable",
        f"{source.name} cannot be reached: {source.redact(cause)}",
        f"is {source.url} the right address, and is the network up?",
        retry_after=0.0,
    )


def cannot_request(source: Source) -> ModelError:
    """Return the error for an address or a key with which no request is possible."""
    return ModelError(
        "not_configured",
        f"{source.name} cannot be used: its address or its key is not valid",
        f"correct the address {source.url} (it begins with http:// or https://), or set the key",
    )


def stalled(source: Source, seconds: float, *, stage: str) -> ModelError:
    return ModelError(
        "stalled",
        f"{source.name} sent nothing for {seconds:g} s {stage}",
        "ask again, or raise the model's deadlines in the configuration",
        retry_after=0.0,
    )


def cut(source: Source, cause: str) -> ModelError:
    return ModelError(
        "bad_response",
        f"the reply of {source.name} was cut: {source.redact(cause)}",
        "ask again; if it happens often, something between here and the server ends connections",
        retry_after=0.0,
    )


def invalid_answer(source: Source, content: str, excerpt: bytes = b"") -> ModelError:
    """Return the error for an answer that is not of this API."""
    message = f"{source.name} sent {content}"
    if text := source.redact(excerpt[: MAX_EXCERPT * 4].decode(errors="replace")):
        message += f": {text}"
    return ModelError("bad_response", message, f"does {source.url} support this API?")


def not_configured() -> ModelError:
    """Return the error for a configuration without a model."""
    return ModelError(
        "not_configured",
        "no model is configured",
        "paste a key into the page that `keryx serve` opens, or set OPENAI_API_KEY or that of"
        " another provider (`keryx models providers`), or add [providers] to config.toml;"
        " `keryx demo` needs none of them",
    )


def _kind(problem: Problem, status: int | None) -> ErrorKind:
    for words, kind in _KIND_BY_CODE:
        if problem.words & words:
            return kind
    if status in {None, 400, 422}:
        for pattern, kind in _KIND_BY_MESSAGE:
            if re.search(pattern, problem.message, re.IGNORECASE):
                return kind
    if status is not None and status >= SERVER_FAULT:
        return "unreachable"
    if status is not None and status in _KIND_BY_STATUS:
        return _KIND_BY_STATUS[status]
    for word in sorted(problem.words & _KIND_BY_WORD.keys()):
        return _KIND_BY_WORD[word]
    return "bad_response"


def _hint(kind: ErrorKind, source: Source, delay: float | None = None) -> str:
    wait = f"{delay:.0f} s" if delay else "a little"
    return _HINTS.get(kind, _HINT).format(url=source.url, wait=wait)


def _delay(kind: ErrorKind, headers: Mapping[str, str], message: str, now: float) -> float | None:
    if kind not in {"rate_limit", "unreachable", "stalled"}:
        return None
    seconds = _milliseconds(headers.get("retry-after-ms", ""))
    if seconds is None:
        seconds = _retry_after(headers.get("retry-after", ""), now)
    if seconds is None and (match := re.search(_TRY_AGAIN, message, re.IGNORECASE)):
        spans = re.findall(_SPAN, match[1], re.IGNORECASE)
        seconds = sum(float(number) * _SECONDS[unit.lower()] for number, unit in spans)
    return seconds or 0.0


def _milliseconds(text: str) -> float | None:
    seconds = _number(text)
    return None if seconds is None else seconds / 1000


def _retry_after(text: str, now: float) -> float | None:
    seconds = _number(text)
    if seconds is not None or not text:
        return seconds
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 (only a date needs it)

    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, OverflowError):
        return None


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
