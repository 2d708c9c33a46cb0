"""Asks a model for a text, outside of turns, and records the usage."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from keryx import events as ev
from keryx.engine.log.log_writer import LogWriter
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


async def ask_for_text(
    model: Model,
    request: ModelRequest,
    *,
    timeout: float,  # noqa: ASYNC109 (it becomes a `ModelError`)
) -> tuple[str, Finished]:
    """Return the reply of the model. `ModelError` if it fails, or after so many seconds."""
    texts: list[str] = []
    finished: Finished | None = None
    try:
        async with asyncio.timeout(timeout), aclosing(model.stream(request)) as pieces:
            async for piece in pieces:
                match piece:
                    case TextPiece():
                        texts.append(piece.text)
                    case Retrying() | Switching():
                        texts.clear()
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
            f"{model.name} had not finished after {timeout:.0f} s",
            "try again, or choose another model",
        ) from error
    except Exception as error:
        raise defect(error) from error
    if finished is None:
        raise unfinished(model.name)
    return "".join(texts), finished


def record_usage(
    log: LogWriter,
    purpose: ev.Purpose,
    model: Model,
    finished: Finished,
) -> None:
    """Log the usage of a request that belongs to no step."""
    log.record(
        ev.UsageRecorded,
        purpose=purpose,
        model=finished.model or model.name,
        usage=finished.usage,
        cost=finished.cost,
    )
