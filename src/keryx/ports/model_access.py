"""The interface through which tools find models: by purpose, or by name."""

from __future__ import annotations

from typing import Protocol

from keryx.events import Purpose
from keryx.messages import Image
from keryx.ports.model import Model


class ModelAccess(Protocol):
    """The models that the calls of one session may ask."""

    def find(self, purpose: Purpose, name: str | None = None) -> Model:
        """Return the named model, or the one for this purpose.

        By default that is the session's own model. `ModelError` says what is not configured.
        """
        ...

    def is_configured(self, purpose: Purpose) -> bool:
        """Return whether a model of its own is configured for this purpose."""
        ...

    def add_image(self, data: bytes, media_type: str, name: str = "") -> Image:
        """Make an image available to the models; return the part to put into a message."""
        ...
