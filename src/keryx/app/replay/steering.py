"""Lets messages join a replayed turn at the same place as in the recorded one."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing

from keryx.app.replay.recording import JoinedMessage
from keryx.messages import Message
from keryx.ports.model import CallPiece, Finished, Model, ModelRequest, Piece

Steer = Callable[[JoinedMessage], Awaitable[object]]


class SteeredModel:
    """A model, and the messages that are sent while it replies.

    A message joins after the reply with its number. If a reply would end the turn before that, the
    next messages join then: each of them is part of the turn.
    """

    def __init__(self, model: Model, messages: Sequence[JoinedMessage]) -> None:
        self._model = model
        self._messages = deque(messages)
        self._replies = 0
        self.steer: Steer | None = None
        """Sends a message to the session. Set before the turn begins."""

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def window(self) -> int | None:
        return self._model.window

    @property
    def sees_images(self) -> bool:
        return self._model.sees_images

    def encode(self, message: Message) -> bytes:
        return self._model.encode(message)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        self._replies += 1
        has_calls = False
        async with aclosing(self._model.stream(request)) as pieces:
            async for piece in pieces:
                has_calls = has_calls or isinstance(piece, CallPiece)
                if isinstance(piece, Finished):
                    await self._send_due(is_last=not has_calls)
                yield piece

    async def _send_due(self, *, is_last: bool) -> None:
        assert self.steer is not None, "the turn has begun"
        place = self._replies
        if is_last and self._messages:
            place = max(place, self._messages[0].after)
        while self._messages and self._messages[0].after <= place:
            await self.steer(self._messages.popleft())
