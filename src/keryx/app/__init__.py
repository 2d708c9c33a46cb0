"""The composition root: the one place that names concrete classes and introduces them."""

from keryx.app.handles import SessionHandle, TurnHandle, TurnResult
from keryx.app.library import Keryx
from keryx.app.runtime import Runtime

__all__ = ["Keryx", "Runtime", "SessionHandle", "TurnHandle", "TurnResult"]
