"""Answers so far, shown in a chat while they are written: which is to be shown next, and when.

A preview that a newer one replaces is never shown. A draft disappears from the screen by itself, so
it is shown again in time, until its turn ends.
"""

from __future__ import annotations

from typing import Final

import msgspec

from keryx.ports.platform import Address, Content

DRAFT_REFRESH: Final = 20.0
"""Seconds after which a draft is shown again; Telegram removes it after 30."""


class Preview(msgspec.Struct, frozen=True):
    """An answer so far: in the message of this key, or as the draft of this id."""

    key: str
    address: Address
    content: Content
    draft_id: int | None = None


class ChatPreviews:
    """The previews of one chat, by key. It changes state synchronously."""

    def __init__(self, interval: float) -> None:
        """`interval`: seconds between two previews in a private chat."""
        self._interval = interval
        self._waiting: dict[str, Preview] = {}
        self._drafts: dict[str, Preview] = {}
        self._running: set[str] = set()
        self._last: float | None = None

    def __bool__(self) -> bool:
        return bool(self._waiting or self._drafts)

    def show(self, preview: Preview) -> bool:
        """Show this soon; return whether nothing waited before."""
        is_first = not self._waiting
        self._waiting[preview.key] = preview
        self._running.add(preview.key)
        if preview.draft_id is not None:
            self._drafts[preview.key] = preview
        return is_first

    def drop(self, key: str) -> None:
        """Show no more of this answer."""
        self._running.discard(key)
        self._waiting.pop(key, None)
        self._drafts.pop(key, None)

    def delay(self, now: float) -> float:
        """Return the seconds until the next preview is to be shown."""
        if self._last is None:
            return 0.0
        if not self._waiting:
            return self._last + DRAFT_REFRESH - now
        preview = next(iter(self._waiting.values()))
        interval = self._interval * (1 if preview.address.is_private else 2)
        return self._last + interval - now

    def take(self, now: float) -> list[Preview]:
        """Return what is to be shown now: the next preview, or all drafts anew."""
        self._last = now
        if self._waiting:
            return [self._waiting.pop(next(iter(self._waiting)))]
        return list(self._drafts.values())

    def is_current(self, preview: Preview) -> bool:
        """Return whether the preview may still be shown: its turn has not ended meanwhile."""
        return preview.key in self._running
