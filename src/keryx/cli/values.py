"""What the words of a command line may be: turned into a value, or refused with a reason."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Final

from keryx.app.places import find_workspace
from keryx.errors import UserMustActError

LAST_PORT: Final = 65_535
MOST_ROWS: Final = 1_000_000
LONGEST_WAIT: Final = 31_536_000.0
"""A year, in seconds."""


def port(word: str) -> int:
    """Where a server listens; 0 means any that is free."""
    return _whole(word, 0, LAST_PORT, "a port")


def rows(word: str) -> int:
    """How many rows are printed at most."""
    return _whole(word, 1, MOST_ROWS, "how many there are")


def seconds(word: str) -> float:
    """A time to wait."""
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not 0 < value <= LONGEST_WAIT:
        raise argparse.ArgumentTypeError(
            f"{word!r} is no time; write seconds, more than 0 and at most {LONGEST_WAIT:,.0f}"
        )
    return value


def folder(word: str) -> Path:
    """A folder that is there."""
    try:
        return find_workspace(word)
    except UserMustActError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _whole(word: str, least: int, most: int, what: str) -> int:
    # More digits than that are no number that anybody means, and slow to read.
    number = int(word) if word.isdecimal() and len(word) <= len(str(most)) else -1
    if not least <= number <= most:
        raise argparse.ArgumentTypeError(
            f"{word[:40]!r} is not {what}: write a number from {least} to {most}"
        )
    return number
