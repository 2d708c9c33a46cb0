"""The API of OpenAI and of compatible servers: Chat Completions, images, speech, transcription."""

from keryx.models.openai.endpoint import OpenAIEndpoint
from keryx.models.openai.model import OpenAIModel

__all__ = ["OpenAIEndpoint", "OpenAIModel"]
