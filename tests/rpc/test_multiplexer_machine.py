"""Any interleaving of calls both ways, answers, failures, give-ups and hang-ups.

Each call gets one answer, its own; and when all is over, nothing is held or listed any more.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Coroutine
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from keryx.aio.clock import FakeClock
from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.rpc import Call, CallError, Limits, Peer, PeerLostError
from keryx.rpc.incoming_calls import LIMIT_REACHED
from keryx.rpc.memory_transport import pair

MOST = 3


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.numbers = itertools.count(1)
        self.ends: dict[int, asyncio.Future[str]] = {}
        self.running: dict[int, int] = {}  # which call runs on which side
        self.ran: list[int] = []
        self.outcomes: dict[int, str] = {}
        self.askers: dict[int, asyncio.Task[None]] = {}
        self.told: dict[int, list[bytes]] = {}
        self.closed = False
        self.do(self._open())

    def do(self, work: Coroutine[Any, Any, None]) -> None:
        # A deadlock shall fail, not hang.
        self.loop.run_until_complete(asyncio.wait_for(work, 20))

    async def _open(self) -> None:
        self.root = Scope("test", clock=FakeClock())
        self.group = Group(self.root.child("askers"))
        limits = Limits(most_in_flight=MOST)
        self.peers = pair(self.root, self.handler(0), self.handler(1), limits=limits)

    def handler(self, side: int) -> Any:
        async def handle(call: Call) -> bytes:
            number = int(call.params)
            self.ran.append(number)
            self.running[number] = side
            if side == 0:
                assert list(self.running.values()).count(0) <= MOST
            try:
                await call.progress(b"%d" % number)
                match await self.ends[number]:
                    case "fail":
                        raise CallError(str(number))
                    case "give itself up":
                        raise asyncio.CancelledError
                    case "call back":
                        await self.peers[side].call("nested", b"%d" % self.number("answer"))
                    case _:
                        pass
            finally:
                del self.running[number]
            return call.params

        return handle

    def number(self, end: str = "") -> int:
        number = next(self.numbers)
        self.ends[number] = self.loop.create_future()
        if end:
            self.ends[number].set_result(end)
        return number

    async def ask(self, peer: Peer, number: int) -> None:
        self.told[number] = []
        try:
            answer = await peer.call("c", b"%d" % number, on_progress=self.told[number].append)
            assert answer == b"%d" % number
            self.end(number, "answered")
        except CallError as error:
            if error.code == LIMIT_REACHED:
                self.end(number, "refused")
            elif error.name:
                self.end(number, "cancelled")
            else:
                # A call that calls back fails with the refusal of that one.
                self.end(number, "failed" if error.message == str(number) else "nested")
        except PeerLostError:
            self.end(number, "lost")
        except asyncio.CancelledError:
            self.end(number, "given up")
            raise

    def end(self, number: int, outcome: str) -> None:
        assert number not in self.outcomes
        self.outcomes[number] = outcome

    # -- what may happen

    @rule(side=st.integers(0, 1), count=st.integers(1, 5), apart=st.booleans())
    def call(self, side: int, count: int, apart: bool) -> None:
        async def start() -> None:
            for _ in range(count):
                number = self.number()
                self.askers[number] = self.group.start(
                    self.ask(self.peers[side], number), name=str(number)
                )
                if apart:
                    await asyncio.sleep(0)

        self.do(start())

    @precondition(lambda self: self.unsettled())
    @rule(
        data=st.data(),
        how=st.sampled_from(["answer", "answer", "fail", "give itself up", "call back"]),
    )
    def let_go(self, data: st.DataObject, how: str) -> None:
        number = data.draw(st.sampled_from(self.unsettled()))
        self.ends[number].set_result(how)

    @precondition(lambda self: self.askers)
    @rule(data=st.data(), ticks=st.integers(0, 4))
    def give_up(self, data: st.DataObject, ticks: int) -> None:
        """Also in the same moment in which it was made, or is answered."""
        self.pass_time(ticks)
        number = data.draw(st.sampled_from(sorted(self.askers)))
        self.askers[number].cancel()

    @rule(ticks=st.integers(1, 10))
    def pass_time(self, ticks: int) -> None:
        async def turn() -> None:
            for _ in range(ticks):
                await asyncio.sleep(0)

        self.do(turn())

    @precondition(lambda self: not self.closed and len(self.outcomes) > 10)
    @rule(side=st.integers(0, 1))
    def close(self, side: int) -> None:
        self.closed = True

        async def close() -> None:
            self.peers[side].close()

        self.do(close())

    def unsettled(self) -> list[int]:
        return sorted(number for number, end in self.ends.items() if not end.done())

    # -- what must hold in the end

    def teardown(self) -> None:
        for number in self.unsettled():
            self.ends[number].set_result("answer")
        self.do(self._finish())
        self.loop.close()

    async def _finish(self) -> None:
        if self.askers:
            await asyncio.wait(self.askers.values())
        for _ in range(50):  # what was given up last is still on its way
            await asyncio.sleep(0)
        assert self.running == {}
        assert len(self.ran) == len(set(self.ran))
        for number, task in self.askers.items():
            if number not in self.outcomes:
                assert task.cancelled()  # before its first step: nobody was asked
                assert number not in self.ran
            elif self.outcomes[number] == "answered":
                assert number in self.ran
            elif self.outcomes[number] == "refused":
                assert number not in self.ran or self.ends[number].result() == "call back"
            elif self.outcomes[number] == "lost":
                assert self.closed
        for number, told in self.told.items():
            assert set(told) <= {b"%d" % number}
        for peer in self.peers:
            assert (peer.in_flight, peer.held) == (0, 0)
            assert peer.is_lost == self.closed
            peer.close()
            await peer.wait_ended()
        await self.group.leave()
        self.group.scope.close()
        assert self.root.children == ()
        assert len(self.root.deadlines) == 0
        self.root.close()


TestMultiplexer = Machine.TestCase
