"""Asks the person at the terminal to approve calls and to answer questions."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from typing import Final

from keryx import events as ev
from keryx.aio.bridge import Bridge
from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.app import SessionHandle
from keryx.errors import AlreadyTakenError
from keryx.messages import Decision, Needs, Reach

DECISIONS: Final[dict[str, Decision]] = {"y": "once", "yes": "once", "s": "session", "a": "always"}
LASTING: Final = frozenset({"s", "a"})


def is_attended() -> bool:
    """Return whether there is a terminal to ask at."""
    return sys.stdin.isatty() and sys.stderr.isatty()


class Asker:
    """Asks at the terminal, one question at a time, while the turn continues."""

    def __init__(self, session: SessionHandle) -> None:
        self._session = session
        self._scope = Scope("asking")
        self._bridge = Bridge(self._scope)
        self._group = Group(self._scope)
        self._open: set[str] = set()
        self._requests: asyncio.Queue[ev.ApprovalAsked | ev.QuestionAsked] = asyncio.Queue()
        self._group.start(self._serve(), name="asking")

    def show(self, event: ev.Event) -> None:
        """Queue a request, or drop one that was answered elsewhere."""
        match event:
            case ev.ApprovalAsked() | ev.QuestionAsked():
                self._open.add(_id(event))
                self._requests.put_nowait(event)
            case (
                ev.ApprovalAnswered()
                | ev.ApprovalExpired()
                | ev.QuestionAnswered()
                | ev.QuestionExpired()
            ):
                self._open.discard(_id(event))
            case _:
                return

    async def close(self) -> None:
        await self._group.leave()
        await self._bridge.close()
        self._scope.close()

    async def _serve(self) -> None:
        while True:
            request = await self._requests.get()
            if _id(request) not in self._open:
                continue
            reply = await self._bridge.to_thread(_ask, _prompt(request))
            reach = await self._reach(request, reply)
            if _id(request) in self._open:
                with contextlib.suppress(AlreadyTakenError):  # answered elsewhere meanwhile
                    await self._answer(request, reply, reach)

    async def _reach(
        self, request: ev.ApprovalAsked | ev.QuestionAsked, reply: str
    ) -> Reach | None:
        """Ask how much a lasting approval covers, if there is a choice; default: the narrowest."""
        if not isinstance(request, ev.ApprovalAsked) or reply.lower() not in LASTING:
            return None
        menu = "".join(
            f"       {number} {offer.says}\n" for number, offer in enumerate(request.offers, 1)
        )
        if len(request.offers) < 2:  # noqa: PLR2004 (there is no choice)
            sys.stderr.write(menu)
            return None
        text = await self._bridge.to_thread(_ask, f"{menu}       which [1]: ")
        number = int(text) if text.isdecimal() and text.isascii() else 1
        return request.offers[number - 1 if 1 <= number <= len(request.offers) else 0].reach

    async def _answer(
        self, request: ev.ApprovalAsked | ev.QuestionAsked, reply: str, reach: Reach | None
    ) -> None:
        if isinstance(request, ev.ApprovalAsked):
            decision = DECISIONS.get(reply.lower(), "deny")
            await self._session.answer(request.approval_id, decision, reach=reach, by="terminal")
        else:
            await self._session.answer_question(request.question_id, reply, by="terminal")


def _ask(text: str) -> str:
    sys.stderr.write(text)
    sys.stderr.flush()
    return sys.stdin.readline().strip()


def _prompt(request: ev.ApprovalAsked | ev.QuestionAsked) -> str:
    if isinstance(request, ev.QuestionAsked):
        choices = f" ({' / '.join(request.choices)})" if request.choices else ""
        return f"\n[Waiting for you] {request.text}{choices}: "
    needs = "".join(f"       it needs {need}\n" for need in needs_in_words(request.needs))
    options = ["[y] Allow once"]
    if request.offers or request.patterns != ():
        options += ["[s] Allow for this session", f"[a] Always allow {request.tool}".rstrip()]
    return (
        f"\n[Waiting for you] {request.what}\n"
        f"       {request.why} (risk: {request.risk})\n{needs}"
        f"       {', '.join(options)}, [N] Deny: "
    )


def needs_in_words(needs: Needs) -> list[str]:
    """Return what a call needs beyond the confinement, one phrase each."""
    network = ["the network"] if needs.network else []
    reads = [f"to read {path}" for path in needs.reads]
    return [*network, *reads, *(f"to write {path}" for path in needs.writes)]


def _id(
    event: ev.ApprovalAsked
    | ev.ApprovalAnswered
    | ev.ApprovalExpired
    | ev.QuestionAsked
    | ev.QuestionAnswered
    | ev.QuestionExpired,
) -> str:
    match event:
        case ev.ApprovalAsked() | ev.ApprovalAnswered() | ev.ApprovalExpired():
            return event.approval_id
        case _:
            return event.question_id
