"""Gives a waiting turn the results of the client's calls, which the ids of the calls lead to."""

from __future__ import annotations

from keryx import commands as cm
from keryx import events as ev
from keryx.app.host_client import HostClient
from keryx.errors import AlreadyTakenError, UserMustActError
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


async def give_results(
    service: Service, prompt: Prompt, request: str, caller: Caller
) -> Begun | None:
    """Give a waiting turn its results; None: no turn waits for them."""
    places = [place_of_call(result.call_id) for result in prompt.results]
    sessions = {None if place is None else place[0] for place in places}
    session_id = sessions.pop() if len(sessions) == 1 else None
    if session_id is None or not is_id(session_id):
        return None
    row = await service.host_client.store.session(session_id)
    if row is None or row.state == "idle":
        return None
    try:
        return await answer_calls(service, session_id, row.last_seq, prompt, request, caller)
    except (AlreadyTakenError, UserMustActError, ProblemError):
        return None  # the client goes back to an earlier point: its history is imported


async def answer_calls(
    service: Service, session_id: str, last_seq: int, prompt: Prompt, request: str, caller: Caller
) -> Begun:
    """Give these results to the calls of one session, with the message that follows them."""
    answers = tuple(
        CallAnswer(place[1], result.text)
        for result in prompt.results
        if (place := place_of_call(result.call_id)) is not None
    )
    command = cm.AnswerCalls(
        command_id=service.new_id(),
        session_id=session_id,
        by=caller.name,
        answers=answers,
        request=request,
    )
    if prompt.has_message:
        await _steer(service, session_id, prompt, caller)
    await service.do(command)
    for event in await service.host_client.store.events(session_id, after=last_seq):
        if isinstance(event, ev.CallsAnswered) and event.answers[0].call_id == answers[0].call_id:
            return Begun(session_id, event.seq)
    raise AssertionError("the results are in the log")


async def _steer(service: Service, session_id: str, prompt: Prompt, caller: Caller) -> None:
    """Send a message that the model reads after the results."""
    view = await service.host_client.view(session_id)
    command = cm.SendMessage(
        command_id=service.new_id(),
        session_id=session_id,
        by=caller.name,
        text=prompt.text,
        attachments=await uploaded(service.host_client, prompt),
        mode="steer",
        wait=True,
        turn_id=None if view.turn is None else view.turn.turn_id,
        attended=False,
    )
    await service.send(command)
