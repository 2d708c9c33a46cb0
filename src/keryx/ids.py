"""Ids: where every id of a session, turn, step, call or message is made."""

from __future__ import annotations

import hashlib
import secrets


def new_id(kind: str) -> str:
    """Return a new id, unique everywhere. The kind is a prefix for people who read logs."""
    return f"{kind}_{secrets.token_hex(8)}"


def derived_id(kind: str, *parts: str) -> str:
    """Return the id that follows from these parts: the same parts give the same id."""
    digest = hashlib.sha256("\0".join(parts).encode(errors="backslashreplace")).hexdigest()
    return f"{kind}_{digest[:16]}"
