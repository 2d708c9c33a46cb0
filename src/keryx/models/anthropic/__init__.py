"""The Messages API of Anthropic and of compatible servers."""

from keryx.models.anthropic.model import AnthropicModel

__all__ = ["AnthropicModel"]
