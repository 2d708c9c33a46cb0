"""The rows of the outbox that the memory takes in: what sessions remember."""

from __future__ import annotations

from typing import Final

import msgspec

from keryx.decoding import json_decoder
from keryx.events import MemoryChanged, TurnRestored, TurnUndone
from keryx.ports.memory import TurnMemory
from keryx.ports.store import OutboxRow

TOPIC: Final = "memory"


class TurnEnded(msgspec.Struct, frozen=True, tag="turn"):
    """A turn has ended, and is to be remembered."""

    turn: TurnMemory


class TurnTakenBack(msgspec.Struct, frozen=True, kw_only=True, tag="undone"):
    """A turn was undone: what it taught is taken back."""

    session_id: str
    turn_id: str
    at: float
    seq: int = 0
    """Of the event; an older version of Keryx wrote none."""


class TurnBroughtBack(msgspec.Struct, frozen=True, kw_only=True, tag="restored"):
    """An undone turn was restored: what it taught counts again."""

    session_id: str
    turn_id: str
    at: float
    seq: int
    turn: TurnMemory | None
    """What was said in it; None: nothing that is remembered."""


class Changed(msgspec.Struct, frozen=True, tag="changed"):
    """A call changed the memory."""

    event: MemoryChanged


Row = TurnEnded | TurnTakenBack | TurnBroughtBack | Changed

decode: Final = json_decoder(Row).decode
_encode: Final = msgspec.json.Encoder().encode


def session_of(row: OutboxRow) -> str:
    """Return the session that a row comes from."""
    content: Row = decode(row.body)
    match content:
        case TurnEnded(turn):
            return turn.session_id
        case Changed(event):
            return event.session_id
        case TurnTakenBack() | TurnBroughtBack():
            return content.session_id


def turn_row(turn: TurnMemory) -> OutboxRow:
    return _row(turn.id, TurnEnded(turn))


def changed_row(event: MemoryChanged) -> OutboxRow:
    return _row(event.memory_id, Changed(event))


def undone_row(event: TurnUndone) -> OutboxRow:
    row = TurnTakenBack(
        session_id=event.session_id, turn_id=event.turn_id, at=event.at, seq=event.seq
    )
    return _row(f"undo/{event.session_id}/{event.seq}", row)


def restored_row(event: TurnRestored, turn: TurnMemory | None) -> OutboxRow:
    row = TurnBroughtBack(
        session_id=event.session_id, turn_id=event.turn_id, at=event.at, seq=event.seq, turn=turn
    )
    return _row(f"restore/{event.session_id}/{event.seq}", row)


def _row(row_id: str, row: Row) -> OutboxRow:
    return OutboxRow(row_id, TOPIC, _encode(row))
