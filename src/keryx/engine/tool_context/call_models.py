"""Asks a model for one call, and logs the usage under the call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from keryx.engine.calls.call import Call
from keryx.engine.side_request import ask_for_text
from keryx.errors import DeveloperMustActError, ModelError, ToolFailedError
from keryx.events import Purpose
from keryx.messages import Text, UserMessage
from keryx.ports.model import ModelRequest

TIMEOUT: Final = 600.0
"""Seconds for one request. A tool that needs an earlier end declares a timeout of its own."""


async def ask_model(
    call: Call,
    purpose: Purpose,
    text: str,
    *,
    system: str,
    images: Sequence[tuple[bytes, str]],
    model: str | None,
    max_tokens: int | None,
) -> str:
    """Return the reply; `ToolFailedError` says what to do if there is none."""
    models = call.environment.models
    if models is None:
        raise DeveloperMustActError("this session has no models for tools; open it with them")
    try:
        chosen = models.find(purpose, model)
        if images and not chosen.sees_images:
            raise ToolFailedError(
                f"{chosen.name} cannot see images; "
                "configure a model that can as models.auxiliary.vision"
            )
        parts = [models.add_image(data, media_type) for data, media_type in images]
        message = UserMessage(content=(Text(text), *parts))
        request = ModelRequest(
            system=system, history=(chosen.encode(message),), max_tokens=max_tokens
        )
        await call.environment.check_budget()
        reply, finished = await ask_for_text(chosen, request, timeout=TIMEOUT)
    except ModelError as error:
        raise ToolFailedError(str(error)) from error  # it has the hint
    name = finished.model or chosen.name
    call.environment.log_usage(call.call_id, purpose, name, finished.usage, finished.cost)
    return reply
