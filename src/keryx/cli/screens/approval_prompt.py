"""A person at a terminal: asked whether a call may run, and what they meant."""

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
    """Whether someone sits at this terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


class Asker:
    """Asks at the terminal, one thing after the other, while the turn goes on."""

    def __init__(self, session: SessionHandle) -> None:
        self._session = session
        self._scope = Scope("asking")
        self._bridge = Bridge(self._scope)
        self._group = Group(self._scope)
        self._open: set[str] = set()
        self._asked: asyncio.Queue[ev.ApprovalAsked | ev.QuestionAsked] = asyncio.Queue()
        self._group.start(self._serve(), name="asking")

    def show(self, event: ev.Event) -> None:
        """Take note of what is asked, and of what was answered elsewhere."""
        match event:
            case ev.ApprovalAsked() | ev.QuestionAsked():
                self._open.add(_id(event))
                self._asked.put_nowait(event)
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
            asked = await self._asked.get()
            if _id(asked) not in self._open:
                continue
            said = await self._bridge.to_thread(_ask, _shown(asked))
            reach = await self._reach(asked, said)
            if _id(asked) in self._open:
                with contextlib.suppress(AlreadyTakenError):  # someone was faster elsewhere
                    await self._answer(asked, said, reach)

    async def _reach(self, asked: ev.ApprovalAsked | ev.QuestionAsked, said: str) -> Reach | None:
        """How far consent that lasts goes, if there is a choice. The narrowest is the default."""
        if not isinstance(asked, ev.ApprovalAsked) or said.lower() not in LASTING:
            return None
        shown = "".join(
            f"       {number} {offer.says}\n" for number, offer in enumerate(asked.offers, 1)
        )
        if len(asked.offers) < 2:  # noqa: PLR2004 (there is no choice)
            sys.stderr.write(shown)
            return None
        number = await self._bridge.to_thread(_ask, f"{shown}       which [1]: ")
        chosen = int(number) if number.isdecimal() and number.isascii() else 1
        return asked.offers[chosen - 1 if 1 <= chosen <= len(asked.offers) else 0].reach

    async def _answer(
        self, asked: ev.ApprovalAsked | ev.QuestionAsked, said: str, reach: Reach | None
    ) -> None:
        if isinstance(asked, ev.ApprovalAsked):
            decision = DECISIONS.get(said.lower(), "deny")
            await self._session.answer(asked.approval_id, decision, reach=reach, by="terminal")
        else:
            await self._session.answer_question(asked.question_id, said, by="terminal")


def _ask(text: str) -> str:
    sys.stderr.write(text)
    sys.stderr.flush()
    return sys.stdin.readline().strip()


def _shown(asked: ev.ApprovalAsked | ev.QuestionAsked) -> str:
    if isinstance(asked, ev.QuestionAsked):
        offered = f" ({' / '.join(asked.choices)})" if asked.choices else ""
        return f"\n[asks] {asked.text}{offered}: "
    lasts = asked.offers or asked.patterns != ()
    needs = "".join(f"       it would get {each}\n" for each in _needed(asked.needs))
    return (
        f"\n[asks] {asked.what}\n       {asked.why} (risk: {asked.risk})\n{needs}"
        f"       {'[y]es, for this [s]ession, [a]lways' if lasts else '[y]es'}, [N]o: "
    )


def _needed(needs: Needs) -> list[str]:
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
