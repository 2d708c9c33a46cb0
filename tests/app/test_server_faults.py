"""Every fault of the model server, met by a whole session.

The turn has the right answer, or fails with an error that names the cause and what to do. Either
way the next message is answered: the server refuses every history that the API would refuse.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, Final, get_args

import pytest
import pytest_asyncio

from keryx import events as ev
from keryx.aio.clock import Clock, FakeClock
from keryx.app import Keryx, SessionHandle, TurnHandle, TurnResult
from keryx.errors import ErrorKind
from keryx.models.formats import adapter
from keryx.models.http import Clients, model_clients
from keryx.models.retry import ATTEMPTS, Retrying
from keryx.models.servers.providers import FORMATS
from keryx.testing.modelserver import MODEL, Call, Fault, ModelServer, Reply
from tests.app.hosts import (
    KEY,
    PATIENCE,
    Answers,
    cancelled,
    check_log,
    configure,
    first,
    keryx_beside,
    result_of,
    talking,
    until_shown,
)

pytestmark = pytest.mark.promise("sessions.5")

STORY: Final = "once upon a time there was a «stream» 🎉"
SUM: Final = Call("add", {"a": 2, "b": 3})
FIVE: Final = Reply(text="It is 5.")
FINE: Final = Reply(text="All is well.")

KINDS: Final[Mapping[Fault, ErrorKind | None]] = {
    "hang before headers": "stalled",
    "hang after headers": "stalled",
    "hang mid-stream": "stalled",
    "reset mid-stream": "bad_response",
    "close mid-stream": "bad_response",
    "end mid-stream": "bad_response",
    "garbage": "bad_response",
    "garbage mid-stream": "bad_response",
    "not http": "bad_response",
    "html": "bad_response",
    "error mid-stream": "bad_response",
    "wrong content type": None,
    "one byte at a time": None,
    "crlf": None,
    "one write": None,
    "no finish_reason": None,
    "no done": None,
    "no usage": None,
    "keeps open": None,
}
"""How a turn fails if the fault never passes; None: it is only odd, and the answer is right."""
NEVER_PASS: Final = {"garbage", "garbage mid-stream", "not http", "html"}
"""Who answers like this does not speak the API, and will not learn it by being asked again."""
ODD: Final = [fault for fault, kind in KINDS.items() if kind is None]
BAD: Final = [fault for fault, kind in KINDS.items() if kind is not None]
HANGS: Final = [fault for fault in BAD if fault.startswith("hang")]


def test_no_fault_is_forgotten() -> None:
    assert set(KINDS) == set(get_args(Fault))


# -- the model, and what became of a turn


@pytest_asyncio.fixture
async def clients() -> AsyncIterator[Clients]:
    owned = model_clients()
    yield owned.get
    await owned.close()


def quick(
    server: ModelServer, clients: Clients, clock: Clock | None = None, api: str = "chat"
) -> Retrying:
    """The model as a host makes it, but asking again at once, and by the test's own clock."""

    async def pause(delay: float) -> None:
        if server.asked and server.asked[-1].hanging.is_set():
            await server.asked[-1].gone.wait()

    model = adapter(api)(
        name=f"openai:{MODEL}",
        model=MODEL,
        base_url=server.url if api == "chat" else server.url_of(api),
        api_key=KEY,
        clients=clients,
        first_byte=60.0,
        between_bytes=30.0,
        clock=clock,
    )
    return Retrying(model, sleep=pause)


async def let_hangs_time_out(server: ModelServer, clock: FakeClock, times: int) -> None:
    for number in range(1, times + 1):
        request = await server.wait_asked(number)
        await request.hanging.wait()
        while not request.gone.is_set():
            # The reader may not have come to its wait yet; silence counts from there.
            clock.advance(31)
            await asyncio.sleep(0)


@asynccontextmanager
async def meanwhile(work: Awaitable[Any]) -> AsyncGenerator[None]:
    task = asyncio.ensure_future(work)
    try:
        yield
        await task
    finally:
        task.cancel()


def failed(result: TurnResult, kind: ErrorKind) -> ev.TurnError:
    """Why the turn failed; it says what to do, and shows no key."""
    assert result.outcome == "failed"
    assert result.error is not None
    assert result.error.kind == kind
    assert result.error.message
    assert result.error.hint
    assert KEY not in repr(result.error)
    return result.error


async def check_goes_on(
    app: Keryx, session: SessionHandle, server: ModelServer, answers: Answers, *said: str
) -> None:
    """The next message is answered; the history was always valid and holds all that was said."""
    answers.lined_up.clear()
    answers.always = FINE
    result = await result_of(await session.send("And now?"))
    assert (result.outcome, result.text) == ("completed", FINE.text)
    assert server.refused == []
    history = json.dumps(server.asked[-1].body, ensure_ascii=False)
    for text in (*said, "And now?"):
        assert history.count(text) == 1, f"{text!r} is lost or doubled"
    check_log(await app.store.events(session.session_id))


# -- faults


each_api = pytest.mark.parametrize("api", FORMATS)


@each_api
@pytest.mark.parametrize("fault", ODD)
async def test_what_is_only_odd_gives_the_right_answer(
    tmp_path: Path, fault: Fault, api: str
) -> None:
    answers = Answers(
        Reply(text=STORY, calls=(SUM,), fault=fault), Reply(text="It is 5.", fault=fault)
    )
    async with ModelServer(answers) as server, talking(tmp_path, server, api=api) as (app, session):
        result = await result_of(await session.send("2 + 3?"))
        assert (result.outcome, result.text) == ("completed", "It is 5.")
        assert [(call.tool, call.outcome) for call in result.calls] == [("add", "completed")]
        await check_goes_on(app, session, server, answers, "2 + 3?", STORY, "It is 5.")


@each_api
@pytest.mark.parametrize("fault", BAD)
async def test_a_fault_that_stays_fails_the_turn(
    tmp_path: Path, clients: Clients, clock: FakeClock, fault: Fault, api: str
) -> None:
    kind, hangs = KINDS[fault], fault in HANGS
    assert kind is not None
    answers = Answers(always=Reply(text=STORY, calls=(SUM,), fault=fault))
    times = 1 if fault in NEVER_PASS else ATTEMPTS
    async with ModelServer(answers) as server:
        model = quick(server, clients, clock if hangs else None, api)
        async with talking(tmp_path, server, model, api) as (app, session):
            turn = await session.send("2 + 3?")
            async with meanwhile(let_hangs_time_out(server, clock, times if hangs else 0)):
                error = failed(await result_of(turn), kind)
            assert (f"tried {ATTEMPTS} times" in error.message) == (fault not in NEVER_PASS)
            assert len(server.asked) == times
            await check_goes_on(app, session, server, answers, "2 + 3?")
            assert STORY[:8] not in server.asked[-1].raw.decode(), "it never came whole"


@each_api
@pytest.mark.parametrize("fault", [fault for fault in BAD if fault not in NEVER_PASS])
async def test_a_fault_that_passes_neither_doubles_nor_cuts_the_reply(
    tmp_path: Path, clients: Clients, clock: FakeClock, fault: Fault, api: str
) -> None:
    hangs = fault in HANGS
    answers = Answers(thinking(fault), thinking(None), FIVE)
    async with ModelServer(answers) as server:
        model = quick(server, clients, clock, api) if hangs else f"openai:{MODEL}"
        async with (
            talking(tmp_path, server, model, api) as (app, session),
            # Begun before anything is said: who comes later misses what has passed by then.
            aclosing(await session.follow()) as following,
        ):
            await session.change(effort="high")
            turn = await session.send("2 + 3?")
            async with meanwhile(let_hangs_time_out(server, clock, int(hangs))):
                check_replies(await until_finished(following), fault)
            assert (await result_of(turn)).text == "It is 5."
            await check_goes_on(app, session, server, answers, "2 + 3?", STORY, "It is 5.")


async def test_text_that_was_shown_before_the_fault_is_not_doubled(
    tmp_path: Path, clients: Clients, clock: FakeClock
) -> None:
    fault: Fault = "hang mid-stream"
    answers = Answers(thinking(fault), thinking(None), FIVE)
    async with (
        ModelServer(answers) as server,
        talking(tmp_path, server, quick(server, clients, clock)) as (app, session),
    ):
        turn = await session.send("2 + 3?")
        await until_shown(turn, STORY[:8])
        async with meanwhile(let_hangs_time_out(server, clock, 1)):
            events = await all_of(turn)
        (snapshot,) = (event for event in events if isinstance(event, ev.StepSnapshot))
        assert snapshot.text == STORY[:8]
        check_replies(events, fault)
        await check_goes_on(app, session, server, answers, "2 + 3?", STORY, "It is 5.")


def thinking(fault: Fault | None) -> Reply:
    """The fault comes after a part of the text, so that there is something to double."""
    return Reply(text=STORY, reasoning="I think.", calls=(SUM,), fault=fault, after=3)


async def all_of(turn: TurnHandle) -> list[ev.Event]:
    async with asyncio.timeout(PATIENCE):
        return [event async for event in turn.events()]


async def until_finished(following: AsyncIterator[ev.Event]) -> list[ev.Event]:
    events: list[ev.Event] = []
    async with asyncio.timeout(PATIENCE):
        async for event in following:
            events.append(event)
            if isinstance(event, ev.TurnFinished):
                break
    return events


def check_replies(events: Sequence[ev.Event], fault: Fault) -> None:
    """What was logged, and what was shown, of the first reply is that reply, once."""
    (retried,) = (event for event in events if isinstance(event, ev.ModelRetried))
    assert retried.cause == KINDS[fault]
    first, second = (event for event in events if isinstance(event, ev.StepReplied))
    assert (first.text, first.reasoning) == (STORY, "I think.")
    assert [(call.tool, call.arguments) for call in first.calls] == [("add", SUM.text)]
    assert second.text == "It is 5."
    (reset,) = (at for at, event in enumerate(events) if isinstance(event, ev.StepReset))
    # How much comes before the fault is up to the network.
    assert STORY.startswith(shown(events[:reset], first.step_id))
    assert shown(events[reset:], first.step_id) == STORY


def shown(events: Sequence[ev.Event], step_id: str) -> str:
    deltas = (event for event in events if isinstance(event, ev.TextDelta))
    return "".join(delta.text for delta in deltas if delta.step_id == step_id)


# -- refusals

SOON: Final = {"Retry-After-Ms": "1"}
TOO_LONG: Final = "This model's maximum context length is 8 tokens."


@pytest.mark.parametrize(
    ("reply", "kind", "times"),
    [
        (Reply(status=400), "bad_response", 1),
        (Reply(status=401, code="invalid_api_key"), "auth", 1),
        (Reply(status=402), "quota", 1),
        (Reply(status=403), "auth", 1),
        (Reply(status=404), "model_not_found", 1),
        (Reply(status=413), "context_too_long", 1),
        (Reply(status=400, code="context_length_exceeded"), "context_too_long", 1),
        (Reply(status=400, message=TOO_LONG), "context_too_long", 1),
        (Reply(text=STORY, fault="error mid-stream", message=TOO_LONG), "context_too_long", 1),
        (Reply(status=429, code="insufficient_quota"), "quota", 1),
        (Reply(status=429, headers={"Retry-After": "3600"}), "rate_limit", 1),
        (Reply(status=429, headers=SOON), "rate_limit", ATTEMPTS),
        (Reply(status=500, headers=SOON), "unreachable", ATTEMPTS),
        (Reply(status=503, headers=SOON), "unreachable", ATTEMPTS),
        (Reply(status=529, code="overloaded_error", headers=SOON), "unreachable", ATTEMPTS),
    ],
    ids=lambda value: f"{value.status} {value.code}" if isinstance(value, Reply) else None,
)
async def test_a_refusal_is_named_and_harms_nothing(
    tmp_path: Path, reply: Reply, kind: ErrorKind, times: int
) -> None:
    answers = Answers(always=reply)
    async with ModelServer(answers) as server, talking(tmp_path, server) as (app, session):
        error = failed(await result_of(await session.send("2 + 3?")), kind)
        assert reply.message in error.message
        assert len(server.asked) == times
        await check_goes_on(app, session, server, answers, "2 + 3?")


async def test_a_server_that_is_down_is_named_and_asked_again_by_the_next_message(
    tmp_path: Path, clients: Clients
) -> None:
    answers = Answers()
    async with ModelServer(answers) as before:
        url = before.url
    server = ModelServer(answers, port=int(url.rpartition(":")[2].partition("/")[0]))
    server.url = url
    async with talking(tmp_path, server, quick(server, clients)) as (app, session):
        error = failed(await result_of(await session.send("2 + 3?")), "unreachable")
        assert url in error.hint
        async with server:
            await check_goes_on(app, session, server, answers, "2 + 3?")


async def test_nobody_has_to_wait_as_long_as_a_server_asks_for(tmp_path: Path) -> None:
    busy = Reply(status=429, headers={"Retry-After": "100"})
    answers = Answers(busy, busy)
    async with ModelServer(answers) as server, talking(tmp_path, server) as (app, session):
        turn = await session.send("2 + 3?")
        assert (await first(turn, ev.ModelRetried)).delay == 100.0
        assert (await cancelled(turn)).reason == "interrupt"
        turn = await session.send("3 + 4?")
        await first(turn, ev.ModelRetried)
        answers.lined_up.append(Reply(text="It is 8."))
        await session.steer("4 + 4, I mean.")
        assert (await result_of(turn)).text == "It is 8."
        await check_goes_on(app, session, server, answers, "2 + 3?", "3 + 4?", "4 + 4, I mean.")


# -- silence, and people who do not wait for its end


@pytest.mark.parametrize("fault", HANGS)
async def test_cancelling_a_silent_reply_closes_its_connection(
    tmp_path: Path, fault: Fault
) -> None:
    answers = Answers(Reply(text=STORY, calls=(SUM,), fault=fault, after=3))
    async with ModelServer(answers) as server, talking(tmp_path, server) as (app, session):
        turn = await session.send("2 + 3?")
        request = await server.wait_asked(1)
        await request.hanging.wait()
        await cancelled(turn)
        async with asyncio.timeout(PATIENCE):
            await request.gone.wait()
        await check_goes_on(app, session, server, answers, "2 + 3?")


@pytest.mark.parametrize("fault", HANGS)
@pytest.mark.parametrize("verb", ["steer", "interrupt"])
async def test_a_silent_reply_is_cut_by_whoever_speaks(
    tmp_path: Path, fault: Fault, verb: str
) -> None:
    said = STORY[:16] if fault == "hang mid-stream" else ""
    answers = Answers(Reply(text=STORY, calls=(SUM,), fault=fault, after=3), FIVE)
    async with ModelServer(answers) as server, talking(tmp_path, server) as (app, session):
        turn = await session.send("2 + 3?")
        request = await server.wait_asked(1)
        await request.hanging.wait()
        if said:
            await until_shown(turn, said)
        later = await getattr(session, verb)("Never mind.")
        assert (await result_of(later)).text == "It is 5."
        assert (await result_of(turn)).outcome == {"steer": "completed"}.get(verb, "cancelled")
        async with asyncio.timeout(PATIENCE):
            await request.gone.wait()
        history = [message["role"] for message in server.asked[1].body["messages"]]
        assert history == ["system", "user", *(["assistant"] if said else []), "user"]
        shown_to_all = ("2 + 3?", "Never mind.", *([said] if said else []))
        await check_goes_on(app, session, server, answers, *shown_to_all)


@pytest.mark.parametrize("text", ["", STORY])
@pytest.mark.parametrize("verb", ["steer", "interrupt", "cancel"])
async def test_a_call_that_was_not_asked_for_to_the_end_is_dropped(
    tmp_path: Path, text: str, verb: str
) -> None:
    # The role, the text, the call's name, and a part of its arguments.
    after = 3 + -(-len(text) // 8)
    broken = Reply(text=text, calls=(SUM,), fault="hang mid-stream", after=after)
    answers = Answers(broken, always=FIVE)
    async with ModelServer(answers) as server, talking(tmp_path, server) as (app, session):
        turn = await session.send("2 + 3?")
        await until_shown(turn, text, call=True)
        if verb == "cancel":
            await cancelled(turn)
        else:
            assert (await result_of(await getattr(session, verb)("Go on."))).text == "It is 5."
        assert (await result_of(turn)).calls == ()
        await check_goes_on(app, session, server, answers, "2 + 3?", *filter(None, [text]))
        assert not any("tool_calls" in message for message in server.asked[-1].body["messages"])


# -- replies that are odd in themselves


@pytest.mark.parametrize("chunk", [100_000, 10_000_000])
async def test_a_very_large_reply_comes_whole(tmp_path: Path, chunk: int) -> None:
    text = "".join(f"{number:07d} " for number in range(500_000))
    answers = Answers(Reply(text=text, chunk=chunk))
    async with ModelServer(answers) as server, talking(tmp_path, server) as (app, session):
        assert (await result_of(await session.send("Count"))).text == text
        await check_goes_on(app, session, server, answers, "Count")
        assert text in server.asked[-1].raw.decode()


@pytest.mark.parametrize("fault", [None, "one byte at a time", "one write"])
async def test_arguments_cut_at_every_byte_come_together(
    tmp_path: Path, fault: Fault | None
) -> None:
    answers = Answers(Reply(calls=(SUM, SUM), chunk=1, fault=fault), FIVE)
    async with ModelServer(answers) as server, talking(tmp_path, server) as (app, session):
        result = await result_of(await session.send("2 + 3?"))
        assert [call.outcome for call in result.calls] == ["completed", "completed"]
        assert result.text == "It is 5."
        await check_goes_on(app, session, server, answers, "2 + 3?")


@pytest.mark.parametrize(
    "call",
    [
        *(Call("add", text) for text in ('{"a": 2,', "[2, 3]", '"2"', "null", "\x00", "NaN")),
        Call("add", {"a": "two", "b": 3}),
        Call("add", "[" * 100_000),
        Call("add", '{"a": 2, "b": 3}{"a": 2, "b": 3}'),
        Call("nothing_like_it", {"a": 2}),
        # Models invent these; the API takes no such name back.
        *(Call(name, {"a": 2}) for name in ("functions.add", "no such tool", "a" * 65, "+")),
    ],
    ids=lambda call: f"{call.tool[:20]} {call.text[:20]!r}",
)
async def test_a_call_that_cannot_be_is_the_models_to_mend(tmp_path: Path, call: Call) -> None:
    answers = Answers(Reply(text=STORY, calls=(call, SUM)), FIVE)
    async with ModelServer(answers) as server, talking(tmp_path, server) as (app, session):
        result = await result_of(await session.send("2 + 3?"))
        assert (result.outcome, result.text) == ("completed", "It is 5.")
        outcomes = {ended.tool: ended.outcome for ended in reversed(result.calls)}
        assert outcomes.pop(call.tool) == "failed"
        assert set(outcomes.values()) <= {"completed"}
        await check_goes_on(app, session, server, answers, "2 + 3?", STORY, "It is 5.")


async def test_a_reply_that_says_nothing_leaves_no_message(tmp_path: Path) -> None:
    answers = Answers(Reply())
    async with ModelServer(answers) as server, talking(tmp_path, server) as (app, session):
        result = await result_of(await session.send("2 + 3?"))
        assert (result.outcome, result.text) == ("completed", "")
        await check_goes_on(app, session, server, answers, "2 + 3?")


# -- the command line


async def test_the_command_line_names_the_cause_and_what_to_do(tmp_path: Path) -> None:
    answers = Answers(Reply(status=401, message="no such key"), Reply(fault="html"), FIVE)
    async with ModelServer(answers) as server:
        configure(tmp_path, server.url)
        run = ("run", "--model", f"openai:{MODEL}")
        code, out, err = await keryx_beside(tmp_path, *run, "2 + 3?")
        assert (code, out) == (1, "")
        assert "answered 401: no such key: check the key for http://127.0.0.1" in err
        code, out, _ = await keryx_beside(tmp_path, *run, "--json", "3 + 4?")
        end = json.loads(out.splitlines()[-1])
        assert (code, end["type"], end["error"]["kind"]) == (1, "turn.finished", "bad_response")
        session = ("--session", end["session_id"])
        assert await keryx_beside(tmp_path, *run, *session, "So?") == (0, "It is 5.\n", "")
        assert server.refused == []
    code, out, _ = await keryx_beside(tmp_path, "sessions", "show", end["session_id"])
    assert code == 0
    assert out.index("> 3 + 4?") < out.index("bad_response") < out.index("> So?")


async def test_the_command_line_prints_a_retried_reply_whole(tmp_path: Path) -> None:
    answers = Answers(Reply(text=STORY, fault="close mid-stream", after=3), Reply(text=STORY))
    async with ModelServer(answers) as server:
        configure(tmp_path, server.url)
        code, out, err = await keryx_beside(tmp_path, "run", "--model", f"openai:{MODEL}", "Tell")
    assert code == 0
    assert out.endswith(STORY + "\n")
    assert "was cut" in err
