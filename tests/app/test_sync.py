"""The blocking library is the async one: the same names, parameters, defaults and words."""

from __future__ import annotations

import inspect
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from keryx import IN_MEMORY, NO_EFFECTS, ToolContext, app, sync, tool
from keryx import commands as cm
from keryx import events as ev
from keryx.app.handles import SessionHandle, TurnHandle
from keryx.app.memory.memory_client import MemoryClient
from keryx.errors import DeadlineError, DeveloperMustActError
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply
from keryx.ports.store import Store

pytestmark = pytest.mark.promise("mended.13")

TWINS: list[tuple[type, type]] = [
    (app.Keryx, sync.Keryx),
    (SessionHandle, sync.Session),
    (TurnHandle, sync.Turn),
    (Store, sync.Logs),
    (MemoryClient, sync.Memories),
]
NOT_BLOCKING = {
    "host_client": "what front ends use; they have a loop",
    "__aenter__": "__enter__ here",
    "__aexit__": "__exit__ here",
    "__enter__": "__aenter__ there",
    "__exit__": "__aexit__ there",
}
WRITING = {
    "claim",
    "append",
    "enter",
    "sent",
    "delete",
    "close",
    "drop_record",
    "keep_record",
    "mark_damaged",
    "create",
}
INSIDE = {
    "pending",
    "command",
    "resting",
    "unfinished",
    "names_blob",
    "outbox",
    "record",
    "records",
}
"""What only the engine reads of a store."""
MORE = {("Turn", "result"): {"timeout"}}
"""A blocking wait has a timeout; async code has `asyncio.timeout`."""
WORDS = {
    "app.": "",
    "AsyncGenerator": "Generator",
    "SessionHandle": "Session",
    "TurnHandle": "Turn",
    "-> 'Store'": "-> 'Logs'",
    "-> 'MemoryClient'": "-> 'Memories'",
}


def names_of(kind: type) -> set[str]:
    special = {"__init__", "__enter__", "__exit__", "__aenter__", "__aexit__"}
    named = {name for name in vars(kind) if not name.startswith("_")} | (special & set(vars(kind)))
    if kind is Store:
        named = (named | {"usage"}) - WRITING - INSIDE  # the one of the sums that programs need
    if kind not in (app.Keryx, sync.Keryx):
        named -= {"__init__"}  # made by Keryx, never by a program
    return named - set(NOT_BLOCKING)


def signature_of(member: Any, owner: str, name: str) -> str:
    function: Any = getattr(member, "fget", member)
    signature = inspect.signature(function)
    extra = MORE.get((owner, name), set())
    parameters = [
        parameter for parameter in signature.parameters.values() if parameter.name not in extra
    ]
    text = str(signature.replace(parameters=parameters))
    for word, other in WORDS.items():
        text = text.replace(word, other)
    return text


@pytest.mark.parametrize(("there", "here"), TWINS, ids=lambda kind: kind.__name__)
def test_both_have_the_same_names(there: type, here: type) -> None:
    assert names_of(there) == names_of(here)


@pytest.mark.parametrize(
    ("there", "here", "name"),
    [(there, here, name) for there, here in TWINS for name in sorted(names_of(there))],
)
def test_each_name_has_the_same_parameters_and_words(there: type, here: type, name: str) -> None:
    one, other = inspect.getattr_static(there, name), inspect.getattr_static(here, name)
    assert signature_of(one, there.__name__, name) == signature_of(other, here.__name__, name)
    words = inspect.getdoc(one)
    if words and (here.__name__, name) not in MORE:
        assert inspect.getdoc(other) == words
    assert not inspect.iscoroutinefunction(other)


def test_the_classes_say_the_same() -> None:
    for there, here in TWINS[:3]:
        assert inspect.getdoc(there) == inspect.getdoc(here)


@tool(effects=NO_EFFECTS)
async def choose(context: ToolContext) -> str:
    """Ask a person."""
    return str(await context.ask("Which?", ["a", "b"]))


def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def test_all_of_it_works_from_several_threads(tmp_path: Path) -> None:
    model = ScriptedModel(
        [
            ScriptedReply(text="First."),
            ScriptedReply(text='{"n": 5}'),
            ScriptedReply(calls=[ScriptedCall("choose")]),
            ScriptedReply(text="b it is."),
            ScriptedReply(text="A summary."),
        ]
    )
    with sync.Keryx(
        model=model, tools=[choose, double], workspace=tmp_path, home=IN_MEMORY
    ) as app_:
        session = app_.open(effort="low", approvals="never")
        uploaded = app_.upload(b"hello", "hello.txt", "text/plain")
        first = session.send("One", attachments=[uploaded], key="one")
        assert first.result(timeout=20).text == "First."
        schema = '{"type": "object", "required": ["n"]}'
        assert session.send("Two", schema=schema).result(timeout=20).data == {"n": 5}
        third = session.send("Three", attended=True)

        def answer() -> None:
            for event in session.events():
                if isinstance(event, ev.QuestionAsked):
                    session.answer_question(event.question_id, "b")
                if isinstance(event, ev.TurnFinished) and event.turn_id == third.turn_id:
                    return

        other = threading.Thread(target=answer)
        other.start()
        assert third.result(timeout=20).text == "b it is."
        other.join()
        session.change(title="A title")
        assert session.view().settings.title == "A title"
        session.undo(third.turn_id)
        fork = session.fork(first.turn_id)
        assert fork.view().settings.model == "scripted:demo"
        assert session.diff() == ""
        session.compact()
        session.tell(cm.SetDraft, text="half a though")
        finished = list(session.run("double", '{"number": 4}'))
        assert isinstance(finished[-1], ev.CallFinished)
        assert {row.session_id for row in app_.store.sessions()} == {
            session.session_id,
            fork.session_id,
        }
        assert app_.delete(fork.session_id)
        assert app_.store.session(fork.session_id) is None


def test_steering_interrupting_and_cancelling_block_until_they_are_durable(tmp_path: Path) -> None:
    held = threading.Event()

    def script(request: object) -> ScriptedReply:
        del request
        return ScriptedReply(text="Once upon a time", pause=0.0 if held.is_set() else 30.0)

    with sync.Keryx(model=ScriptedModel(script), home=tmp_path) as app_:
        session = app_.open()
        turn = session.send("Tell")
        with pytest.raises(DeadlineError):
            turn.result(timeout=0.01)
        steered = session.steer("shorter", wait=True)
        assert steered.turn_id == turn.turn_id
        held.set()
        interrupted = session.interrupt("now this")
        assert interrupted.result(timeout=20).outcome == "completed"
        assert turn.result(timeout=20).outcome == "cancelled"
        assert turn.cancel().outcome == "cancelled"
        assert turn.cancel(call="none") is False


def test_it_says_where_it_can_be_used(tmp_path: Path) -> None:
    app = sync.Keryx(model="scripted:demo", home=tmp_path)
    with pytest.raises(DeveloperMustActError, match="use it inside `with"):
        app.open()
    with app:
        session = app.open()
        reading, writing = os.pipe()
        if (pid := os.fork()) == 0:
            try:
                session.send("Hi")
            except DeveloperMustActError as error:
                os.write(writing, str(error).encode())
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        os.close(writing)
        assert b"make one in each process" in os.read(reading, 1000)
        os.close(reading)
