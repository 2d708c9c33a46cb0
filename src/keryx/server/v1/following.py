"""Follows the turn of a request until its response ends, and cancels it if its client leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Protocol

from keryx import commands as cm
from keryx import events as ev
from keryx.errors import KeryxError
from keryx.server.access.auth import Caller
from keryx.server.service import Service
from keryx.server.stream import Receive, Streams
from keryx.server.v1.answering.progress import Piece, Progress
from keryx.server.v1.api_errors import of_error
from keryx.server.v1.asking.begun import Begun
from keryx.server.v1.exchanges import Exchange


class Writer(Protocol):
    """Writes what a turn says as frames of a stream."""

    def begin(self) -> Iterator[bytes]: ...

    def write(self, piece: Piece) -> Iterator[bytes]: ...


class Follower:
    """Follows turns for one server. Belongs to one loop."""

    def __init__(self, service: Service, streams: Streams) -> None:
        self._service = service
        self._streams = streams

    async def stream(
        self, exchange: Exchange, begun: Begun, progress: Progress, writer: Writer, *, cancels: bool
    ) -> None:
        """Stream the response. `cancels`: if its client leaves, the turn is cancelled."""

        def may_read() -> bool:
            return self._service.access.is_valid(exchange.caller)

        frames = self._frames(begun, progress, writer)
        receive, send = exchange.receive, exchange.send
        await self._streams.send(frames, bytes, receive, send, may_read, hello=b"")
        if cancels:
            await self._cancel_if_left(begun, progress, exchange.caller)
        await self._cancel_if_stopped(begun, progress, exchange.caller)

    async def collect(self, exchange: Exchange, begun: Begun, progress: Progress) -> None:
        """Follow the turn until the response ends, or the client leaves: then it is cancelled."""
        group = self._streams.group
        following = group.start(self.wait_over(begun, progress), name="response")
        leaving = group.start(_wait_disconnect(exchange.receive), name="disconnect")
        await asyncio.wait((following, leaving), return_when=asyncio.FIRST_COMPLETED)
        leaving.cancel()
        if not following.done():
            following.cancel()
            await self._cancel_if_left(begun, progress, exchange.caller)
        elif not following.cancelled() and (error := following.result()) is not None:
            raise error
        await self._cancel_if_stopped(begun, progress, exchange.caller)

    async def wait_over(self, begun: Begun, progress: Progress) -> KeryxError | None:
        """Wait until the response has ended; return the error that prevents that."""
        try:
            events = await self._service.host_client.follow(begun.session_id, after=begun.seq - 1)
            async with aclosing(events):
                async for event in events:
                    for _ in progress.apply(event):
                        pass
                    if progress.is_over:
                        break
        except KeryxError as error:
            return error  # one that is raised would end the other streams
        return None

    async def wait_turn_ended(self, session_id: str, turn_id: str, after: int) -> None:
        """Wait for the end of a turn that is being cancelled, or has ended."""
        events = await self._service.host_client.follow(session_id, after=after)
        async with aclosing(events):
            async for event in events:
                if isinstance(event, ev.TurnFinished) and event.turn_id == turn_id:
                    return

    async def cancel_turn(self, session_id: str, turn_id: str, caller: Caller) -> None:
        command = cm.CancelTurn(
            command_id=self._service.new_id(),
            session_id=session_id,
            by=caller.name,
            turn_id=turn_id,
        )
        await self._service.do(command)

    async def _frames(
        self, begun: Begun, progress: Progress, writer: Writer
    ) -> AsyncGenerator[bytes]:
        has_begun = False
        try:
            events = await self._service.host_client.follow(begun.session_id, after=begun.seq - 1)
            async with aclosing(events):
                async for event in events:
                    pieces = list(progress.apply(event))
                    if not has_begun:
                        has_begun = True
                        for frame in writer.begin():
                            yield frame
                    for piece in pieces:
                        for frame in writer.write(piece):
                            yield frame
                    if progress.is_over:
                        return
        except KeryxError as error:
            yield b"event: error\ndata: %b\n\n" % of_error(error).encode()

    async def _cancel_if_left(self, begun: Begun, progress: Progress, caller: Caller) -> None:
        """Cancel the turn if its client closed the connection, as clients of OpenAI expect."""
        if progress.is_over or self._streams.is_closing:
            return
        await self.cancel_turn(begun.session_id, begun.turn_id, caller)

    async def _cancel_if_stopped(self, begun: Begun, progress: Progress, caller: Caller) -> None:
        """Cancel the turn if its answer has ended at a stop sequence: nobody reads the rest."""
        if progress.is_stopped:
            await self.cancel_turn(begun.session_id, begun.turn_id, caller)


async def _wait_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
