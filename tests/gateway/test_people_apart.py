"""What one person tells the agent reaches no other: not as a memory, and not by a search."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from keryx import Keryx
from keryx import events as ev
from keryx.app.portable.importing import import_file
from keryx.app.portable.session_file import encode_session, read_session
from keryx.gateway.gateway_file import FILE
from keryx.gateway.talk import plans
from keryx.gateway.talk.performer import MIXED
from keryx.ports.memory import memory_profile
from keryx.testing.modelserver import Call, ReceivedRequest, Reply
from tests.gateway.bot_api import BotApi
from tests.gateway.chat_home import ANN, BEN, GROUP, chatting, last_text
from tests.gateway.test_webhook import posting
from tests.memory.test_vector_host import until_indexed
from tests.server.served_host import in_thread

pytestmark = pytest.mark.promise("chat.7")

NOTES = '[memory]\nproviders = ["notes"]\nwait = 20\n'
VECTOR = '[memory]\nproviders = ["vector"]\nwait = 20\n'
NEST = "The heron nests behind the mill."
MENTION = {"entities": [{"type": "mention", "offset": 0, "length": 10}]}
ORDER = re.compile(r"(?P<word>remember|remove|recall|search|delegate|slowly): (?P<rest>.*)")
TOOLS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "remember": ("memory", "text", {"action": "add"}),
    "remove": ("memory", "id", {"action": "remove"}),
    "recall": ("recall", "words", {}),
    "search": ("session_search", "words", {}),
    "delegate": ("delegate", "tasks", {}),
}
SLOW = Reply(text="word " * 400, pace=0.05)


class Agent:
    """A model that does as it is told: remember, recall, search, hand on, change or remove."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, request: ReceivedRequest) -> Reply:
        self.asked.append(json.dumps(request.body["messages"]))
        last = request.body["messages"][-1]
        if last["role"] == "tool":
            return Reply(text=f"It says: {last['content']}")
        order = ORDER.search(last_text(request))  # in a group a name stands before it
        if order is None:
            return Reply(text="Nothing is new.")
        if order["word"] == "slowly":
            return SLOW
        tool, argument, others = TOOLS[order["word"]]
        value = [{"task": order["rest"]}] if tool == "delegate" else order["rest"]
        return Reply(calls=(Call(tool, {**others, argument: value}),))


async def says(api: BotApi, person: int, text: str, *, chat: int | None = None) -> str:
    """Say something, and return the answer."""
    chat = person if chat is None else chat
    before = len(api.sent(chat))
    fields: dict[str, Any] = {} if chat == person else MENTION
    api.say(person, text if chat == person else f"@keryx_bot {text}", chat=chat, **fields)

    def answer() -> str | None:
        sent = [message for message in api.sent(chat)[before:] if not message.buttons]
        return sent[-1].text if sent else None

    shown: str = await api.wait(answer)
    return shown


async def memories(app: Keryx) -> dict[str, str]:
    """The texts that are remembered, and whose they are."""
    return {memory.text: memory.profile for memory in await app.memory.export()}


async def persons(app: Keryx) -> set[str | None]:
    return {row.person for row in await app.store.sessions(parent=None)}


async def test_what_ann_told_is_ben_s_in_no_way(tmp_path: Path) -> None:
    """The finding: Ben's question, about nothing, was sent to the model with Ann's memory."""
    agent = Agent()
    async with chatting(tmp_path, agent, extra=NOTES) as (api, _, app):
        await says(api, ANN, f"remember: {NEST}")
        agent.asked.clear()
        await says(api, BEN, "What is new?")
        await says(api, BEN, "What is new about the heron and its nests?")
        for word in ("recall", "search"):
            assert "behind the mill" not in await says(api, BEN, f"{word}: heron")
        (memory,) = await app.memory.export()
        assert "there is no memory" in await says(api, BEN, f"remove: {memory.id}")
        assert "behind the mill" not in "".join(agent.asked), "nothing of it went to the model"
        assert await memories(app) == {NEST: f"default/telegram:{ANN}"}
        assert await persons(app) == {f"telegram:{ANN}", f"telegram:{BEN}"}


async def test_ann_keeps_it_in_all_her_sessions_and_over_a_restart(tmp_path: Path) -> None:
    agent, api = Agent(), BotApi()
    async with chatting(tmp_path, agent, api=api, extra=NOTES) as (_, _, app):
        await says(api, ANN, f"remember: {NEST}")
        await says(api, ANN, "/new")
        agent.asked.clear()
        await says(api, ANN, "What is new about the heron and its nests?")
        assert "behind the mill" in agent.asked[-1], "it was given"
    async with chatting(tmp_path, agent, api=api, extra=NOTES) as (_, _, app):
        for word in ("recall", "search"):
            assert "behind the mill" in await says(api, ANN, f"{word}: heron"), word
            assert "behind the mill" not in await says(api, BEN, f"{word}: heron"), word
        assert await persons(app) == {f"telegram:{ANN}", f"telegram:{BEN}"}
        (own,) = [path for path in await in_thread(notes_of, tmp_path) if NEST in path.read_text()]
        assert own.parent.name.startswith(f"default-telegram-{ANN}-")


def notes_of(path: Path) -> list[Path]:
    return sorted((path / "home" / "memory").glob("*/user.md"))


async def test_the_owner_shares_everything_with_the_page_and_sees_what_others_have(
    tmp_path: Path,
) -> None:
    agent = Agent()
    async with chatting(tmp_path, agent, extra=NOTES, allow=[BEN], owner=[ANN]) as (api, _, app):
        page = await app.open()
        await (await page.send(f"remember: {NEST}")).result()
        await says(api, BEN, "remember: Ben keeps bees.")
        assert "behind the mill" in await says(api, ANN, "recall: heron")
        assert page.session_id[-4:] in await says(api, ANN, "/sessions")
        assert "Ben keeps bees" not in await says(api, ANN, "recall: bees"), "they are Ben's"
        assert "Ben keeps bees" in await says(api, ANN, "search: bees"), "the home is the owner's"
        assert await memories(app) == {
            NEST: "default",
            "Ben keeps bees.": f"default/telegram:{BEN}",
        }
        for person in (BEN, ANN):
            assert page.session_id[-4:] not in await says(api, person, "/sessions", chat=GROUP)
        (bees,) = [memory for memory in await app.memory.export() if "bees" in memory.text]
        await app.memory.edit(bees.id, "Ben keeps goats.")
        assert "Ben keeps goats." in await says(api, BEN, "recall: Ben keeps goats")


async def test_a_chat_goes_on_in_sessions_of_its_own_person_only(tmp_path: Path) -> None:
    agent = Agent()
    async with chatting(tmp_path, agent, extra=NOTES) as (api, _, app):
        await says(api, ANN, f"remember: {NEST}")
        (row,) = await app.store.sessions()
        page = await app.open()
        await (await page.send("Hello")).result()
        await says(api, BEN, "What is new?")
        for session_id in (row.session_id, page.session_id):
            assert session_id[-4:] not in await says(api, BEN, "/sessions")
            answer = await says(api, BEN, f"/sessions {session_id[-4:]}")
            assert "There is no such session" in answer
        assert row.session_id[-4:] in await says(api, ANN, "/sessions")


@pytest.mark.parametrize(
    ("by", "ben_gets_it"), [("chat", True), ("topic", True), ("person", False)]
)
async def test_a_group_has_memories_of_its_own_unless_each_person_has(
    tmp_path: Path, by: str, *, ben_gets_it: bool
) -> None:
    agent = Agent()
    settings: dict[str, Any] = {"sessions": by, "owner": [ANN]}
    async with chatting(tmp_path, agent, extra=NOTES, **settings) as (api, _, app):
        await says(api, ANN, "remember: The private jar is blue.")
        await says(api, ANN, f"remember: {NEST}", chat=GROUP)
        agent.asked.clear()
        in_group = await says(api, BEN, "recall: heron", chat=GROUP)
        assert ("behind the mill" in in_group) == ben_gets_it
        for person in (ANN, BEN):
            assert "blue" not in await says(api, person, "recall: jar", chat=GROUP)
            assert "blue" not in await says(api, person, "search: jar", chat=GROUP)
        assert "behind the mill" not in await says(api, BEN, "recall: heron")
        of_group = f"telegram-chat:{GROUP}" if ben_gets_it else f"telegram:{ANN}"
        assert await memories(app) == {
            "The private jar is blue.": "default",
            NEST: memory_profile("default", of_group),
        }


async def test_a_child_agent_and_a_fork_are_for_the_same_person(tmp_path: Path) -> None:
    agent = Agent()
    async with chatting(tmp_path, agent, extra=NOTES) as (api, _, app):
        await says(api, ANN, f"remember: {NEST}")
        (row,) = await app.store.sessions()
        for word in ("recall", "search"):
            assert "behind the mill" in await says(api, ANN, f"delegate: {word}: heron"), word
            assert "behind the mill" not in await says(api, BEN, f"delegate: {word}: heron"), word
        children = [row for row in await app.store.sessions(parent=None) if row.parent is not None]
        assert {child.person for child in children} == {f"telegram:{ANN}", f"telegram:{BEN}"}
        fork = await (await app.open(row.session_id)).fork()
        forked = await app.store.session(fork.session_id)
        assert forked is not None
        assert forked.person == f"telegram:{ANN}"
        recalled = await (await fork.send("recall: heron")).result()
        assert "behind the mill" in recalled.text
        ben = next(row for row in await app.store.sessions() if row.person == f"telegram:{BEN}")
        of_ben = await (await app.open(ben.session_id)).fork()
        recalled = await (await of_ben.send("recall: heron")).result()
        assert "behind the mill" not in recalled.text


async def test_a_search_by_meaning_finds_what_the_same_person_said(tmp_path: Path) -> None:
    agent = Agent()
    async with chatting(tmp_path, agent, extra=VECTOR) as (api, _, _):
        await says(api, ANN, "How do I brew a cup of coffee?")
        await until_indexed(tmp_path / "home", 2)
        await says(api, ANN, "/new")
        wanted = "preparing a hot drink"
        assert "brew a cup" not in await says(api, BEN, f"search: {wanted}")
        assert "brew a cup" in await says(api, ANN, f"search: {wanted}")
        assert "brew a cup" not in await says(api, BEN, f"recall: {wanted}")
        assert "brew a cup" in await says(api, ANN, f"recall: {wanted}")


async def test_an_imported_session_belongs_to_who_imports_it(tmp_path: Path) -> None:
    async with chatting(tmp_path, Agent()) as (api, _, app):
        await says(api, BEN, "What is new?")
        (row,) = await app.store.sessions()
        file = tmp_path / "exported.json"
        exported = encode_session(await read_session(app.store, row.session_id))
        await in_thread(file.write_bytes, exported)
        (copy,) = await import_file(app, file, str(tmp_path / "workspace"))
        imported = await app.store.session(copy.session_id)
        assert imported is not None
        assert (row.person, imported.person) == (f"telegram:{BEN}", None)


# -- sessions of a version that kept nobody apart


async def test_an_old_session_of_somebody_else_than_the_owner_goes_on_nowhere(
    tmp_path: Path,
) -> None:
    """As owners, both have sessions without a person, as all had before."""
    agent, api = Agent(), BotApi()
    async with chatting(tmp_path, agent, api=api, extra=NOTES, owner=[ANN, BEN]) as (_, _, app):
        await says(api, ANN, f"remember: {NEST}")
        assert "behind the mill" in await says(api, BEN, "recall: heron")
        assert await persons(app) == {None}
        old = {row.session_id for row in await app.store.sessions()}
    agent.asked.clear()
    async with chatting(tmp_path, agent, api=api, extra=NOTES, owner=[ANN]) as (_, _, app):
        for text in ("What is new about the heron?", "recall: heron", "search: heron"):
            assert "behind the mill" not in await says(api, BEN, text)
        assert "behind the mill" not in "".join(agent.asked)
        for session_id in old:
            assert session_id[-4:] not in await says(api, BEN, "/sessions")
        (new,) = await app.store.sessions(person=f"telegram:{BEN}")
        assert new.session_id not in old
        assert "behind the mill" in await says(api, ANN, "What is new? recall: heron")
        assert {row.session_id for row in await app.store.sessions()} == {*old, new.session_id}


async def test_an_old_turn_under_way_is_stopped_before_it_is_answered(tmp_path: Path) -> None:
    agent, api = Agent(), BotApi()
    async with chatting(tmp_path, agent, api=api, owner=[ANN, BEN]) as (_, _, app):
        for person in (ANN, BEN):
            api.say(person, "slowly: tell me")
            await api.wait(lambda person=person: any(m.buttons for m in api.sent(person)))
    async with chatting(tmp_path, agent, api=api, owner=[ANN]) as (_, _, app):
        await api.wait(lambda: MIXED in api.texts(BEN))
        (status,) = api.sent(BEN)
        assert (status.text, status.buttons) == (MIXED, {})
        await api.wait(lambda: api.sent(ANN)[0].text.startswith("word word") or None)
        outcomes = [
            event.outcome
            for row in await app.store.sessions()
            for event in await app.store.events(row.session_id)
            if isinstance(event, ev.TurnFinished)
        ]
        assert outcomes == ["cancelled"]
        assert "Nothing is new" in await says(api, BEN, "What is new?")


async def test_a_message_that_was_planned_before_goes_to_a_session_of_its_person(
    tmp_path: Path,
) -> None:
    agent, api = Agent(), BotApi()
    async with chatting(tmp_path, agent, api=api, extra=NOTES, owner=[BEN]) as (_, _, app):
        await says(api, BEN, f"remember: {NEST}")
        (old,) = await app.store.sessions()
    agent.asked.clear()
    plan = plans.SendPlan(session_id=old.session_id, key="k", text="What is new about the heron?")
    await in_thread(plan_again, tmp_path / "home" / FILE, plan)
    async with chatting(tmp_path, agent, api=api, extra=NOTES) as (_, _, app):
        await api.wait(lambda: "Nothing is new." in api.texts(BEN))
        assert "behind the mill" not in "".join(agent.asked)
        assert await persons(app) == {None, f"telegram:{BEN}"}


async def test_a_message_that_was_planned_and_stopped_before_is_stopped_where_it_goes(
    tmp_path: Path,
) -> None:
    agent, api = Agent(), BotApi()
    async with chatting(tmp_path, agent, api=api, owner=[BEN]) as (_, _, app):
        await says(api, BEN, "What is new?")
        (old,) = await app.store.sessions()
    plan = plans.SendPlan(
        session_id=old.session_id, key="k", text="slowly: tell me", is_stopped=True
    )
    await in_thread(plan_again, tmp_path / "home" / FILE, plan)
    async with chatting(tmp_path, agent, api=api) as (_, _, app):
        await api.wait(lambda: any(text.endswith("Stopped.") for text in api.texts(BEN)))
        assert await persons(app) == {None, f"telegram:{BEN}"}


def plan_again(path: Path, plan: plans.Plan) -> None:
    """Let the last update wait with this plan, as one does whose process was killed."""
    body = b'{"update_id": 990, "message": ' + msgspec.json.encode(_message()) + b"}"
    with closing(sqlite3.connect(path)) as connection, connection:
        (source,) = connection.execute("SELECT source FROM updates LIMIT 1").fetchone()
        connection.execute(
            "INSERT INTO updates (source, key, number, lane, body, state, plan, at)"
            " VALUES (?, '990', 990, ?, ?, 'waiting', ?, 0.0)",
            (source, f"{BEN}/", body, plans.encode(plan)),
        )


def _message() -> dict[str, Any]:
    person = {"id": BEN, "is_bot": False, "first_name": "Ben"}
    chat = {"id": BEN, "type": "private", "first_name": "Ben"}
    return {"message_id": 990, "date": 1, "chat": chat, "from": person, "text": "What is new?"}


# -- the same on the other platform


async def test_two_people_of_one_webhook_are_kept_apart_also_in_one_chat(tmp_path: Path) -> None:
    agent = Agent()
    async with posting(tmp_path, agent, allow=["ann", "bob"], extra=NOTES) as program:
        said: dict[str, Any] = {"chat": "ann", "person": "ann", "text": f"remember: {NEST}"}
        assert await program.post(**said) == 202
        await program.texts(1)
        agent.asked.clear()
        for number, (chat, text) in enumerate(
            [("bob", "What is new?"), ("ann", "What is new?"), ("ann", "search: heron")]
        ):
            assert await program.post(id=f"b{number}", chat=chat, person="bob", text=text) == 202
            assert "behind the mill" not in "".join(await program.texts(1))
        assert "behind the mill" not in "".join(agent.asked)
        assert await program.post(id="a1", chat="other", person="ann", text="recall: heron") == 202
        assert "behind the mill" in "".join(await program.texts(1))
        assert await persons(program.app) == {"webhook:ann", "webhook:bob"}
        count = len(await program.app.store.sessions())
        for number, person in enumerate(("ann", "bob", "ann")):
            fields = {"id": f"c{number}", "chat": "ann", "person": person, "text": "And now?"}
            assert await program.post(**fields) == 202
            await program.texts(1)
        assert len(await program.app.store.sessions()) == count, "each goes on in their own"


async def test_a_group_of_a_webhook_says_that_it_is_one(tmp_path: Path) -> None:
    agent = Agent()
    async with posting(tmp_path, agent, allow=["ann", "bob"], extra=NOTES) as program:
        group: dict[str, Any] = {"chat": "room/1", "group": True}
        text = f"remember: {NEST}"
        assert await program.post(id="1", person="ann", text=text, **group) == 202
        await program.texts(1)
        assert await program.post(id="2", person="bob", text="recall: heron", **group) == 202
        assert "behind the mill" in "".join(await program.texts(1))
        assert await program.post(id="3", chat="bob", person="bob", text="recall: heron") == 202
        assert "behind the mill" not in "".join(await program.texts(1))
        assert await persons(program.app) == {"webhook-chat:room%2F1", "webhook:bob"}


async def test_the_owner_of_a_webhook_shares_with_the_page(tmp_path: Path) -> None:
    agent = Agent()
    settings: dict[str, Any] = {"allow": ["bob"], "owner": ["ann"]}
    async with posting(tmp_path, agent, extra=NOTES, **settings) as program:
        page = await program.app.open()
        async with asyncio.timeout(30):
            await (await page.send(f"remember: {NEST}")).result()
        for person in ("ann", "bob"):
            assert await program.post(id=person, person=person, text="recall: heron") == 202
            (answer,) = await program.texts(1)
            assert ("behind the mill" in answer) == (person == "ann")
