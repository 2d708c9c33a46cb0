"""The adapter for each wire format. Each is imported when the first model of it is created."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from keryx.models.wire.streaming import StreamingModel

_ADAPTERS: Final = {
    "chat": ("keryx.models.openai", "OpenAIModel"),
    "responses": ("keryx.models.responses", "ResponsesModel"),
    "anthropic": ("keryx.models.anthropic", "AnthropicModel"),
    "gemini": ("keryx.models.gemini", "GeminiModel"),
}


def adapter(name: str) -> type[StreamingModel]:
    """Return the adapter for a wire format."""
    module, class_ = _ADAPTERS[name]
    model: type[StreamingModel] = getattr(importlib.import_module(module), class_)
    return model
