"""The composition root: the only package that creates concrete classes and connects them."""

from keryx.app.handles import SessionHandle, TurnHandle, TurnResult
from keryx.app.library import Keryx
from keryx.app.runtime import Runtime

__all__ = ["Keryx", "Runtime", "SessionHandle", "TurnHandle", "TurnResult"]
