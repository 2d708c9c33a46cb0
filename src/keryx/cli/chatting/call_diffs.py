"""What a call changed on the disk, as a diff below its row."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from keryx import events as ev
from keryx.cli.chatting.pieces import Piece, printable
from keryx.errors import KeryxError

MOST_LINES: Final = 40
"""Lines of one diff that are shown; /diff shows all of the session's."""
SHOWN_BEFORE: Final = ("write_file", "patch")
"""Tools whose diff an approval has shown already."""
ReadDiff = Callable[[Sequence[ev.FilesChanged]], Awaitable[str]]


class CallDiffs:
    """Follows the file changes of running calls."""

    def __init__(self, read_diff: ReadDiff) -> None:
        self._read_diff = read_diff
        self._changes: dict[str, list[ev.FilesChanged]] = {}
        self._shown: set[str] = set()

    async def pieces(self, event: ev.Event) -> list[Piece]:
        """Return the diff if this event finishes a call that changed files."""
        match event:
            case ev.FilesChanged(call_id=str(call_id)):
                self._changes.setdefault(call_id, []).append(event)
            case ev.ApprovalAsked() if event.tool in SHOWN_BEFORE:
                self._shown.add(event.call_id)
            case ev.CallFinished():
                changes = self._changes.pop(event.call_id, [])
                if changes and event.call_id not in self._shown:
                    return await self._diff(changes)
            case _:
                pass
        return []

    async def _diff(self, changes: Sequence[ev.FilesChanged]) -> list[Piece]:
        try:
            text = await self._read_diff(changes)
        except KeryxError as error:
            return [Piece("note", f"The changes cannot be shown: {error}")]
        lines = printable(text).rstrip("\n").split("\n")
        more = len(lines) - MOST_LINES
        if more > 1:
            note = Piece("note", f"… {more} more lines (/diff shows all)")
            return [Piece("diff", "\n".join(lines[:MOST_LINES])), note]
        return [Piece("diff", "\n".join(lines))] if text else []
