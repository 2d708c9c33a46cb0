"""Continues an earlier response: its session goes on, or a fork of it, or its turn."""

from __future__ import annotations

from collections.abc import Callable

from keryx import commands as cm
from keryx import events as ev
from keryx.app.portable.conversation import undone_turns
from keryx.errors import AlreadyTakenError, UserMustActError
from keryx.ids import new_id
from keryx.ports.store import Store
from keryx.server.access.auth import Caller
from keryx.server.schemas import is_id
from keryx.server.service import Service
from keryx.server.v1.answering.progress import Progress
from keryx.server.v1.answering.response_object import (
    call_name,
    place_of,
    request_of,
)
from keryx.server.v1.api_errors import ApiError, invalid, no_previous_response, no_response
from keryx.server.v1.asking.begun import AgentSettings, Begun
from keryx.server.v1.asking.client_results import ClientResults
from keryx.server.v1.asking.prompts import Prompt

PARAM = "previous_response_id"


async def load(
    store: Store, response_id: str, missing: Callable[[str], ApiError] = no_response
) -> tuple[Progress, list[ev.LoggedEvent]]:
    """Return a response as it is now, and the log from its beginning on."""
    place = place_of(response_id)
    if place is None or not is_id(place[0]) or place[1] < 1:
        raise missing(response_id)
    session_id, seq = place
    events = await store.events(session_id, after=seq - 1)
    progress = Progress()
    first = events[0] if events else None
    if not isinstance(first, ev.MessageAccepted | ev.CallsAnswered):
        raise missing(response_id)
    for event in events:
        for _ in progress.apply(event):
            pass
    if first.turn_id in undone_turns(events) or request_of(progress) is None:
        raise missing(response_id)
    return progress, events


class Continuations:
    """Finds where earlier responses go on. Belongs to one loop."""

    def __init__(self, service: Service, results: ClientResults) -> None:
        self._service = service
        self._results = results
        self._busy: set[str] = set()
        """Sessions that a request is about to continue; another request forks them."""

    async def _load(self, previous: str) -> tuple[Progress, list[ev.LoggedEvent]]:
        return await load(self._service.host_client.store, previous, no_previous_response)

    async def resume(
        self, previous: str, prompt: Prompt, request: str, caller: Caller
    ) -> Begun | None:
        """Give the turn of an earlier response its results; None: it waits for none."""
        progress, _ = await self._load(previous)
        assert progress.begin is not None
        if not progress.is_over:
            raise invalid(f"The response {previous} has not ended; wait for it", PARAM)
        session_id = progress.begin.session_id
        _check_results(prompt, [call_name(session_id, call.call_id) for call in progress.waiting])
        if not progress.waiting:
            return None
        try:
            return await self._results.answer_calls(session_id, prompt, request, caller)
        except AlreadyTakenError as error:
            raise _already_answered(previous) from error
        except UserMustActError as error:
            raise invalid(str(error), "input") from error

    async def session(self, previous: str, settings: AgentSettings, caller: Caller) -> str:
        """Return the session in which a response goes on; `release` it once the turn has begun."""
        place = place_of(previous)
        session_id = "" if place is None else place[0]
        mark = None if session_id in self._busy else session_id
        if mark is not None:
            # First of all: whoever comes next sees either this mark or the new message in the log.
            self._busy.add(mark)
        try:
            progress, events = await self._load(previous)
            if mark is None or not _is_last(progress, events):
                session_id = await self._forked(session_id, progress.turn_id, caller)
                self.release(mark)
                mark = session_id
                self._busy.add(mark)
            await self._apply(session_id, settings, caller)
        except BaseException:
            self.release(mark)
            raise
        return session_id

    def release(self, session_id: str | None) -> None:
        if session_id is not None:
            self._busy.discard(session_id)

    async def _forked(self, session_id: str, turn_id: str, caller: Caller) -> str:
        fork = cm.ForkSession(
            command_id=self._service.new_id(),
            session_id=session_id,
            by=caller.name,
            new_session_id=new_id("s"),
            turn_id=turn_id,
        )
        await self._service.do(fork)
        return fork.new_session_id

    async def _apply(self, session_id: str, settings: AgentSettings, caller: Caller) -> None:
        """Give the session the settings of the request, if they differ."""
        current = (await self._service.host_client.view(session_id)).settings
        workspace = settings.workspace if settings.names_workspace else current.workspace
        wishes = (settings.model, settings.tools, settings.effort, workspace)
        if (current.model, current.tools, current.effort, current.workspace) == wishes:
            return
        command = cm.ChangeSession(
            command_id=self._service.new_id(),
            session_id=session_id,
            by=caller.name,
            model=settings.model,
            tools=settings.tools,
            effort=settings.effort,
            workspace=workspace,
        )
        await self._service.do(command)


def _is_last(progress: Progress, events: list[ev.LoggedEvent]) -> bool:
    """Return whether no other turn was asked for after that of the response."""
    return all(
        event.turn_id == progress.turn_id
        for event in events
        if isinstance(event, ev.MessageAccepted)
    )


def _check_results(prompt: Prompt, waiting: list[str]) -> None:
    """Raise `ApiError` unless there is exactly one result for each call that waits."""
    results = [result.call_id for result in prompt.results]
    for name in results:
        if name not in waiting:
            text = f"No tool call found for function call output with call_id {name[:80]}"
            raise invalid(f"{text}; send only results of calls of that response", "input")
        if results.count(name) > 1:
            raise invalid(f"The call {name[:80]} has two results; send one", "input")
    for name in waiting:
        if name not in results:
            text = f"No tool output found for function call {name}"
            raise invalid(f"{text}; send the results of all calls", "input")


def _already_answered(previous: str) -> ApiError:
    return ApiError(
        409,
        f"The calls of {previous} have their results, or wait no more; continue with the response "
        "that followed, or send the whole history",
        code="already_answered",
        param=PARAM,
    )
