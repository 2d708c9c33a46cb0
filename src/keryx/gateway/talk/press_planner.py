"""Decides what a press of a button does. A button names its target; one that is over is expired."""

from __future__ import annotations

import sqlite3
from functools import partial

from keryx.app.host_client import HostClient
from keryx.errors import DeveloperMustActError
from keryx.gateway import conversations
from keryx.gateway.conversations import AwaitedTurn
from keryx.gateway.talk import requests
from keryx.gateway.talk.plans import AnswerPlan, DecidePlan, Plan, SayPlan, StopPlan
from keryx.ports.platform import Address, Press
from keryx.sqlite_file import SqliteFile


class PressPlanner:
    """Plans for the presses of people who are allowed to talk to one platform."""

    def __init__(self, account: str, host_client: HostClient, file: SqliteFile) -> None:
        self._account = account
        self._host_client = host_client
        self._file = file

    async def plan(self, press: Press) -> Plan:
        kind, _, rest = press.data.partition(":")
        match kind:
            case requests.STOP:
                return await self._stop(press.address, rest)
            case requests.DRAFT:
                return await self._stop_draft(press.address, rest)
            case requests.APPROVAL:
                return await self._decision(press, rest)
            case requests.QUESTION:
                return await self._choice(press, rest)
            case _:
                return SayPlan(text=requests.EXPIRED)

    async def _stop(self, address: Address, turn_id: str) -> Plan:
        turn = await self._file.read(lambda con: conversations.chat_of_turn(con, turn_id))
        if turn is None or turn[1].chat != address.chat:
            return SayPlan(text=requests.EXPIRED)
        return StopPlan(session_id=turn[0], turn_id=turn_id)

    async def _stop_draft(self, address: Address, draft: str) -> Plan:
        """A draft is named by a number that follows from its turn."""
        turns = await self._file.read(partial(_open_turns, self._account))
        for turn in turns:
            if turn.address.chat == address.chat and str(requests.draft_id(turn.turn_id)) == draft:
                return StopPlan(session_id=turn.session_id, turn_id=turn.turn_id)
        return SayPlan(text=requests.EXPIRED)

    async def _decision(self, press: Press, rest: str) -> Plan:
        letter, _, approval_id = rest.partition(":")
        session_id = await self._asker(press, requests.approval_key(approval_id))
        decision = requests.DECISIONS.get(letter)
        if session_id is None or decision is None:
            return SayPlan(text=requests.EXPIRED)
        return DecidePlan(session_id=session_id, approval_id=approval_id, decision=decision)

    async def _choice(self, press: Press, rest: str) -> Plan:
        number, _, question_id = rest.partition(":")
        session_id = await self._asker(press, requests.question_key(question_id))
        if session_id is None:
            return SayPlan(text=requests.EXPIRED)
        try:
            view = await self._host_client.view(session_id)
        except DeveloperMustActError:  # the session was deleted
            return SayPlan(text=requests.EXPIRED)
        for question in view.questions:
            choices = {str(at): choice for at, choice in enumerate(question.choices)}
            if question.question_id == question_id and number in choices:
                answer = choices[number]
                return AnswerPlan(session_id=session_id, question_id=question_id, answer=answer)
        return SayPlan(text=requests.EXPIRED)

    async def _asker(self, press: Press, key: str) -> str | None:
        """Return the session that asked in this chat with the message of this key."""
        return await self._file.read(partial(_session_that_asked, key, press.address.chat))


def _open_turns(account: str, connection: sqlite3.Connection) -> list[AwaitedTurn]:
    return conversations.awaited_turns(connection, account)


def _session_that_asked(key: str, chat: str, connection: sqlite3.Connection) -> str | None:
    row = connection.execute(
        "SELECT t.session_id FROM outgoing AS o JOIN turns AS t ON t.turn_id = o.target"
        " WHERE o.key = ? AND o.chat = ?",
        (key, chat),
    ).fetchone()
    return None if row is None else row[0]
