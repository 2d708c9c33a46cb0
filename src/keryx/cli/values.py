"""Converts words of the command line to values, or refuses them with a reason."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Final

from keryx.errors import UserMustActError

LAST_PORT: Final = 65_535
MOST_ROWS: Final = 1_000_000
LONGEST_WAIT: Final = 31_536_000.0
"""A year, in seconds."""


def port(word: str) -> int:
    """Return a port number; 0 means any free port."""
    return _whole(word, 0, LAST_PORT, "a port")


def rows(word: str) -> int:
    """Return how many rows are printed at most."""
    return _whole(word, 1, MOST_ROWS, "a number of rows")


def place(word: str) -> int:
    """Return the number of a delivery."""
    return _whole(word, 1, MOST_ROWS**2, "the number of a delivery")


def seconds(word: str) -> float:
    """Return a duration in seconds."""
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not 0 < value <= LONGEST_WAIT:
        raise argparse.ArgumentTypeError(
            f"{word!r} is not a time; write seconds, more than 0 and at most {LONGEST_WAIT:,.0f}"
        )
    return value


def folder(word: str) -> Path:
    """Return an existing folder."""
    # It loads the whole library, and most commands are used without it.
    from keryx.app.services.places import find_workspace  # noqa: PLC0415

    try:
        return find_workspace(word)
    except UserMustActError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _whole(word: str, least: int, most: int, what: str) -> int:
    # Longer numbers are out of range anyway, and slow to convert.
    number = int(word) if word.isdecimal() and len(word) <= len(str(most)) else -1
    if not least <= number <= most:
        raise argparse.ArgumentTypeError(
            f"{word[:40]!r} is not {what}: write a number from {least} to {most}"
        )
    return number
