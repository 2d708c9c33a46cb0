"""The tour runs on a whole host."""

from __future__ import annotations

from tests.engine.conftest import host

__all__ = ["host"]
