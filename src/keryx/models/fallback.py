"""A model that switches to the next model when one fails.

It owns the order, and which models rest after a failure. It refuses to know how each model encodes:
`encode` returns the bytes of the first model together with the message, so that another model can
encode the message later.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Sequence
from typing import Final, Self

import msgspec

from keryx.aio.clock import Clock, RealClock
from keryx.errors import ModelError
from keryx.messages import Message
from keryx.ports.model import Finished, Model, ModelRequest, Piece, Switching, unfinished

# A failed model is not used for so long; else every step of a turn would wait for it again.
REST_SECONDS: Final = 60.0

_OTHERS_MAY_SUCCEED: Final = frozenset(
    {
        "rate_limit",
        "auth",
        "quota",
        "model_not_found",
        "not_configured",
        "unreachable",
        "stalled",
        "bad_response",
    }
)


class _Encoded(bytes):
    """A message as encoded by the first model, and by other models that were used."""

    message: Message
    others: dict[int, bytes]

    @classmethod
    def of(cls, message: Message, encoded: bytes) -> Self:
        self = cls(encoded)
        self.message = message
        self.others = {}
        return self


class _Failure(msgspec.Struct, frozen=True):
    error: ModelError
    rests_until: float


class Fallback:
    """Uses the first of `models` that does not rest, then the models after it."""

    def __init__(
        self, models: Sequence[Model], *, rest: float = REST_SECONDS, clock: Clock | None = None
    ) -> None:
        if not models:
            raise ValueError("a Fallback needs at least one model")
        self._models = tuple(models)
        self._rest_seconds = rest
        self._clock = clock or RealClock()
        self._failures: dict[int, _Failure] = {}

    def __repr__(self) -> str:
        return f"Fallback({list(self._models)!r})"

    @property
    def name(self) -> str:
        return self._models[0].name

    @property
    def window(self) -> int | None:
        return self._models[0].window

    @property
    def sees_images(self) -> bool:
        return self._models[0].sees_images

    def encode(self, message: Message) -> bytes:
        return _Encoded.of(message, self._models[0].encode(message))

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        failed: list[tuple[Model, ModelError]] = []
        for index, rest_reason in self._order():
            model = self._models[index]
            if rest_reason is not None:
                # It did not fail now, but the reader should see why another model answers.
                failed.append((model, rest_reason))
                continue
            if failed:
                if not _may_help(model, failed[-1]):
                    continue
                last, error = failed[-1]
                yield Switching(last.name, model.name, error.kind, error.message)
            is_complete = False
            try:
                pieces = model.stream(self._request_for(index, request))
                async with contextlib.aclosing(pieces):
                    async for piece in pieces:
                        is_complete = type(piece) is Finished
                        yield piece
                if not is_complete:
                    raise unfinished(model.name)
            except ModelError as error:
                self._remember_failure(index, error)
                failed.append((model, error))
                if error.kind not in _OTHERS_MAY_SUCCEED and error.kind != "context_too_long":
                    break
            else:
                self._failures.pop(index, None)
                return
        raise _exhausted(failed)

    def _order(self) -> list[tuple[int, ModelError | None]]:
        """Return every model with the reason why it rests. If all would rest, none does."""
        now = self._clock.monotonic()
        order: list[tuple[int, ModelError | None]] = []
        for index in range(len(self._models)):
            failure = self._failures.get(index)
            rests = failure is not None and failure.rests_until > now
            order.append((index, failure.error if failure is not None and rests else None))
        if all(rest_reason is not None for _, rest_reason in order):
            return [(index, None) for index, _ in order]
        return order

    def _remember_failure(self, index: int, error: ModelError) -> None:
        # A request that is too long or odd for the model is a problem of one session only.
        if error.kind in _OTHERS_MAY_SUCCEED and error.kind != "bad_response":
            rest_seconds = max(self._rest_seconds, error.retry_after or 0.0)
            self._failures[index] = _Failure(error, self._clock.monotonic() + rest_seconds)

    def _request_for(self, index: int, request: ModelRequest) -> ModelRequest:
        """Return the request with the history encoded for that model."""
        if index == 0:
            return request
        history = [self._encoded_for(index, encoded) for encoded in request.history]
        return msgspec.structs.replace(request, history=history)

    def _encoded_for(self, index: int, encoded: bytes) -> bytes:
        if not isinstance(encoded, _Encoded):
            raise TypeError("a history holds what `encode` of the same model gave, unchanged")
        other_bytes = encoded.others.get(index)
        if other_bytes is None:
            other_bytes = encoded.others[index] = self._models[index].encode(encoded.message)
        return other_bytes


def _may_help(model: Model, failed: tuple[Model, ModelError]) -> bool:
    """Return whether `model` may succeed after the failure of another."""
    failed_model, error = failed
    if error.kind != "context_too_long":
        return True
    return (
        failed_model.window is not None
        and model.window is not None
        and model.window > failed_model.window
    )


def _exhausted(failed: list[tuple[Model, ModelError]]) -> ModelError:
    _, last = failed[-1]
    if len(failed) == 1:
        return last
    earlier = "; ".join(f"{model.name}: {error.message}" for model, error in failed[:-1])
    return ModelError(
        last.kind,
        f"{last.message} (no fallback is left; these failed before: {earlier})",
        last.hint,
        retry_after=last.retry_after,
    )
