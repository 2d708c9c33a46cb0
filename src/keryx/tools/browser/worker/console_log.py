"""What pages print and which errors they raise, the last few hundred entries."""

from __future__ import annotations

from collections import deque
from typing import Any

from playwright.async_api import ConsoleMessage, Dialog, Error, Page, Request

MOST = 200
LONGEST = 2_000


class ConsoleLog:
    """The console of all pages of a browser."""

    def __init__(self) -> None:
        self._entries: deque[dict[str, str]] = deque(maxlen=MOST)
        self._dropped = 0

    def watch(self, page: Page) -> None:
        page.on("console", self._message)
        page.on("pageerror", self._error)
        page.on("requestfailed", self._request)

    def add(self, kind: str, text: str, where: str = "") -> None:
        if len(self._entries) == MOST:
            self._dropped += 1
        self._entries.append({"kind": kind, "text": text[:LONGEST], "where": where[:200]})

    def entries(self, *, clear: bool) -> dict[str, Any]:
        answer = {"entries": list(self._entries), "left_out": self._dropped}
        if clear:
            self._entries.clear()
            self._dropped = 0
        return answer

    def _message(self, message: ConsoleMessage) -> None:
        place = message.location
        self.add(message.type, message.text, f"{place.get('url', '')}:{place.get('lineNumber', 0)}")

    def _error(self, error: Error) -> None:
        self.add("error", error.stack or error.message)

    def _request(self, request: Request) -> None:
        self.add("request failed", f"{request.method} {request.url}: {request.failure or ''}")

    def dialog(self, dialog: Dialog, answer: str) -> None:
        self.add(dialog.type, f"{dialog.message} [{answer}]")
