"""Gives a waiting turn the results of the client's calls, which the ids of the calls lead to."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from keryx import commands as cm
from keryx import events as ev
from keryx.app.host_client import HostClient
from keryx.errors import AlreadyTakenError, KeryxError, UserMustActError
from keryx.messages import CallAnswer, File, Image
from keryx.server.access.auth import Caller
from keryx.server.problems import ProblemError
from keryx.server.schemas import is_id
from keryx.server.service import PICTURES, Service, clean_media_type, clean_name
from keryx.server.v1.answering.response_object import place_of_call
from keryx.server.v1.asking.begun import Begun
from keryx.server.v1.asking.prompts import Prompt


async def uploaded(host_client: HostClient, prompt: Prompt) -> tuple[Image | File, ...]:
    """Store the attachments of a request, and return them as parts of a message."""
    for blob in prompt.blobs:
        await host_client.keep_upload(blob.data)
    parts: list[Image | File] = []
    for part in prompt.attachments:
        media_type = clean_media_type(part.media_type)
        kind = Image if media_type in PICTURES else File
        parts.append(kind(part.blob, media_type, clean_name(part.name)))
    return tuple(parts)


class ClientResults:
    """Gives the results of requests to the turns that wait for them. Belongs to one loop."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._busy: set[str] = set()
        """Sessions to which a request is giving results; another request comes too late."""

    async def give(self, prompt: Prompt, request: str, caller: Caller) -> Begun | None:
        """Give a waiting turn its results; None: no turn waits for them."""
        places = [place_of_call(result.call_id) for result in prompt.results]
        sessions = {None if place is None else place[0] for place in places}
        session_id = sessions.pop() if len(sessions) == 1 else None
        if session_id is None or not is_id(session_id):
            return None
        row = await self._service.host_client.store.session(session_id)
        if row is None or row.state == "idle":
            return None
        try:
            return await self.answer_calls(session_id, prompt, request, caller)
        except (AlreadyTakenError, UserMustActError, ProblemError):
            return None  # the client goes back to an earlier point: its history is imported

    async def answer_calls(
        self, session_id: str, prompt: Prompt, request: str, caller: Caller
    ) -> Begun:
        """Give these results to the calls of one session, with the message that follows them."""
        answers = tuple(
            CallAnswer(place[1], result.text)
            for result in prompt.results
            if (place := place_of_call(result.call_id)) is not None
        )
        command = cm.AnswerCalls(
            command_id=self._service.new_id(),
            session_id=session_id,
            by=caller.name,
            answers=answers,
            request=request,
        )
        with self._alone(session_id):
            before = await self._check_waiting(session_id, answers)
            message_id = None
            if prompt.has_message:
                message_id = await self._steer(session_id, prompt, caller)
            try:
                await self._service.do(command)
            except KeryxError:
                if message_id is not None:
                    await self._withdraw(session_id, message_id, caller)
                raise
        for event in await self._service.host_client.store.events(session_id, after=before):
            if isinstance(event, ev.CallsAnswered) and _is_about(event, answers):
                return Begun(session_id, event.seq, event.turn_id)
        raise AssertionError("the results are in the log")

    @contextmanager
    def _alone(self, session_id: str) -> Generator[None]:
        if session_id in self._busy:
            raise AlreadyTakenError("another request gives these calls their results")
        self._busy.add(session_id)
        try:
            yield
        finally:
            self._busy.discard(session_id)

    async def _check_waiting(self, session_id: str, answers: tuple[CallAnswer, ...]) -> int:
        """Return the number of a fact before any result; `AlreadyTakenError` if one is there.

        A message must not reach a turn that does not wait for the results before it.
        """
        view = await self._service.host_client.view(session_id)
        started = {call.call_id: call.seq for call in view.calls}
        if not answers or any(answer.call_id not in started for answer in answers):
            raise AlreadyTakenError("not all of these calls wait for a result of the client")
        before = min(started[answer.call_id] for answer in answers)
        for event in await self._service.host_client.store.events(session_id, after=before):
            if isinstance(event, ev.CallsAnswered) and _is_about(event, answers):
                raise AlreadyTakenError("these calls have their results")
        return before

    async def _steer(self, session_id: str, prompt: Prompt, caller: Caller) -> str:
        """Send a message that the model reads after the results; return its id."""
        host_client = self._service.host_client
        view = await host_client.view(session_id)
        command = cm.SendMessage(
            command_id=self._service.new_id(),
            session_id=session_id,
            by=caller.name,
            text=prompt.text,
            attachments=await uploaded(host_client, prompt),
            mode="steer",
            wait=True,
            turn_id=None if view.turn is None else view.turn.turn_id,
            attended=False,
        )
        return (await self._service.send(command)).message_id

    async def _withdraw(self, session_id: str, message_id: str, caller: Caller) -> None:
        command = cm.WithdrawMessage(
            command_id=self._service.new_id(),
            session_id=session_id,
            by=caller.name,
            message_id=message_id,
        )
        await self._service.do(command)


def _is_about(event: ev.CallsAnswered, answers: tuple[CallAnswer, ...]) -> bool:
    """Return whether this fact has a result for one of these calls."""
    ids = {answer.call_id for answer in event.answers}
    return any(answer.call_id in ids for answer in answers)
