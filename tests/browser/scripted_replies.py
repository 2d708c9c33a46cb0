"""What the model says, by cue: each turn of a test has its own lines, whatever runs beside it."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from keryx.testing.modelserver import ReceivedRequest, RefusedError, Reply

PATIENCE = 20.0
"""Only reached by a test that fails."""


class Part:
    """The replies to one message, in order, and what the model was asked for each."""

    def __init__(self, cue: str, replies: tuple[Reply, ...]) -> None:
        self.cue = cue
        self._replies = list(replies)
        self._requests: list[ReceivedRequest] = []
        self._more = asyncio.Event()

    async def request(self, number: int = 1) -> ReceivedRequest:
        """The request of that number, counted from 1, once it has come."""
        while len(self._requests) < number:
            self._more.clear()
            await asyncio.wait_for(self._more.wait(), PATIENCE)
        return self._requests[number - 1]

    async def held(self, number: int = 1) -> ReceivedRequest:
        """The request of that number, once its answer hangs."""
        request = await self.request(number)
        await asyncio.wait_for(request.hanging.wait(), PATIENCE)
        return request

    def take(self, request: ReceivedRequest) -> Reply:
        if not self._replies:
            raise RefusedError(f"nothing more is to be said to {self.cue!r}", code="over")
        self._requests.append(request)
        self._more.set()
        return self._replies.pop(0)


class ScriptedReplies:
    """Answers for the scripted model server; titles are what the person said first."""

    def __init__(self) -> None:
        self._parts: list[Part] = []
        self._summaries: list[Part] = []

    def on(self, cue: str, *replies: Reply) -> Part:
        """Say this to the message that holds these words."""
        part = Part(cue, replies)
        self._parts.append(part)
        return part

    def on_summing_up(self, cue: str, *replies: Reply) -> Part:
        """Say this when the session is summed up in which these words were said."""
        part = Part(cue, replies)
        self._summaries.append(part)
        return part

    def answer(self, request: ReceivedRequest) -> Reply:
        body = request.body
        if not body.get("tools"):
            return self._answer_aside(request)
        said = _last_said(body)
        for part in reversed(self._parts):
            if part.cue in said:
                return part.take(request)
        raise RefusedError(f"nothing is to be said to {said!r}", code="no_cue")

    def _answer_aside(self, request: ReceivedRequest) -> Reply:
        """For what is asked beside the turns, with no tools."""
        messages = request.body["messages"]
        last = messages[-1]["content"]
        if messages[0]["content"].startswith("Sum up"):
            for part in reversed(self._summaries):
                if part.cue in last:
                    return part.take(request)
            raise RefusedError("nothing is to be said of that", code="no_cue")
        match = re.search(r"^Person: (.*)$", last, re.MULTILINE)
        return Reply(text=match[1] if match else "Untitled")


def _last_said(body: dict[str, Any]) -> str:
    for message in reversed(body["messages"]):
        if message["role"] == "user":
            content = message["content"]
            if isinstance(content, str):
                return content
            return "\n".join(part.get("text", "") for part in content)
    return ""
