"""Queue, steer, interrupt, cancel, finish and crash, in any order.

Every accepted message has one fate, every turn one end, nothing follows a turn's end, and an owner
that was replaced writes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from keryx import events as ev
from keryx.engine.session import Session
from keryx.messages import Mode
from keryx.models.scripted import ScriptedCall, ScriptedReply
from keryx.ports.effects import NO_EFFECTS
from keryx.ports.model import ModelRequest
from keryx.tools.function import tool
from tests.engine.sessions import Recording, SessionHost

pytestmark = pytest.mark.promise("sessions.3")


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.store = Recording()
        self.gates: list[asyncio.Event] = []
        self.wants_call = False
        self.turns: list[str] = []
        self.session_hosts: list[SessionHost] = []
        self.do(self._start())

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(asyncio.wait_for(work, 20))

    async def _start(self) -> None:
        @tool(effects=NO_EFFECTS, replay="safe")
        async def wait() -> str:
            """Wait to be let go."""
            await self._gate().wait()
            return "waited"

        session_host = SessionHost(self._reply, tools=[wait], store=self.store)
        self.session_hosts.append(session_host)
        self.session: Session = await session_host.open()
        await self._settle()

    def _gate(self) -> asyncio.Event:
        self.gates.append(asyncio.Event())
        return self.gates[-1]

    def _reply(self, request: ModelRequest) -> ScriptedReply:
        calls = [ScriptedCall("wait")] if self.wants_call else []
        self.wants_call = False
        return ScriptedReply(text="Hm.", calls=calls, hold=self._gate().wait)

    async def _settle(self) -> None:
        for _ in range(40):
            await asyncio.sleep(0)

    @property
    def session_host(self) -> SessionHost:
        return self.session_hosts[-1]

    @rule(mode=st.sampled_from(["queue", "steer", "interrupt"]), wait=st.booleans())
    def send(self, mode: Mode, *, wait: bool) -> None:
        async def send() -> None:
            sent = await self.session_host.send(self.session, "text", mode, wait=wait)
            self.turns.append(sent.turn_id)
            await self._settle()

        self.do(send())

    @precondition(lambda self: self.turns)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        turn_id = data.draw(st.sampled_from(self.turns))
        over = turn_id in self.session.fold.turn_outcomes

        async def cancel() -> None:
            assert await self.session_host.cancel(self.session, turn_id) is not over
            await self._settle()

        self.do(cancel())

    @rule()
    def ask_for_a_call_next(self) -> None:
        self.wants_call = True

    @precondition(lambda self: any(not gate.is_set() for gate in self.gates))
    @rule(data=st.data())
    def let_go(self, data: st.DataObject) -> None:
        shut = [number for number, gate in enumerate(self.gates) if not gate.is_set()]
        self.gates[data.draw(st.sampled_from(shut))].set()
        self.do(self._settle())

    @rule()
    def crash(self) -> None:
        """A new owner takes the session; the old one finds itself fenced."""
        self.do(self._start())

    @invariant()
    def the_log_is_whole(self) -> None:
        log = self.do(self.store.events("s1"))
        assert [event.seq for event in log] == list(range(1, len(log) + 1))
        over: set[str] = set()
        for event in log:
            turn_id = getattr(event, "turn_id", None)
            if not isinstance(event, ev.MessageAccepted | ev.TurnUndone):
                assert turn_id not in over, "nothing follows a turn's end"
            if isinstance(event, ev.TurnFinished):
                over.add(event.turn_id)

    def teardown(self) -> None:
        try:
            self.do(self._end())
        finally:
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()

    async def _end(self) -> None:
        while not self.session.is_resting:
            for gate in self.gates:
                gate.set()
            await self._settle()
        self.check_fates(await self.store.events("s1"))
        for session_host in reversed(self.session_hosts):
            await session_host.close()

    def check_fates(self, log: list[ev.LoggedEvent]) -> None:
        fates = [
            event.message_id
            for event in log
            if isinstance(event, ev.MessageDelivered | ev.MessageExpired | ev.MessageWithdrawn)
        ]
        accepted = [event.message_id for event in log if isinstance(event, ev.MessageAccepted)]
        assert sorted(fates) == sorted(accepted), "every message has one fate"
        started = [event.turn_id for event in log if isinstance(event, ev.TurnStarted)]
        ended = [event.turn_id for event in log if isinstance(event, ev.TurnFinished)]
        assert len(set(started)) == len(started)
        assert len(set(ended)) == len(ended)
        assert set(started) <= set(ended), "every turn has one end"


TestVerbs = Machine.TestCase
