"""Every fault gives the right answer, or an error that names its cause and what to do."""

from __future__ import annotations

import asyncio
import email.utils
import socket
from typing import Any

import pytest

from keryx.aio.clock import FakeClock
from keryx.errors import ModelError
from keryx.models.failures import not_configured
from keryx.ports.model import Piece, TextPiece
from keryx.testing.modelserver import Call, Fault, ModelServer, ReceivedRequest, Reply
from tests.models.scripted_server import (
    FOLDERS,
    KEY,
    PATIENCE,
    TOOLS,
    NewModel,
    ask,
    failure,
    request,
)

pytestmark = pytest.mark.promise("sessions.5", "model.1")

STORY = "once upon a time there was a «stream» 🎉"


@pytest.mark.parametrize(
    "fault",
    [
        "one byte at a time",
        "crlf",
        "wrong content type",
        "no finish_reason",
        "no done",
        "no usage",
        "one write",
    ],
)
async def test_what_is_only_odd_still_gives_the_right_answer(
    new_model: NewModel, fault: Fault
) -> None:
    reply = Reply(text=STORY, calls=(Call("look", {"path": "ä"}, id="c"),), fault=fault)
    async with ModelServer([reply]) as server:
        answer = await ask(new_model(server.host), tools=TOOLS)
    assert answer.text == STORY
    assert answer.calls == {0: ["c", "look", '{"path":"ä"}']}
    assert answer.finished is not None
    assert answer.finished.stop_reason == "tool_calls"
    assert (answer.finished.usage is None) == (fault == "no usage")


@pytest.mark.parametrize("fault", [None, "one byte at a time", "one write"])
async def test_arguments_split_at_every_character_come_together(
    new_model: NewModel, fault: Fault | None
) -> None:
    first = {"path": 'a "quoted" \\ back\nslash \u2028 🎉', "n": [1, 2.5, None]}
    # Of the four only Gemini sends arguments as an object, which cannot be broken.
    second = "{}" if new_model.format == "gemini" else '{"broken'
    calls = (Call("look", first, id="c1"), Call("look", second, id="c2"))
    async with ModelServer([Reply(calls=calls, chunk=1, fault=fault)]) as server:
        answer = await ask(new_model(server.host), tools=TOOLS)
    assert answer.calls == {
        0: ["c1", "look", calls[0].text],
        1: ["c2", "look", second],
    }


@pytest.mark.promise("004.11")
@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (Reply(status=401, code="invalid_api_key"), "auth", "answered 401"),
        (Reply(status=403), "auth", "answered 403"),
        (Reply(status=402), "quota", "answered 402"),
        (Reply(status=429, code="insufficient_quota"), "quota", "answered 429"),
        (Reply(status=404), "model_not_found", "answered 404"),
        (Reply(status=403, code="model_not_found"), "model_not_found", "403"),
        (Reply(status=429), "rate_limit", "answered 429: scripted failure"),
        (Reply(status=400, code="context_length_exceeded"), "context_too_long", "400"),
        (
            Reply(status=400, message="This model's maximum context length is 8 tokens."),
            "context_too_long",
            "maximum context length",
        ),
        (Reply(status=413), "context_too_long", "413"),
        (Reply(status=400), "bad_response", "answered 400: scripted failure"),
        (Reply(status=302, headers={"Location": "/elsewhere"}), "bad_response", "302"),
        (Reply(status=408), "stalled", "408"),
        (Reply(status=500), "unreachable", "answered 500"),
        (Reply(status=503), "unreachable", "answered 503"),
        (Reply(status=529, code="overloaded_error"), "unreachable", "answered 529"),
        (Reply(status=502, fault="html"), "unreachable", "answered 502: <!DOCTYPE html>"),
        (
            Reply(fault="html"),
            "bad_response",
            "text/html instead of an event stream.*Please log in",
        ),
        (Reply(fault="garbage"), "bad_response", "not an event stream.*garbage"),
        (Reply(fault="not http"), "bad_response", "no HTTP"),
        (Reply(text=STORY, fault="garbage mid-stream"), "bad_response", "a broken chunk"),
        (Reply(text=STORY, fault="end mid-stream"), "bad_response", "was cut"),
        (Reply(text=STORY, fault="close mid-stream"), "bad_response", "was cut"),
        (Reply(text=STORY, fault="reset mid-stream"), "bad_response", "was cut"),
        (Reply(text=STORY, fault="end mid-stream", after=0), "bad_response", "was cut"),
    ],
    ids=lambda value: repr(value) if isinstance(value, Reply) else None,
)
async def test_each_fault_is_named(
    new_model: NewModel, reply: Reply, kind: str, words: str
) -> None:
    async with ModelServer([reply]) as server:
        error = await failure(new_model(server.host))
    assert error.kind == kind
    with pytest.raises(ModelError, match=f"(?s){words}"):
        raise error


@pytest.mark.parametrize(
    ("code", "message", "kind", "retry_after"),
    [
        ("rate_limit_exceeded", "Please try again in 1.5s", "rate_limit", 1.5),
        (429, "slow down", "rate_limit", 0.0),
        ("503", "busy", "unreachable", 0.0),
        ("server_error", "oops", "unreachable", 0.0),
        ("insufficient_quota", "pay", "quota", None),
        (None, "the context window is full", "context_too_long", None),
        (None, "something else", "bad_response", 0.0),
    ],
)
async def test_an_error_inside_the_stream_is_told_by_its_code(
    new_model: NewModel, code: str | int | None, message: str, kind: str, retry_after: float | None
) -> None:
    reply = Reply(text=STORY, fault="error mid-stream", code=code, message=message)
    async with ModelServer([reply]) as server:
        error = await failure(new_model(server.host))
    assert error.kind == kind
    assert error.retry_after == retry_after
    assert message in error.message


@pytest.mark.parametrize(
    ("headers", "message", "delay"),
    [
        ({"Retry-After": "7"}, "", 7.0),
        ({"Retry-After": "0.25"}, "", 0.25),
        ({"Retry-After": email.utils.formatdate(1_700_000_090, usegmt=True)}, "", 90.0),
        ({"Retry-After": email.utils.formatdate(1_600_000_000, usegmt=True)}, "", 0.0),
        ({"Retry-After": "soon"}, "", 0.0),
        ({"Retry-After": "-3"}, "", 0.0),
        ({"Retry-After": "nan"}, "", 0.0),
        ({"Retry-After": "7", "Retry-After-Ms": "1500"}, "", 1.5),
        ({}, "Rate limit reached. Please try again in 1.2s. Visit…", 1.2),
        ({}, "Please try again in 1m30s.", 90.0),
        ({}, "Please try again in 250ms", 0.25),
        ({}, "Please retry after 20 seconds", 20.0),
        ({}, "Please retry after a while", 0.0),
    ],
)
async def test_the_servers_own_delay_is_found(
    new_model: NewModel, headers: dict[str, str], message: str, delay: float
) -> None:
    reply = Reply(status=429, headers=headers, message=message)
    async with ModelServer([reply]) as server:
        error = await failure(new_model(server.host, clock=FakeClock()))
    assert error.kind == "rate_limit"
    assert error.retry_after == pytest.approx(delay)


# -- silence


@pytest.mark.parametrize("fault", ["hang before headers", "hang after headers"])
async def test_no_first_byte_in_time_is_stalled(
    new_model: NewModel, clock: FakeClock, fault: Fault
) -> None:
    async with ModelServer([Reply(text=STORY, fault=fault)]) as server:
        asking = asyncio.create_task(failure(new_model(server.host, clock=clock)))
        request = await server.wait_asked(1)
        await request.hanging.wait()
        clock.advance(59)
        await asyncio.sleep(0)
        assert not asking.done()
        while not asking.done():
            # The headers may be on their way; each advance runs the timers that there are by now.
            clock.advance(1)
            await asyncio.sleep(0)
        error = await asking
        async with asyncio.timeout(PATIENCE):
            await request.gone.wait()
    assert error.kind == "stalled"
    assert "sent nothing for 60 s before its answer" in error.message


async def test_silence_between_bytes_is_stalled(new_model: NewModel, clock: FakeClock) -> None:
    async with ModelServer([Reply(text=STORY, fault="hang mid-stream")]) as server:
        model = new_model(server.host, clock=clock)
        asking = asyncio.create_task(failure(model))
        request = await server.wait_asked(1)
        await request.hanging.wait()
        while not asking.done():
            # The reader may not have come to its wait yet; silence counts from there.
            clock.advance(31)
            await asyncio.sleep(0)
        error = await asking
        async with asyncio.timeout(PATIENCE):
            await request.gone.wait()
    assert error.kind == "stalled"
    assert "30 s in the middle of its reply" in error.message


async def test_a_slow_reader_is_no_silent_server(new_model: NewModel, clock: FakeClock) -> None:
    async with ModelServer([Reply(text=STORY, fault="hang mid-stream")]) as server:
        model = new_model(server.host, clock=clock)
        text = ""
        async for piece in model.stream(request(model)):
            # The reader takes its time with every piece, far longer than a server may be silent.
            clock.advance(1000)
            server.asked[0].resume.set()
            text += getattr(piece, "text", "")
    assert text == STORY


# -- stopping in the middle


async def first_piece(pieces: Any) -> Piece:
    async with asyncio.timeout(PATIENCE):
        return await anext(pieces)


async def test_closing_the_stream_hangs_up_at_once(new_model: NewModel) -> None:
    async with ModelServer([Reply(text="a long story", fault="hang mid-stream")]) as server:
        model = new_model(server.host)
        pieces = model.stream(request(model))
        assert isinstance(await first_piece(pieces), TextPiece)
        await server.asked[0].hanging.wait()
        await pieces.aclose()
        async with asyncio.timeout(PATIENCE):
            await server.asked[0].gone.wait()
        assert not server.asked[0].answered.is_set()


@pytest.mark.parametrize("fault", ["hang before headers", "hang after headers", "hang mid-stream"])
async def test_cancelling_whoever_reads_hangs_up_at_once(new_model: NewModel, fault: Any) -> None:
    async with ModelServer([Reply(text="a long story", fault=fault)]) as server:
        reader = asyncio.create_task(ask(new_model(server.host)))
        request = await server.wait_asked(1)
        await request.hanging.wait()
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        async with asyncio.timeout(PATIENCE):
            await request.gone.wait()


async def test_an_abandoned_reply_does_not_reach_the_next_one(new_model: NewModel) -> None:
    def by_number(request: ReceivedRequest) -> Reply:
        if request.number % 2:
            return Reply(text="abandoned " * 50, fault="hang mid-stream", after=20)
        return Reply(text="whole")

    async with ModelServer(by_number) as server:
        model = new_model(server.host)
        for _ in range(5):
            pieces = model.stream(request(model))
            await first_piece(pieces)
            await pieces.aclose()
            assert (await ask(model)).text == "whole"


async def test_a_server_that_keeps_the_connection_open_holds_nobody(new_model: NewModel) -> None:
    async with ModelServer([Reply(text="said it all", fault="keeps open")]) as server:
        assert (await ask(new_model(server.host))).text == "said it all"
        async with asyncio.timeout(PATIENCE):
            await server.asked[0].gone.wait()


# -- nobody there


async def test_a_port_that_nobody_listens_at_is_named(new_model: NewModel) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    url, query = f"http://user:{KEY}@127.0.0.1:{port}", f"?k={KEY}"
    error = await failure(new_model(url, api_key=None, query=query))
    assert error.kind == "unreachable"
    assert f"is http://127.0.0.1:{port}{FOLDERS[new_model.format]} the right address" in error.hint
    assert error.retry_after == 0.0


async def test_tls_to_a_server_without_it_is_unreachable(new_model: NewModel) -> None:
    async with ModelServer([]) as server:
        error = await failure(new_model(server.host.replace("http:", "https:")))
    assert error.kind == "unreachable"


@pytest.mark.parametrize("url", ["not an address", "ftp://127.0.0.1/v1", "http://[::1/v1", ""])
async def test_what_is_no_address_is_said_to_be_none(new_model: NewModel, url: str) -> None:
    error = await failure(new_model(url))
    assert (error.kind, error.retry_after) == ("not_configured", None)
    assert "begins with http:// or https://" in error.hint


async def test_a_server_that_hangs_up_before_its_answer_is_unreachable(new_model: NewModel) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        error = await failure(new_model(f"http://127.0.0.1:{port}"))
    assert error.kind == "unreachable"


async def test_a_query_in_the_address_stays_behind_the_path(new_model: NewModel) -> None:
    async with ModelServer([Reply(text="ok")]) as server:
        assert (await ask(new_model(server.host, query="/?api-version=1"))).text == "ok"


# -- secrets


@pytest.mark.parametrize(
    ("key", "headers"),
    [("sk-another-key-9876543210", None), (None, {"Authorization": "Bearer another-secret"})],
)
async def test_a_server_that_repeats_the_key_does_not_make_us_show_it(
    new_model: NewModel, key: str | None, headers: dict[str, str] | None
) -> None:
    async with ModelServer([], key=KEY) as server:
        model = new_model(server.host, api_key=key, headers=headers)
        error = await failure(model)
    assert error.kind == "auth"
    assert "[secret]" in error.message
    assert "another" not in f"{error} {error!r}"


@pytest.mark.parametrize("key", ["sk-with\nline-end", "sk-smart“quotes”"])
async def test_a_key_that_cannot_be_one_is_refused_without_showing_it(
    new_model: NewModel, key: str
) -> None:
    error = await failure(new_model("http://127.0.0.1:9", api_key=key))
    assert error.kind == "auth"
    assert key not in str(error)


async def test_spaces_around_a_key_do_no_harm(new_model: NewModel) -> None:
    async with ModelServer([Reply(text="ok")], key=KEY) as server:
        assert (await ask(new_model(server.host, api_key=f" {KEY}\n"))).text == "ok"


def test_with_nothing_configured_the_hint_says_exactly_what_to_do() -> None:
    error = not_configured()
    assert error.kind == "not_configured"
    for word in ("OPENAI_API_KEY", "[providers]", "config.toml", "keryx demo"):
        assert word in error.hint
