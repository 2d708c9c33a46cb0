"""Times as people read them."""

from __future__ import annotations

import math
from datetime import UTC

import pytest

from keryx.dates import time_text


def test_a_time_is_shown_in_the_zone() -> None:
    assert time_text(1_767_225_600.0, UTC) == "2026-01-01 00:00"


@pytest.mark.parametrize("at", [1e15, -1e15, 4e11, math.inf, math.nan])
def test_a_time_that_no_calendar_has_is_no_error(at: float) -> None:
    assert time_text(at) == "at an unknown time"
