"""Event streams: resumed at every point, the same bytes for all, bounded for the slow."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, MutableMapping
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from keryx import events as ev
from keryx.messages import Json
from keryx.models.scripted import ScriptedModel, ScriptedReply
from keryx.server import stream as streaming
from tests.server.served_host import (
    PATIENCE,
    Gate,
    ServedHost,
    StreamedEvent,
    scripted,
    served_host,
)

pytestmark = pytest.mark.promise("004.1")


def holding(gate: Gate) -> ScriptedModel:
    def reply(text: str) -> ScriptedReply:
        hold = gate.wait if text == "hold" else None
        return ScriptedReply(text=f"You said: {text}", hold=hold, piece=3)

    return scripted(reply)


async def told_turn(here: ServedHost, session_id: str, text: str) -> None:
    sent = await here.client.say(session_id, text)
    await here.client.finished(session_id, sent["turn_id"])


def facts(events: list[StreamedEvent]) -> list[StreamedEvent]:
    return [event for event in events if event.id is not None]


async def test_a_stream_resumes_at_every_point_without_gap_or_repetition(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        name = await here.client.open()
        await told_turn(here, name, "one")
        await told_turn(here, name, "two")
        last = (await here.client.get(f"/api/sessions/{name}"))["seq"]
        whole = await here.client.until(name, "turn.finished", seq=last)
        assert [event.id for event in whole] == list(range(1, last + 1))
        assert all(event.data["seq"] == event.id for event in whole)
        for after in range(last):
            path = f"/api/sessions/{name}/events"
            ways: tuple[tuple[str, dict[str, str]], ...] = (
                (f"{path}?after={after}", {}),
                (f"{path}?after=0", {"Last-Event-ID": str(after)}),
            )
            for address, headers in ways:
                seen: list[StreamedEvent] = []
                async with here.client.stream(address, headers=headers) as events:
                    async for event in events:
                        seen.append(event)
                        if event.id == last:
                            break
                assert [event.raw for event in seen] == [event.raw for event in whole[after:]]


@pytest.mark.parametrize("after", ["x", "-1", "1.5", "9" * 30, "1e3", "%31x"])
async def test_a_bad_place_to_resume_at_is_a_bad_request(tmp_path: Path, after: str) -> None:
    async with served_host(tmp_path) as here:
        name = await here.client.open()
        for path in (f"/api/sessions/{name}/events", "/api/events"):
            by_query = await here.client.ask("GET", f"{path}?after={after}")
            by_query.problem(400, "bad_request")
            headers = {"Last-Event-ID": after}
            (await here.client.ask("GET", path, headers=headers)).problem(400, "bad_request")
        ahead = await here.client.ask("GET", f"/api/sessions/{name}/events?after=2")
        ahead.problem(400, "bad_request")


async def test_a_late_reader_gets_the_facts_and_then_what_streams_now(tmp_path: Path) -> None:
    gate = Gate()
    async with served_host(tmp_path, model=holding(gate)) as here:
        name = await here.client.open()
        sent = await here.client.say(name, "hold")
        await gate.reached.wait()
        async with here.client.follow(name) as events:
            seen: list[StreamedEvent] = []
            async for event in events:
                seen.append(event)
                if event.type == "step.snapshot":
                    break
            assert [event.id for event in seen[:-1]] == list(range(1, len(seen)))
            assert seen[-1].data["text"] == "You said: hold"
            assert seen[-1].data["after"] == seen[-2].id
            gate.opened.set()
            async for event in events:
                assert event.type != "text.delta", "all of the text was in the snapshot"
                if event.type == "turn.finished":
                    assert event.data["turn_id"] == sent["turn_id"]
                    break


async def test_two_readers_see_the_same_bytes(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        name = await here.client.open()
        async with here.client.follow(name, 1) as one, here.client.follow(name, 1) as two:
            await here.client.say(name, "Tell both of us the same, in many pieces")

            async def read(events: AsyncIterator[StreamedEvent]) -> list[bytes]:
                raw_events: list[bytes] = []
                async for event in events:
                    raw_events.append(event.raw)
                    if event.type == "turn.finished":
                        break
                return raw_events

            first = await read(one)
            assert first == await read(two)
            assert any(b"text.delta" in block for block in first)
            live = [block for block in first if b"delta" in block.partition(b"\n")[0]]
            assert not any(b"\nid: " in block for block in live)


async def test_a_slow_reader_is_told_to_resync_and_misses_no_fact(tmp_path: Path) -> None:
    gate = Gate()
    long = "x" * 400_000

    def reply(text: str) -> ScriptedReply:
        return ScriptedReply(text=long + text, piece=100)

    async with served_host(tmp_path, model=scripted(reply)) as here:
        name = await here.client.open()
        host, port = here.server.url.split("/")[2].split(":")
        reader, writer = await asyncio.open_connection(host, int(port), limit=2**16)
        request = (
            f"GET /api/sessions/{name}/events?after=0 HTTP/1.1\r\nHost: {host}:{port}\r\n"
            f"Authorization: Bearer {here.token}\r\n\r\n"
        )
        writer.write(request.encode())
        await reader.readuntil(b"retry: ")
        # It reads no more for a while: socket, line and hub fill up, and the session goes on.
        for number in range(12):
            await told_turn(here, name, f"{number}")
        gate.opened.set()
        body = b""
        async with asyncio.timeout(PATIENCE):
            while body.count(b"event: turn.finished") < 12:
                body += await reader.read(2**16)
        writer.close()
        await writer.wait_closed()
        numbers = [int(line[4:]) for line in body.split(b"\n") if line.startswith(b"id: ")]
        assert numbers == list(range(1, numbers[-1] + 1))
        assert b"event: resync" in body


async def test_a_reader_that_hangs_up_cancels_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    gate = Gate()
    async with served_host(tmp_path, model=holding(gate)) as here:
        name = await here.client.open()
        sent = await here.client.say(name, "hold")
        await gate.reached.wait()
        await here.client.until(name, "step.snapshot")
        gate.opened.set()
        assert (await here.client.finished(name, sent["turn_id"]))["outcome"] == "completed"
        async with asyncio.timeout(PATIENCE):
            while len(here.server.streams):  # noqa: ASYNC110 (the end of a socket tells nobody else)
                await asyncio.sleep(0)


async def test_the_end_of_the_session_ends_its_streams(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        name = await here.client.open()
        async with here.client.follow(name) as events:
            assert (await anext(events)).type == "session.opened"
            await here.client.ask("DELETE", f"/api/sessions/{name}")
            assert [event.type async for event in events] == ["deleted"]
        answer = await here.client.ask("GET", f"/api/sessions/{name}/events")
        answer.problem(404, "not_found")


async def test_the_end_of_the_server_ends_streams_within_bounds(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        name = await here.client.open()
        response = await here.client.http.get(f"{here.client.url}/api/sessions/{name}/events")
        async with asyncio.timeout(PATIENCE):
            await response.content.readuntil(b"session.opened")
            await here.server.streams.close()
            await response.read()  # to its end


async def test_streams_show_signs_of_life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "BEAT", 0.01)
    async with served_host(tmp_path) as here:
        name = await here.client.open()
        path = f"{here.client.url}/api/sessions/{name}/events?after=1"
        async with asyncio.timeout(PATIENCE), here.client.http.get(path) as answer:
            assert await answer.content.readline() == b"retry: 1000\n"
            assert await answer.content.readline() == b"\n"
            assert await answer.content.readline() == b": beat\n"


# -- all sessions


async def test_the_list_is_followed_with_its_positions(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        first = await here.client.open(title="first")
        async with here.client.stream("/api/events") as events:
            second = await here.client.open(title="second")
            change = await anext(events)
            assert (change.type, change.data["session_id"]) == ("session", second)
            assert change.id == change.data["position"]
            await here.client.ask("DELETE", f"/api/sessions/{second}")
            async for change in events:
                if change.type == "deleted":
                    break
            assert (change.data, change.id) == ({"session_id": second}, None)
        async with here.client.stream("/api/events", headers={"Last-Event-ID": "0"}) as events:
            again = await anext(events)
            assert (again.data["session_id"], again.data["title"]) == (first, "first")


# -- the parts


class Socket:
    """A reader's side that takes bytes when the test lets it."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.free = asyncio.Event()
        self.free.set()

    async def send(self, message: MutableMapping[str, Any]) -> None:
        await self.free.wait()
        self.sent.append(message["body"])


async def test_what_waits_is_written_at_once_and_bounded() -> None:
    line, socket = streaming.Buffer(lambda: True), Socket()
    writing = asyncio.ensure_future(line.write(socket.send))
    await asyncio.sleep(0)
    for number in range(5):
        line.put(b"%d" % number)
    await asyncio.sleep(0)
    assert socket.sent == [b"retry: 1000\n\n", b"01234"]
    socket.free.clear()
    line.put(b"x" * streaming.FULL)
    await asyncio.sleep(0)
    line.put(b"y" * streaming.FULL)
    assert line.is_full
    waiting = asyncio.ensure_future(line.wait_room())
    await asyncio.sleep(0)
    assert not waiting.done()
    line.beat()
    socket.free.set()
    await waiting
    line.end()
    await writing
    assert b"beat" not in b"".join(socket.sent)
    assert [len(piece) for piece in socket.sent[2:]] == [streaming.FULL, streaming.FULL, 0]


async def test_a_stream_ends_for_who_may_read_no_more() -> None:
    line, socket = streaming.Buffer(lambda: False), Socket()
    line.beat()
    async with asyncio.timeout(PATIENCE):
        await line.write(socket.send)


def test_an_event_with_line_breaks_in_foreign_json_is_one_line_on_the_wire() -> None:
    event = ev.CallFinished(
        session_id="s",
        at=0.0,
        seq=7,
        turn_id=None,
        call_id="c",
        tool="t",
        outcome="completed",
        reason=None,
        started=True,
        result=(Json(Raw(b'{\r\n "a": "b\\n"\n}')),),
        duration=0.0,
    )
    lines = streaming.encode_event(event).split(b"\n")
    assert [line.partition(b": ")[0] for line in lines] == [b"event", b"data", b"id", b"", b""]
    data = json.loads(lines[1].partition(b": ")[2])
    assert data["result"] == [{"type": "json", "value": {"a": "b\n"}}]


def test_an_event_is_encoded_once_for_all_readers_and_not_kept_for_ever() -> None:
    shared = streaming.Encodings()
    shared.readers = 2
    events = [
        ev.TextDelta(session_id="s", at=0.0, step_id="p", text=str(number))
        for number in range(streaming.CACHED_EVENTS + 1)
    ]
    first = [shared.encode(event) for event in events]
    again = [shared.encode(event) for event in reversed(events)][::-1]
    assert first == again
    assert all(one is two for one, two in zip(first[1:], again[1:], strict=True))
    assert first[0] is not again[0]
    large = ev.TextDelta(session_id="s", at=0.0, step_id="p", text="x" * 2_000_000)
    assert shared.encode(large) is not shared.encode(large)
