"""The interface through which tools find models: by purpose, or by name."""

from __future__ import annotations

from typing import Protocol

import msgspec

from keryx.events import Purpose, Usage
from keryx.messages import Image
from keryx.ports.model import Model


class EndpointAnswer(msgspec.Struct, frozen=True):
    """What a server answered to a request that succeeded."""

    content_type: str
    """Without parameters, in lower case; empty if the server named none."""
    body: bytes


class Endpoint(Protocol):
    """A model that is not asked in messages: it makes images or speech, or it transcribes."""

    @property
    def name(self) -> str:
        """The name as people write it: `provider:name`."""
        ...

    @property
    def model(self) -> str:
        """The name as the server knows it, for the body of a request."""
        ...

    @property
    def address(self) -> str:
        """The address of the server, in a form that may be shown."""
        ...

    @property
    def host(self) -> str:
        """The host and the port of the server, as `host:port`."""
        ...

    async def post(
        self, function: str, body: bytes, *, content_type: str, limit: int
    ) -> EndpointAnswer:
        """Ask a function of the API (`images/generations`); temporary failures are retried.

        `ModelError` says why there is no answer, or that it is larger than `limit` bytes.
        """
        ...


class CallEndpoint(Protocol):
    """An endpoint for the use of one call."""

    @property
    def name(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def address(self) -> str: ...

    @property
    def host(self) -> str: ...

    async def post(
        self, function: str, body: bytes, *, content_type: str, limit: int
    ) -> EndpointAnswer:
        """Ask the server. `ToolFailedError` says why there is no answer, and what to do."""
        ...

    def log_usage(self, usage: Usage) -> None:
        """Log under this call what the server said that the request used."""
        ...


class ModelAccess(Protocol):
    """The models that the calls of one session may ask."""

    def find(self, purpose: Purpose, name: str | None = None) -> Model:
        """Return the named model, or the one for this purpose.

        By default that is the session's own model. `ModelError` says what is not configured.
        """
        ...

    def endpoint(self, purpose: Purpose) -> Endpoint:
        """Return the model for this purpose, to be asked in another way than by messages.

        There is no default. `ModelError` says what is not configured.
        """
        ...

    def is_configured(self, purpose: Purpose) -> bool:
        """Return whether a model of its own is configured for this purpose."""
        ...

    def add_image(self, data: bytes, media_type: str, name: str = "") -> Image:
        """Make an image available to the models; return the part to put into a message."""
        ...
