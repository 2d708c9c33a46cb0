"""The library for programs without an event loop: the same names, blocking, from any thread."""

from keryx.sync.library import Keryx
from keryx.sync.logs import Logs
from keryx.sync.memories import Memories
from keryx.sync.sessions import Session, Turn

__all__ = ["Keryx", "Logs", "Memories", "Session", "Turn"]
