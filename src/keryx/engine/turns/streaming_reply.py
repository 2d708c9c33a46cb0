"""A streaming reply: it collects the pieces and shows them as they arrive."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

import msgspec

from keryx import events as ev
from keryx.engine.session_context import EVENT_WEIGHT, SessionContext
from keryx.errors import ModelError
from keryx.messages import Opaque, ToolCall, well_formed
from keryx.ports.model import (
    CallPiece,
    Finished,
    Model,
    ModelRequest,
    OpaquePiece,
    Piece,
    ReasoningPiece,
    Retrying,
    Switching,
    TextPiece,
    defect,
    unfinished,
)

CUT: Final = "{"
"""Arguments of which nothing has arrived. They are no JSON, so the call is refused."""


class StreamingReply:
    """Collects the pieces of one step's reply and shows each as it arrives."""

    def __init__(self, context: SessionContext, turn_id: str, step_id: str) -> None:
        self._context = context
        # Looked up once: every token takes this path.
        self._publish = context.hub.publish
        self._wall = context.services.clock.wall
        self._session_id = context.fold.session_id
        self._turn_id = turn_id
        self.step_id = step_id
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: dict[int, list[str]] = {}
        self._opaque: list[Opaque] = []
        self.finished: Finished | None = None
        self._monotonic = context.services.clock.monotonic
        self._sent_at: float | None = None
        self.first_token: float | None = None
        """Seconds from the request until the first piece of the reply."""

    @property
    def was_sent(self) -> bool:
        """Whether the request was sent: from then on it may cost something."""
        return self._sent_at is not None

    @property
    def has_begun(self) -> bool:
        """Whether any piece of the reply has arrived."""
        return bool(self._text or self._reasoning or self._calls)

    @property
    def text(self) -> str:
        return "".join(self._text)

    @property
    def reasoning(self) -> str:
        return "".join(self._reasoning)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls, with our own ids: those of a provider may repeat."""
        is_cut = self.finished is not None and self.finished.stop_reason == "length"
        last = max(self._calls, default=None)
        return tuple(
            ToolCall(
                self._call_id(index),
                tool,
                # A reply that ended at its limit may have lost all arguments of its last call.
                "".join(pieces) or (CUT if is_cut and index == last else "{}"),
            )
            for index, (tool, *pieces) in sorted(self._calls.items())
        )

    @property
    def opaque(self) -> tuple[Opaque, ...]:
        """What only the provider understands, in the order of the reply."""
        return tuple(self._opaque)

    def snapshot(self) -> ev.StepSnapshot:
        """Return the step so far, for a reader that connects late."""
        return ev.StepSnapshot(
            session_id=self._context.fold.session_id,
            at=self._context.services.clock.wall(),
            after=self._context.hub.last,
            turn_id=self._turn_id,
            step_id=self.step_id,
            text=self.text,
            reasoning=self.reasoning,
            calls=self.calls,
        )

    async def take(
        self, stream: AsyncIterator[Piece], ready: Callable[[], Awaitable[None]]
    ) -> None:
        """Read the stream to its end; nothing of it is shown before `ready` returns."""
        self._sent_at = self._monotonic()
        async for piece in stream:
            seconds = self._monotonic() - self._sent_at
            await ready()
            self._add(piece)
            if self.has_begun:
                self.first_token = seconds
                break
        async for piece in stream:
            self._add(piece)

    def _add(self, piece: Piece) -> None:
        match piece:
            case TextPiece():
                text = well_formed(piece.text)
                self._text.append(text)
                self._publish(
                    ev.TextDelta(
                        session_id=self._session_id,
                        at=self._wall(),
                        step_id=self.step_id,
                        text=text,
                    ),
                    weight=EVENT_WEIGHT + len(text),
                )
            case ReasoningPiece():
                text = well_formed(piece.text)
                self._reasoning.append(text)
                self._context.show(ev.ReasoningDelta, step_id=self.step_id, text=text)
            case CallPiece():
                self._add_call(piece)
            case OpaquePiece():
                self._add_opaque(piece)
            case Finished():
                self.finished = piece
            case Retrying():
                self._restart(
                    ev.ModelRetried, cause=piece.cause, message=piece.message, delay=piece.delay
                )
            case Switching():
                self._restart(ev.ModelSwitched, cause=piece.cause, from_=piece.from_, to=piece.to)

    def _add_call(self, piece: CallPiece) -> None:
        tool, arguments = well_formed(piece.tool), well_formed(piece.arguments)
        call = self._calls.setdefault(piece.index, [tool])
        if tool:
            call[0] = tool
        if arguments:
            call.append(arguments)
        self._context.show(
            ev.ArgumentsDelta,
            step_id=self.step_id,
            call_id=self._call_id(piece.index),
            tool=call[0],
            text=arguments,
        )

    def _add_opaque(self, piece: OpaquePiece) -> None:
        # The log holds the item as it is: JSON that is not valid would make the log unreadable.
        msgspec.json.decode(piece.item)
        self._opaque.append(
            Opaque(
                provider=well_formed(piece.provider),
                item=msgspec.Raw(piece.item),
                after_text=sum(map(len, self._text)),
                after_calls=len(self._calls),
            )
        )

    def _restart(self, kind: type[ev.ModelRetried | ev.ModelSwitched], **fields: object) -> None:
        """Log a retry or a switch of the model, after which the reply starts anew."""
        self._context.log.record(kind, turn_id=self._turn_id, step_id=self.step_id, **fields)
        self._text.clear()
        self._reasoning.clear()
        self._calls.clear()
        self._opaque.clear()
        self.finished = None
        self._context.show(ev.StepReset, step_id=self.step_id)

    def _call_id(self, index: int) -> str:
        return f"{self.step_id}.{index}"


async def read(
    reply: StreamingReply,
    model: Model,
    request: ModelRequest,
    durable: Callable[[], Awaitable[None]],
) -> ModelError | None:
    """Read the reply. An error is returned, so that the turn can handle it.

    Nothing of the reply is shown before the messages that it answers are durable.
    """
    try:
        await reply.take(model.stream(request), durable)
    except ModelError as error:
        return error
    except Exception as error:  # noqa: BLE001 (an adapter's defect ends the turn, not the session)
        return defect(error)
    return None if reply.finished is not None else unfinished(model.name)
