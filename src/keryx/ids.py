"""Ids: where every id of a session, turn, step, call or message is made."""

from __future__ import annotations

import secrets


def new_id(kind: str) -> str:
    """Return a new id, unique everywhere. The kind is a prefix for people who read logs."""
    return f"{kind}_{secrets.token_hex(8)}"
