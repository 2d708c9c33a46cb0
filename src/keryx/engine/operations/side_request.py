"""A model asked for words alone, beside the turns: what it said, and what that took."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from keryx import events as ev
from keryx.engine.session_context import SessionContext
from keryx.errors import ModelError
from keryx.ports.model import (
    Finished,
    Model,
    ModelRequest,
    Retrying,
    Switching,
    TextPiece,
    defect,
    unfinished,
)


async def words_of(model: Model, request: ModelRequest, *, within: float) -> tuple[str, Finished]:
    """Its reply; `ModelError` if there is none, also if it takes more than so many seconds."""
    said: list[str] = []
    finished: Finished | None = None
    try:
        async with asyncio.timeout(within), aclosing(model.stream(request)) as pieces:
            async for piece in pieces:
                match piece:
                    case TextPiece():
                        said.append(piece.text)
                    case Retrying() | Switching():
                        said.clear()
                        finished = None
                    case Finished():
                        finished = piece
                    case _:
                        pass
    except ModelError:
        raise
    except TimeoutError as error:
        raise ModelError(
            "stalled",
            f"{model.name} had not finished after {within:.0f} s",
            "try again, or choose another model",
        ) from error
    except Exception as error:
        raise defect(error) from error
    if finished is None:
        raise unfinished(model.name)
    return "".join(said), finished


def record_usage(
    context: SessionContext, purpose: ev.Purpose, model: Model, finished: Finished
) -> None:
    """What was spent outside steps."""
    context.log.record(
        ev.UsageRecorded,
        purpose=purpose,
        model=finished.model or model.name,
        usage=finished.usage,
        cost=finished.cost,
    )
