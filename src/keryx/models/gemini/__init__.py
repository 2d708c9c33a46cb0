"""The `generateContent` API of Google's Gemini models."""

from keryx.models.gemini.model import GeminiModel

__all__ = ["GeminiModel"]
