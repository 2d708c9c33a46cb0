"""A model that hands over to others when it fails in a way that they may not.

It owns the order and who rests after a failure. It refuses to know how each model encodes: the
bytes that it gives out are the first model's, and remember their message, so that the others can
encode it when their turn comes.
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

# A model that failed is not asked first again for so long: the steps of one turn would each wait
# for it anew.
REST: Final = 60.0

_OTHERS_MAY_NOT: Final = frozenset(
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
    """A message as the first model takes it, and as others took it that had to."""

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
    """Asks the first of `models` that does not rest, then those after it."""

    def __init__(
        self, models: Sequence[Model], *, rest: float = REST, clock: Clock | None = None
    ) -> None:
        if not models:
            raise ValueError("a Fallback needs at least one model")
        self._models = tuple(models)
        self._rest = rest
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
        for index, resting in self._order():
            model = self._models[index]
            if resting is not None:
                # Not asked, so it did not fail now; but the reader learns why another answers.
                failed.append((model, resting))
                continue
            if failed:
                if not _may_help(model, failed[-1]):
                    continue
                last, error = failed[-1]
                yield Switching(last.name, model.name, error.kind, error.message)
            is_whole = False
            try:
                pieces = model.stream(self._for(index, request))
                async with contextlib.aclosing(pieces):
                    async for piece in pieces:
                        is_whole = type(piece) is Finished
                        yield piece
                if not is_whole:
                    raise unfinished(model.name)
            except ModelError as error:
                self._note(index, error)
                failed.append((model, error))
                if error.kind not in _OTHERS_MAY_NOT and error.kind != "context_too_long":
                    break
            else:
                self._failures.pop(index, None)
                return
        raise _exhausted(failed)

    def _order(self) -> list[tuple[int, ModelError | None]]:
        """Every model, with why it rests. If all would rest, none does."""
        now = self._clock.monotonic()
        order: list[tuple[int, ModelError | None]] = []
        for index in range(len(self._models)):
            failure = self._failures.get(index)
            rests = failure is not None and failure.rests_until > now
            order.append((index, failure.error if failure is not None and rests else None))
        if all(resting is not None for _, resting in order):
            return [(index, None) for index, _ in order]
        return order

    def _note(self, index: int, error: ModelError) -> None:
        # What one session asks may be too long or too odd for a model that serves all others.
        if error.kind in _OTHERS_MAY_NOT and error.kind != "bad_response":
            rest = max(self._rest, error.retry_after or 0.0)
            self._failures[index] = _Failure(error, self._clock.monotonic() + rest)

    def _for(self, index: int, request: ModelRequest) -> ModelRequest:
        """The request as that model takes it."""
        if index == 0:
            return request
        history = [self._encoded(index, encoded) for encoded in request.history]
        return msgspec.structs.replace(request, history=history)

    def _encoded(self, index: int, encoded: bytes) -> bytes:
        if not isinstance(encoded, _Encoded):
            raise TypeError("a history holds what `encode` of the same model gave, unchanged")
        found = encoded.others.get(index)
        if found is None:
            found = encoded.others[index] = self._models[index].encode(encoded.message)
        return found


def _may_help(model: Model, failed: tuple[Model, ModelError]) -> bool:
    """Whether it is worth asking `model` after the failure of another."""
    other, error = failed
    if error.kind != "context_too_long":
        return True
    return other.window is not None and model.window is not None and model.window > other.window


def _exhausted(failed: list[tuple[Model, ModelError]]) -> ModelError:
    _, last = failed[-1]
    if len(failed) == 1:
        return last
    before = "; ".join(f"{model.name}: {error.message}" for model, error in failed[:-1])
    return ModelError(
        last.kind,
        f"{last.message} (no fallback is left; before it failed {before})",
        last.hint,
        retry_after=last.retry_after,
    )
