"""The public test kit: fixtures that find left-overs, tools that hang, contract suites, a model."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keryx.testing.replays import check_replay, replayed

__all__ = ["check_replay", "replayed"]


def __getattr__(name: str) -> Any:
    """Load the replays when they are first used: they need the whole library."""
    if name in __all__:
        return getattr(importlib.import_module("keryx.testing.replays"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
