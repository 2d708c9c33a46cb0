"""The Responses API of OpenAI and of compatible servers."""

from keryx.models.responses.model import ResponsesModel

__all__ = ["ResponsesModel"]
