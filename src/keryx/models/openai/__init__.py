"""Chat Completions, the API of OpenAI and of compatible servers."""

from keryx.models.openai.model import OpenAIModel

__all__ = ["OpenAIModel"]
