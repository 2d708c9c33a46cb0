"""How a conversation looks: finished pieces as rows, and the live region. It is loaded late."""

from __future__ import annotations

from collections.abc import Iterable

from keryx.cli.chatting.pieces import Piece
from keryx.cli.chatting.screen.live_rows import LiveRows, Row, status
from keryx.cli.chatting.screen.painter import Painter
from keryx.cli.chatting.transcript import Transcript


class Drawing:
    """Draws what the screen shows of a conversation."""

    def __init__(self) -> None:
        self._painter = Painter()
        self._live_rows = LiveRows(self._painter)

    def rows(self, pieces: Iterable[Piece], width: int) -> list[str]:
        return self._painter.rows(pieces, width)

    def live_rows(self, transcript: Transcript, width: int, height: int, now: float) -> list[Row]:
        return self._live_rows.rows(transcript, width, height, now)

    def status(self, transcript: Transcript, width: int, attached: int, hint: str) -> str:
        return status(transcript, width, attached, hint)
