"""The table of deliveries: what each provider has still to store, in order. Blocking code.

An attempt is written down before it is made. So a delivery that was under way when its process was
killed has an attempt, and the provider looks first whether the item is there.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

import msgspec

from keryx.decoding import json_decoder
from keryx.memory import memories
from keryx.ports.memory import Delivery, Memory, MemoryItem, TurnMemory, Withdrawal

DeliveryState = Literal["waiting", "refused", "unknown", "done"]
"""refused: the provider will not take it. unknown: nobody knows if it did. People decide then."""

# An item that came again has a delivery with its id, a slash and the reason as its name.
_OF_ITEM: Final = "(item = ?1 OR (item > ?1 || '/' AND item < ?1 || '0'))"
_encode: Final = msgspec.json.encode
_decode: Final = json_decoder(MemoryItem).decode


class Pending(msgspec.Struct, frozen=True):
    """A delivery that is to be made."""

    place: int
    delivery: Delivery


class FailedDelivery(msgspec.Struct, frozen=True, kw_only=True):
    """A delivery that waits for a person's decision."""

    place: int
    provider: str
    item: MemoryItem
    state: DeliveryState
    attempts: int
    error: str
    since: float


class Breaker(msgspec.Struct, frozen=True):
    """How often a provider failed in a row, and when it is tried again."""

    failures: int = 0
    retry_at: float = 0.0
    error: str = ""


class Lag(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider has not stored yet."""

    waiting: int
    refused: int
    unknown: int
    oldest: float | None
    """When the oldest waiting item was accepted."""
    breaker: Breaker


class ProviderState(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider has not stored yet, and how long it is behind."""

    name: str
    lag: Lag
    syncing_for: float | None
    """Seconds since the oldest waiting item was accepted; None: nothing waits."""
    left_out: str | None = None
    """Why it cannot be used at all, and what to do; None: it can."""


def enqueue(
    connection: sqlite3.Connection,
    providers: Iterable[str],
    item: MemoryItem,
    *,
    session_id: str,
    at: float,
    key: str | None = None,
) -> None:
    """Let all these providers store the item. `key` names the delivery, if an item comes again.

    A provider that is not configured now gets all but turns when it is configured again: it must
    not show what was forgotten meanwhile.
    """
    body, digest = _encode(item), text_digest(item)
    if not isinstance(item, TurnMemory):
        providers = dict.fromkeys((*providers, *registered(connection)))
    connection.executemany(
        "INSERT OR IGNORE INTO deliveries (provider, item, session_id, digest, body, state, since)"
        " VALUES (?, ?, ?, ?, ?, 'waiting', ?)",
        [(name, key or item.id, session_id, digest, body, at) for name in providers],
    )


def register(connection: sqlite3.Connection, provider: str, at: float) -> bool:
    """Let a new provider store all memories that there are. False: it is not new."""
    cursor = connection.execute("INSERT OR IGNORE INTO breakers VALUES (?, 0, 0, '')", (provider,))
    if not cursor.rowcount:
        return False
    for memory in memories.everything(connection):
        source = memory.sources[0].session_id if memory.sources else ""
        enqueue(connection, [provider], memory, session_id=source, at=at)
    return True


def registered(connection: sqlite3.Connection) -> list[str]:
    """Return the providers that were ever configured."""
    return [name for (name,) in connection.execute("SELECT provider FROM breakers")]


def text_digest(item: MemoryItem) -> bytes:
    """Return a digest of the text as a provider compares it."""
    match item:
        case Memory():
            text = item.text
        case TurnMemory():
            text = "\0".join(f"{part.by}\0{part.text}" for part in item.texts)
        case Withdrawal():
            text = item.id
    return hashlib.blake2b(text.encode(errors="replace"), digest_size=16).digest()


def sessions_waiting(connection: sqlite3.Connection, provider: str) -> list[str]:
    """Return the sessions with something to deliver, the longest waiting first."""
    rows = connection.execute(
        "SELECT session_id FROM deliveries WHERE provider = ? AND state = 'waiting'"
        " GROUP BY session_id ORDER BY min(place)",
        (provider,),
    )
    return [session_id for (session_id,) in rows]


def begin(
    connection: sqlite3.Connection, provider: str, session_id: str, limit: int
) -> list[Pending]:
    """Return the next deliveries of a session, and count an attempt for each."""
    rows = connection.execute(
        "SELECT place, body, attempts, (SELECT count(*) FROM deliveries AS equal WHERE"
        " equal.provider = d.provider AND equal.session_id = d.session_id AND"
        " equal.digest = d.digest AND equal.place < d.place AND equal.state = 'done')"
        " FROM deliveries AS d WHERE provider = ? AND state = 'waiting' AND session_id = ?"
        " ORDER BY place LIMIT ?",
        (provider, session_id, limit),
    ).fetchall()
    _count_attempt(connection, [place for place, *_ in rows])
    return [
        Pending(place, Delivery(_decode(body), attempts, equal))
        for place, body, attempts, equal in rows
    ]


def _count_attempt(connection: sqlite3.Connection, places: Sequence[int]) -> None:
    connection.executemany(
        "UPDATE deliveries SET attempts = attempts + 1 WHERE place = ?", [(p,) for p in places]
    )


def finish(
    connection: sqlite3.Connection, places: Iterable[int], state: DeliveryState, error: str = ""
) -> None:
    """End deliveries. What was stored needs no content any more."""
    rows = [(state, error, place) for place in places]
    if state == "done":
        # An erased text must not stay here; the digest is enough to count equal ones.
        statement = "UPDATE deliveries SET state = ?, error = ?, body = x'' WHERE place = ?"
    else:
        statement = "UPDATE deliveries SET state = ?, error = ? WHERE place = ?"
    connection.executemany(statement, rows)


def withdraw(connection: sqlite3.Connection, items: Sequence[str]) -> None:
    """Drop what was not sent yet, and forget the content of what failed."""
    for item in items:
        rows = connection.execute(
            "SELECT place, state, attempts FROM deliveries WHERE provider IN (SELECT provider FROM"  # noqa: S608 (constants of ours)
            f" breakers) AND {_OF_ITEM} AND state != 'done'",
            (item,),
        ).fetchall()
        _drop(connection, rows)


def withdraw_turns(connection: sqlite3.Connection, session_id: str) -> None:
    """Drop the turns of a session that were not sent yet, and the content of those that failed."""
    rows = connection.execute(
        "SELECT place, state, attempts, body FROM deliveries WHERE session_id = ?"
        " AND state != 'done'",
        (session_id,),
    ).fetchall()
    _drop(connection, [row[:3] for row in rows if isinstance(_decode(row[3]), TurnMemory)])


def _drop(connection: sqlite3.Connection, rows: Sequence[tuple[int, str, int]]) -> None:
    for place, state, attempts in rows:
        if state != "waiting":
            finish(connection, [place], "done")
        elif not attempts:  # otherwise it may be stored, and is looked for before it is withdrawn
            connection.execute("DELETE FROM deliveries WHERE place = ?", (place,))


def was_delivered(connection: sqlite3.Connection, provider: str, item: str) -> bool:
    """Return whether the provider got this item, or something of this session, or may have."""
    query = (
        f"SELECT 1 FROM deliveries WHERE provider = ?2 AND {_OF_ITEM} AND attempts > 0 UNION ALL"  # noqa: S608 (constants of ours)
        " SELECT 1 FROM deliveries WHERE provider = ?2 AND session_id = ?1 AND attempts > 0 LIMIT 1"
    )
    return connection.execute(query, (item, provider)).fetchone() is not None


def retry(connection: sqlite3.Connection, places: Sequence[int] | None = None) -> int:
    """Send failed deliveries again: these, or all. Return how many."""
    if places is None:
        rows = connection.execute(
            "SELECT place FROM deliveries WHERE state IN ('refused', 'unknown')"
        )
        places = [place for (place,) in rows.fetchall()]
    cursor = connection.executemany(
        "UPDATE deliveries SET state = 'waiting', error = '' WHERE place = ? AND state IN"
        " ('refused', 'unknown')",
        [(place,) for place in places],
    )
    return max(0, cursor.rowcount)  # -1: there was nothing to do


def failures(connection: sqlite3.Connection, limit: int = 1_000) -> list[FailedDelivery]:
    """Return the deliveries that wait for a person's decision, the oldest first."""
    rows = connection.execute(
        "SELECT place, provider, body, state, attempts, error, since FROM deliveries"
        " WHERE state IN ('refused', 'unknown') ORDER BY place LIMIT ?",
        (limit,),
    )
    return [
        FailedDelivery(
            place=place,
            provider=provider,
            item=_decode(body),
            state=state,
            attempts=attempts,
            error=error,
            since=since,
        )
        for place, provider, body, state, attempts, error, since in rows
    ]


def lag(connection: sqlite3.Connection, provider: str) -> Lag:
    rows = connection.execute(
        "SELECT state, count(*), min(since) FROM deliveries WHERE provider = ? AND state != 'done'"
        " GROUP BY state",
        (provider,),
    )
    counts = {state: (count, oldest) for state, count, oldest in rows}
    waiting, oldest = counts.get("waiting", (0, None))
    return Lag(
        waiting=waiting,
        refused=counts.get("refused", (0, None))[0],
        unknown=counts.get("unknown", (0, None))[0],
        oldest=oldest,
        breaker=breaker(connection, provider),
    )


def states(
    connection: sqlite3.Connection, providers: Mapping[str, str | None], now: float
) -> list[ProviderState]:
    """Return how far each provider is behind; each is given with why it is left out, or None."""
    lags = {name: lag(connection, name) for name in providers}
    return [
        ProviderState(
            name=name,
            lag=behind,
            syncing_for=None if behind.oldest is None else max(0.0, now - behind.oldest),
            left_out=providers[name],
        )
        for name, behind in lags.items()
    ]


def breaker(connection: sqlite3.Connection, provider: str) -> Breaker:
    row = connection.execute(
        "SELECT failures, retry_at, error FROM breakers WHERE provider = ?", (provider,)
    ).fetchone()
    return Breaker() if row is None else Breaker(*row)


def set_breaker(connection: sqlite3.Connection, provider: str, breaker: Breaker) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO breakers VALUES (?, ?, ?, ?)",
        (provider, breaker.failures, breaker.retry_at, breaker.error),
    )
