"""A model that makes or reads media, for the use of one call."""

from __future__ import annotations

import asyncio
from typing import Final

from keryx.engine.calls.call import Call
from keryx.engine.tool_context.call_models import TIMEOUT
from keryx.errors import DeveloperMustActError, ModelError, ToolFailedError
from keryx.events import Purpose, Usage
from keryx.ports.model_access import Endpoint, EndpointAnswer


class CallEndpoint:
    """An endpoint that raises once the call is over, and logs usage under the call."""

    __slots__ = ("_call", "_endpoint", "_purpose", "address", "host", "model", "name")

    def __init__(self, call: Call, purpose: Purpose, endpoint: Endpoint) -> None:
        self._call = call
        self._purpose: Purpose = purpose
        self._endpoint = endpoint
        self.name: Final = endpoint.name
        self.model: Final = endpoint.model
        self.address: Final = endpoint.address
        self.host: Final = endpoint.host

    async def post(
        self, function: str, body: bytes, *, content_type: str, limit: int
    ) -> EndpointAnswer:
        self._call.refuse_if_cancelled()
        try:
            async with asyncio.timeout(TIMEOUT):
                await self._call.environment.check_budget()
                return await self._endpoint.post(
                    function, body, content_type=content_type, limit=limit
                )
        except ModelError as error:
            raise ToolFailedError(str(error)) from error  # it has the hint
        except TimeoutError as error:
            raise ToolFailedError(
                f"{self.name} had not finished after {TIMEOUT:.0f} s; try again, or ask for less"
            ) from error

    def log_usage(self, usage: Usage) -> None:
        self._call.refuse_if_over()
        # No cost: public prices are per token of text, and these are tokens of images and sound.
        environment = self._call.environment
        environment.log_usage(self._call.call_id, self._purpose, self.name, usage, None)


def call_endpoint(call: Call, purpose: Purpose) -> CallEndpoint:
    """Return the endpoint for this purpose; `ToolFailedError` says what to configure."""
    models = call.environment.models
    if models is None:
        raise DeveloperMustActError("this session has no models for tools; open it with them")
    try:
        return CallEndpoint(call, purpose, models.endpoint(purpose))
    except ModelError as error:
        raise ToolFailedError(str(error)) from error  # it has the hint
