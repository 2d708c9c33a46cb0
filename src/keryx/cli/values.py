"""Converts words of the command line to values, or refuses them with a reason."""

from __future__ import annotations

import argparse
import math
import sys
from datetime import date
from pathlib import Path
from typing import Final

from keryx.cli.main import USAGE
from keryx.errors import UserMustActError

LAST_PORT: Final = 65_535
MOST_ROWS: Final = 1_000_000
MOST_TOKENS: Final = 10**15
MOST_DOLLARS: Final = 1e9
LONGEST_WAIT: Final = 31_536_000.0
"""A year, in seconds."""
FIRST_DAY: Final = date(1970, 1, 2)
LAST_DAY: Final = date(9000, 1, 1)
LOWEST_SPEED: Final = 0.01
HIGHEST_SPEED: Final = 1_000_000.0


def port(word: str) -> int:
    """Return a port number; 0 means any free port."""
    return _whole(word, 0, LAST_PORT, "a port")


def rows(word: str) -> int:
    """Return how many rows are printed at most."""
    return _whole(word, 1, MOST_ROWS, "a number of rows")


def tokens(word: str) -> int:
    """Return a number of tokens."""
    return _whole(word, 0, MOST_TOKENS, "a number of tokens")


def dollars(word: str) -> float:
    """Return an amount of money in US dollars."""
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not 0 <= value <= MOST_DOLLARS:
        raise argparse.ArgumentTypeError(
            f"{word[:40]!r} is not an amount of money; write US dollars, such as 2.50"
        )
    return value


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


def day(word: str) -> date:
    """Return a day, written as YYYY-MM-DD."""
    try:
        value = date.fromisoformat(word)
    except ValueError:
        value = None
    if value is None or not FIRST_DAY <= value <= LAST_DAY:
        raise argparse.ArgumentTypeError(
            f"{word[:40]!r} is not a day; write it as YYYY-MM-DD, such as 2026-11-30"
        )
    return value


def speed(word: str) -> float:
    """Return how many times as fast as it happened; infinity for `max`."""
    try:
        value = math.inf if word == "max" else float(word)
    except ValueError:
        value = math.nan
    if not (word == "max" or LOWEST_SPEED <= value <= HIGHEST_SPEED):
        raise argparse.ArgumentTypeError(
            f"{word[:40]!r} is not a speed; write a number from {LOWEST_SPEED} to "
            f"{HIGHEST_SPEED:,.0f}, or max"
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


def usable_folder(word: str) -> Path:
    """Return an existing folder that no flag names; exit code 2, with the reason, if there is none.

    Call it before the home is opened, so that nothing was done.
    """
    try:
        return folder(word)
    except argparse.ArgumentTypeError as error:
        print(f"keryx: {error}", file=sys.stderr)
        sys.exit(USAGE)


def read_password(file: str) -> str:
    """Return the password in this file, without the line break at its end."""
    try:
        return Path(file).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise UserMustActError(
            f"the password file cannot be read: {error}; name another with --password-file"
        ) from error


def _whole(word: str, least: int, most: int, what: str) -> int:
    # Longer numbers are out of range anyway, and slow to convert.
    number = int(word) if word.isdecimal() and len(word) <= len(str(most)) else -1
    if not least <= number <= most:
        raise argparse.ArgumentTypeError(
            f"{word[:40]!r} is not {what}: write a number from {least} to {most}"
        )
    return number
