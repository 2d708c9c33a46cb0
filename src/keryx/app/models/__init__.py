"""The models of a host: which there are, how each is created, and what the servers offer."""

from keryx.app.models.creation import TOUR
from keryx.app.models.registry import LOCAL, NOT_CHAT, Models

__all__ = ["LOCAL", "NOT_CHAT", "TOUR", "Models"]
