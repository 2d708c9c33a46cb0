"""The models of a host: which there are, how each is created, and what the servers offer."""

from keryx.app.models.creation import TOUR
from keryx.app.models.registry import NOT_CHAT, Models

__all__ = ["NOT_CHAT", "TOUR", "Models"]
