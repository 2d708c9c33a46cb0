"""What a failed request means: nothing was stored, something may have been, or it was refused."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Final, TypeVar, cast

from keryx.ports.memory import ItemRefusedError, ProviderUnavailableError

T = TypeVar("T")

NOT_FOUND: Final = 404
_TOO_MANY: Final = 429
# The client says only "connection error"; its cause says whether the request left at all.
_NEVER_SENT: Final = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout"})
_MAY_WORK_LATER: Final = frozenset({408, 409, 425})
_LONGEST_REASON: Final = 300


class MaybeStoredError(ProviderUnavailableError):
    """There was no answer, or none that says it: what was sent may be stored, now or soon."""


class RequestRefusedError(Exception):
    """The server will not take this request. `positions` are the parts of a batch that it names."""

    def __init__(self, status: int, reason: str, positions: Sequence[int] = ()) -> None:
        super().__init__(f"Honcho refuses it ({status}): {reason}")
        self.status = status
        self.positions = positions

    def of_item(self, ids: Sequence[str]) -> ItemRefusedError | None:
        """Return the refusal of one item of a batch; None if the server does not say which."""
        places = [position for position in self.positions if position < len(ids)]
        if not places and len(set(ids)) == 1:
            places = [0]
        return ItemRefusedError(ids[places[0]], str(self)) if places else None


async def answer(request: Awaitable[T]) -> T:
    """Await a call of the client, and raise one of three errors if it fails."""
    try:
        return await request
    except Exception as error:
        # Whatever the client raises, also about an answer that it cannot read.
        raise _meaning(error) from error


def _meaning(error: Exception) -> Exception:
    status = getattr(error, "status", None)
    if not isinstance(status, int):
        return MaybeStoredError(
            f"Honcho answered something that its client cannot read ({type(error).__name__}); "
            "check that the url in [memory.honcho] is that of a Honcho server with the API v3"
        )
    if status == 0:
        return _no_answer(error)
    if status in (401, 403):
        return ProviderUnavailableError(
            f"Honcho refuses the key ({status}); set HONCHO_API_KEY to a key for this workspace, "
            "or api_key in [memory.honcho] of config.toml"
        )
    if status == _TOO_MANY:
        return ProviderUnavailableError(
            "Honcho asks for a pause (429)", retry_after=_seconds(error)
        )
    if status in _MAY_WORK_LATER or not 400 <= status < 500:  # noqa: PLR2004 (errors of clients)
        return MaybeStoredError(f"Honcho failed ({status})")
    body = getattr(error, "body", None)
    detail = cast("Mapping[str, Any]", body).get("detail") if isinstance(body, dict) else None
    reason = _reason(detail) or str(error)
    return RequestRefusedError(status, reason[:_LONGEST_REASON], _positions(detail))


def _no_answer(error: Exception) -> ProviderUnavailableError:
    cause = type(error.__cause__).__name__
    if cause in _NEVER_SENT:
        return ProviderUnavailableError(
            "Honcho cannot be reached; check the url in [memory.honcho] of config.toml"
        )
    return MaybeStoredError("Honcho did not answer in time, or closed the connection")


def _seconds(error: Exception) -> float | None:
    seconds = getattr(error, "retry_after", None)
    is_time = isinstance(seconds, int | float) and math.isfinite(seconds) and seconds >= 0
    return seconds if is_time else None


def _entries(detail: object) -> list[Mapping[str, Any]]:
    entries = cast("list[object]", detail) if isinstance(detail, list) else []
    return [cast("Mapping[str, Any]", entry) for entry in entries if isinstance(entry, dict)]


def _reason(detail: object) -> str:
    """Return what the server says, without the input that it repeats."""
    if isinstance(detail, str):
        return detail
    return "; ".join(str(entry.get("msg", "")) for entry in _entries(detail))


def _positions(detail: object) -> list[int]:
    """Return the places in the batch: `loc` is `["body", "messages", 3, "content"]`."""
    places = [entry.get("loc") for entry in _entries(detail)]
    return [
        number
        for place in places
        if isinstance(place, list)
        for number in cast("list[object]", place)[2:3]
        if isinstance(number, int)
    ]
