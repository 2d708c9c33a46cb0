"""Who may talk to the gateway, how much, and whose memories they reach: their own.

The allow-list, paired people, daily budgets, and the owner of the home. Nobody else gets anything,
not even an error. Blocking code, except `Access`.
"""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
from collections.abc import Collection
from functools import partial
from typing import Final
from urllib.parse import quote

import msgspec

from keryx.aio.clock import Clock
from keryx.ports.platform import Address, Person
from keryx.sqlite_file import SqliteFile

CODE_LIFETIME: Final = 600.0
"""Seconds in which a pairing code can be used."""
# A code has 40 bits: this many attempts leave a guesser one chance in a hundred million. With fewer
# any stranger could make the codes of others useless.
MOST_ATTEMPTS: Final = 10_000
_ALPHABET: Final = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"
_LENGTH: Final = 8
DAY: Final = 24 * 3600.0


class PairedPerson(msgspec.Struct, frozen=True):
    """A person who used a code."""

    platform: str
    person: str
    name: str
    at: float


def make_code(connection: sqlite3.Connection, at: float) -> str:
    """Return a new pairing code, which works once."""
    connection.execute("DELETE FROM codes WHERE expires < ?", (at,))
    code = "".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))
    connection.execute("INSERT INTO codes VALUES (?, ?, 0)", (_digest(code), at + CODE_LIFETIME))
    return code


def pair(
    connection: sqlite3.Connection, platform: str, person: Person, code: str, at: float
) -> bool:
    """Let the person in if the code is right. A wrong one counts against all open codes."""
    code = code.upper()
    if len(code) != _LENGTH or not set(code) <= set(_ALPHABET):
        return False  # such as /start without a code, which every app sends first
    cursor = connection.execute(
        "DELETE FROM codes WHERE digest = ? AND expires >= ?", (_digest(code), at)
    )
    if not cursor.rowcount:
        connection.execute("UPDATE codes SET attempts = attempts + 1")
        connection.execute("DELETE FROM codes WHERE attempts >= ?", (MOST_ATTEMPTS,))
        return False
    connection.execute(
        "INSERT OR REPLACE INTO people VALUES (?, ?, ?, ?)",
        (platform, person.id, person.name, at),
    )
    return True


def paired(connection: sqlite3.Connection) -> list[PairedPerson]:
    rows = connection.execute("SELECT platform, person, name, at FROM people ORDER BY at")
    return [PairedPerson(*row) for row in rows]


def is_paired(connection: sqlite3.Connection, platform: str, person: str) -> bool:
    query = "SELECT 1 FROM people WHERE platform = ? AND person = ?"
    return connection.execute(query, (platform, person)).fetchone() is not None


def forget(connection: sqlite3.Connection, person: str) -> bool:
    """Let a paired person in no more. False: there is none."""
    return connection.execute("DELETE FROM people WHERE person = ?", (person,)).rowcount > 0


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """What each person may use in a day (UTC); None: no limit."""

    turns: int | None = None
    tokens: int | None = None


class Spending(msgspec.Struct, frozen=True):
    """What a person has used today."""

    turns: int = 0
    tokens: int = 0


def spend(
    connection: sqlite3.Connection, platform: str, person: str, used: Spending, at: float
) -> None:
    """Add to what the person has used today. Earlier days are forgotten."""
    day = int(at // DAY)
    connection.execute(
        "INSERT INTO spending VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE"
        " SET turns = turns + excluded.turns, tokens = tokens + excluded.tokens",
        (platform, person, day, used.turns, used.tokens),
    )
    connection.execute("DELETE FROM spending WHERE day < ?", (day,))


def spent(connection: sqlite3.Connection, platform: str, person: str, at: float) -> Spending:
    row = connection.execute(
        "SELECT turns, tokens FROM spending WHERE platform = ? AND person = ? AND day = ?",
        (platform, person, int(at // DAY)),
    ).fetchone()
    return Spending() if row is None else Spending(*row)


def _digest(code: str) -> bytes:
    return hashlib.sha256(f"keryx pairing {code}".encode(errors="replace")).digest()


UNLIMITED: Final = Budget()


def session_person(
    platform: str, owners: Collection[str], address: Address, person: Person, *, by_person: bool
) -> str | None:
    """Return for whom the session of a chat is; None: for the owner of the home.

    A session for a whole group is for the group: everybody in it reads the answers. That is so for
    the owner too, and for their session of a group with sessions `by_person`.
    """
    if not address.is_private and not by_person:
        return f"{platform}-chat:{quote(address.chat, safe=':@')}"
    if address.is_private and person.id in owners:
        return None
    return f"{platform}:{quote(person.id, safe=':@')}"


class Access:
    """Decides who may talk to one platform, whether they may start a turn now, and for whom."""

    def __init__(
        self,
        file: SqliteFile,
        clock: Clock,
        platform: str,
        allowed: Collection[str],
        budget: Budget = UNLIMITED,
        *,
        owners: Collection[str] = (),
    ) -> None:
        self._file = file
        self._clock = clock
        self._platform = platform
        self._allowed = frozenset(allowed)
        self._budget = budget
        self._owners = frozenset(owners)

    def session_person(self, address: Address, person: Person, *, by_person: bool) -> str | None:
        """Return for whom the session of a chat is; None: for the owner of the home."""
        return session_person(self._platform, self._owners, address, person, by_person=by_person)

    async def is_allowed(self, person: Person) -> bool:
        """Return whether the person is let in, as of now: another process may change it."""
        if person.id in self._allowed:
            return True
        return await self._file.read(
            lambda connection: is_paired(connection, self._platform, person.id)
        )

    async def refusal(self, person: Person) -> str | None:
        """Return why the person may start no turn today; None: they may."""
        if self._budget == UNLIMITED:
            return None
        spending = await self._file.read(
            partial(_spent, self._platform, person.id, self._clock.wall())
        )
        for used, limit, unit in (
            (spending.turns, self._budget.turns, "messages"),
            (spending.tokens, self._budget.tokens, "tokens"),
        ):
            if limit is not None and used >= limit:
                return (
                    f"You have used your {limit} {unit} of today, so I did not take this message. "
                    "Write again after midnight (UTC), or ask the owner of this bot for more."
                )
        return None

    async def pair(self, person: Person, code: str) -> bool:
        return await self._file.write(
            partial(_pair, self._platform, person, code, self._clock.wall())
        )


def _pair(
    platform: str, person: Person, code: str, at: float, connection: sqlite3.Connection
) -> bool:
    return pair(connection, platform, person, code, at)


def _spent(platform: str, person: str, at: float, connection: sqlite3.Connection) -> Spending:
    return spent(connection, platform, person, at)
