"""Times as people read them, also those that no calendar has: a log may come from anywhere."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo


def time_text(at: float, zone: tzinfo | None = None) -> str:
    """Return the date and the time of day in a zone; None: in that of this machine."""
    try:
        return f"{datetime.fromtimestamp(at, UTC).astimezone(zone):%Y-%m-%d %H:%M}"
    except (OverflowError, ValueError, OSError):
        return "at an unknown time"
