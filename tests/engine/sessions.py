"""Sessions to test with: a runtime, a store, a scripted model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from keryx import commands as cm
from keryx import events as ev
from keryx.aio.clock import Clock, RealClock
from keryx.app import Runtime
from keryx.engine.approvals import Approvals, Judge, Judgement, Rule
from keryx.engine.calls.call_environment import CallEnvironment
from keryx.engine.calls.call_hooks import CallHooks, CallView
from keryx.engine.limits import Limits
from keryx.engine.log.state import Settings
from keryx.engine.session import Opening, Session
from keryx.engine.session_context import HostServices
from keryx.ids import new_id
from keryx.messages import Mode
from keryx.models.scripted import Script, ScriptedModel
from keryx.ports.dispatch import Done, Sent
from keryx.ports.store import Commit, Store
from keryx.ports.tool import Risk, Tool
from keryx.store.memory import MemoryStore


class Recording(MemoryStore):
    """A store that remembers every commit, so that a test can go back to any of them."""

    def __init__(self) -> None:
        super().__init__()
        self.commits: list[Commit] = []

    async def append(self, commit: Commit) -> int:
        position = await super().append(commit)
        self.commits.append(commit)
        return position


class AsksWhen:
    """A policy that asks whenever this function gives a risk."""

    expires: float | None = None

    def __init__(self, ask: Callable[[CallView], Risk | None]) -> None:
        self._ask = ask

    def judge(self, call: CallView, settings: Settings, rules: Sequence[Rule]) -> Judgement:
        risk = self._ask(call)
        return Judgement("allow", Risk("none")) if risk is None else Judgement("ask", risk)


class SessionHost:
    """A host for sessions over one store. Made anew over the same store, it is a restart."""

    def __init__(
        self,
        script: Script,
        *,
        tools: Sequence[Tool] = (),
        store: Store | None = None,
        limits: Limits | None = None,
        ask: Callable[[CallView], Risk | None] | None = None,
        judge: Judge | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.runtime = Runtime(clock=clock)
        self.store = store if store is not None else Recording()
        self.model = ScriptedModel(script)
        self.tools = {tool.name: tool for tool in tools}
        self.services = HostServices(
            store=self.store,
            executor=self.runtime.executor,
            clock=clock or RealClock(),
            model=lambda name, profile: self.model,
            tools=self._granted,
            environment=self._environment,
            limits=limits or Limits(),
            judge=judge or (Approvals() if ask is None else AsksWhen(ask)),
        )
        self._sessions: list[Session] = []

    def _granted(self, settings: Settings) -> list[Tool]:
        return [self.tools[name] for name in settings.tools]

    def _environment(
        self, session_id: str, settings: Settings, workspace: Path, hooks: CallHooks
    ) -> CallEnvironment:
        tools = self._granted(settings)
        return self.runtime.call_environment(session_id, tools, workspace=workspace, hooks=hooks)

    async def open(self, session_id: str = "s1") -> Session:
        opening = Opening(model="scripted:demo", workspace="/", tools=tuple(self.tools))
        session = await Session.open(session_id, self.services, self.runtime.scope, opening)
        self._sessions.append(session)
        return session

    def command_id(self) -> str:
        return new_id("c")

    async def send(
        self,
        session: Session,
        text: str,
        mode: Mode = "queue",
        *,
        key: str | None = None,
        wait: bool = False,
        attended: bool = True,
    ) -> Sent:
        answer = await session.tell(
            cm.SendMessage(
                command_id=self.command_id(),
                session_id=session.session_id,
                by="tester",
                text=text,
                mode=mode,
                key=key,
                wait=wait,
                attended=attended,
            )
        )
        assert isinstance(answer, Sent)
        return answer

    async def cancel(self, session: Session, turn_id: str) -> bool:
        answer = await session.tell(
            cm.CancelTurn(
                command_id=self.command_id(),
                session_id=session.session_id,
                by="tester",
                turn_id=turn_id,
            )
        )
        assert isinstance(answer, Done)
        return answer.done

    async def log(self, session: Session) -> list[ev.LoggedEvent]:
        return await self.store.events(session.session_id)

    async def types(self, session: Session) -> list[str]:
        return [ev.type_of(event) for event in await self.log(session)]

    async def close(self) -> None:
        for session in self._sessions:
            await session.close()
        await self.runtime.close()


E = TypeVar("E", bound=ev.Event)


async def until(session: Session, kind: type[E], *, after: int = 0) -> E:
    """Wait by event for the first of that kind."""
    async with session.hub.read(after=after) as reader:
        async for event in reader:
            if isinstance(event, kind):
                return event
    raise AssertionError("the session ended")
