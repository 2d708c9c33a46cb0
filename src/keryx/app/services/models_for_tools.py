"""Finds models for the tools of one session: by purpose, or by name."""

from __future__ import annotations

from keryx.app.models import Models
from keryx.engine.log.state import Settings
from keryx.events import Purpose
from keryx.messages import Image
from keryx.ports.model import Model
from keryx.ports.model_access import Endpoint
from keryx.ports.store import blob_hash


class ModelsForTools:
    """The models that the calls of one session may ask."""

    def __init__(self, models: Models, settings: Settings) -> None:
        self._models = models
        self._settings = settings

    def find(self, purpose: Purpose, name: str | None = None) -> Model:
        return self._models.for_purpose(purpose, self._settings, name)

    def endpoint(self, purpose: Purpose) -> Endpoint:
        return self._models.endpoint(purpose, self._settings.profile)

    def is_configured(self, purpose: Purpose) -> bool:
        return self._models.has_auxiliary(purpose, self._settings.profile)

    def add_image(self, data: bytes, media_type: str, name: str = "") -> Image:
        hash_ = blob_hash(data)
        self._models.images.keep(hash_, data)
        return Image(hash_, media_type, name)
