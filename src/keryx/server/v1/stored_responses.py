"""Responses that exist: shown, followed again, cancelled and deleted by their ids."""

from __future__ import annotations

import itertools
from typing import Final

from keryx import commands as cm
from keryx import events as ev
from keryx.app.portable.conversation import undone_turns
from keryx.ports.store import Store
from keryx.server.service import Service
from keryx.server.v1.answering.progress import Progress
from keryx.server.v1.answering.response_events import ResponseEvents
from keryx.server.v1.answering.response_object import input_items, response_of
from keryx.server.v1.api_errors import invalid
from keryx.server.v1.asking.begun import Begun
from keryx.server.v1.asking.continuing import load
from keryx.server.v1.exchanges import Exchange
from keryx.server.v1.following import Follower

PAGE: Final = 20
LARGEST_PAGE: Final = 100


class StoredResponses:
    """The responses of one server; each is a projection of a log."""

    def __init__(self, service: Service, follower: Follower) -> None:
        self._service = service
        self._follower = follower

    @property
    def _store(self) -> Store:
        return self._service.host_client.store

    async def show(self, exchange: Exchange, name: str) -> None:
        """Answer with the response, or stream it from any of its events on."""
        progress, _ = await load(self._store, name)
        if exchange.query.get("stream") != "true":
            await exchange.answer(response_of(progress))
            return
        after, again = exchange.number("starting_after", -1), Progress()
        writer = ResponseEvents(again, after)
        await self._follower.stream(exchange, _begun(progress), again, writer, cancels=False)

    async def list_input(self, exchange: Exchange, name: str) -> None:
        """Answer with what the model had read when the response began."""
        progress, _ = await load(self._store, name)
        begun, limit = _begun(progress), exchange.number("limit", PAGE)
        if not 1 <= limit <= LARGEST_PAGE:
            raise invalid(f"`limit` must be from 1 to {LARGEST_PAGE}", "limit")
        items = input_items(await self._store.events(begun.session_id), begun.seq)
        if exchange.query.get("order", "desc") == "desc":
            items.reverse()
        after, ids = exchange.query.get("after"), [item["id"] for item in items]
        if after is not None and after not in ids:
            raise invalid("There is no such item; use the id of an item of this list", "after")
        later = items if after is None else items[ids.index(after) + 1 :]
        page = later[:limit]
        body = {
            "object": "list",
            "data": page,
            "first_id": page[0]["id"] if page else None,
            "last_id": page[-1]["id"] if page else None,
            "has_more": len(later) > limit,
        }
        await exchange.answer(body)

    async def cancel(self, exchange: Exchange, name: str) -> None:
        """Cancel a response that has not ended, and answer with it."""
        progress, _ = await load(self._store, name)
        if not progress.is_over:
            begun, turn_id, progress = _begun(progress), progress.turn_id, Progress()
            await self._follower.cancel_turn(begun.session_id, turn_id, exchange.caller)
            if (error := await self._follower.wait_over(begun, progress)) is not None:
                raise error
        await exchange.answer(response_of(progress))

    async def delete(self, exchange: Exchange, name: str) -> None:
        """Delete the turn of a response: with its session, if that has no other response."""
        progress, _ = await load(self._store, name)
        begun, turn_id = _begun(progress), progress.turn_id
        if progress.turn is None:
            await self._follower.cancel_turn(begun.session_id, turn_id, exchange.caller)
        if _turns(await self._store.events(begun.session_id)) <= {turn_id}:
            await self._service.host_client.delete(begun.session_id)
        else:
            await self._follower.wait_turn_ended(begun.session_id, turn_id, begun.seq)
            undo = cm.UndoTurn(
                command_id=self._service.new_id(),
                session_id=begun.session_id,
                by=exchange.caller.name,
                turn_id=turn_id,
                files=False,
            )
            await self._service.do(undo)
        await exchange.answer({"id": name, "object": "response", "deleted": True})


def _turns(events: list[ev.LoggedEvent]) -> set[str]:
    """Return the turns that a session began since its first response, without those undone.

    What was imported before it, or copied from the session that was forked, is no reason to keep
    the session. A turn that a person began in it is one.
    """
    opened = events[0] if events else None
    fork = opened.fork if isinstance(opened, ev.SessionOpened) else None
    own = [
        event
        for event in events
        if isinstance(event, ev.MessageAccepted) and event.seq > (0 if fork is None else fork.up_to)
    ]
    begun = itertools.dropwhile(lambda event: event.options is None, own)
    return {event.turn_id for event in begun} - undone_turns(events)


def _begun(progress: Progress) -> Begun:
    assert progress.begin is not None
    return Begun(progress.begin.session_id, progress.begin.seq, progress.turn_id)
