"""Chat Completions, as OpenAI and everyone who is compatible with it serve them."""

from keryx.models.openai.model import OpenAIModel

__all__ = ["OpenAIModel"]
