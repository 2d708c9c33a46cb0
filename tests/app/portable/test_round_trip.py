"""A session that is exported as JSON and imported again is the same session."""

from __future__ import annotations

import base64
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from keryx import IN_MEMORY, NO_EFFECTS, Keryx, tool
from keryx import events as ev
from keryx.app.portable.importing import import_file, write_session
from keryx.app.portable.session_file import (
    SessionFile,
    decode_session,
    encode_session,
    named_blobs,
    read_session,
)
from keryx.errors import UserMustActError
from keryx.messages import Image
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply
from keryx.ports.model import ModelRequest
from keryx.ports.store import Blob, Commit, blob_hash
from keryx.store.memory import MemoryStore
from keryx.testing.event_factory import EventFactory

pytestmark = pytest.mark.promise("model.6")

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@tool(effects=NO_EFFECTS)
def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper() * 3000


def model() -> ScriptedModel:
    def script(request: ModelRequest) -> ScriptedReply:
        if len(request.history) == 1:
            return ScriptedReply(
                text="I shout.", reasoning="Loud?", calls=(ScriptedCall("shout", {"text": "é"}),)
            )
        return ScriptedReply(text="Done \U0001f600.")

    return ScriptedModel(script)


async def talk(home: Path, workspace: Path) -> str:
    async with Keryx(model=model(), tools=[shout], home=home, workspace=workspace) as app:
        session = await app.open()
        image = await app.upload(PNG, "dot.png", "image/png")
        await (await session.send("Shout <script>", attachments=[image])).result()
        return session.session_id


async def exported(home: Path, session_id: str, path: Path) -> SessionFile:
    async with Keryx(home=home, resume=False) as app:
        file = await read_session(app.store, session_id)
    path.write_bytes(encode_session(file))  # noqa: ASYNC240 (a test with one loop)
    return file


async def test_a_session_moves_to_another_home_and_goes_on_there(tmp_path: Path) -> None:
    session_id = await talk(tmp_path / "one", tmp_path)
    file = await exported(tmp_path / "one", session_id, tmp_path / "s.json")
    assert {blob.data for blob in file.blobs} >= {PNG}
    other = ScriptedModel(lambda _: ScriptedReply(text="Still here."))
    async with Keryx(model=other, tools=[shout], home=tmp_path / "two", workspace=tmp_path) as app:
        (imported,) = await import_file(app, tmp_path / "s.json", str(tmp_path))
        assert imported.session_id == session_id, "its id is free here"
        again = await read_session(app.store, session_id)
        assert [*map(ev.encode, again.events)] == [*map(ev.encode, file.events)]
        assert again.blobs == file.blobs
        session = await app.open(session_id)
        result = await (await session.send("And now?")).result()
        assert result.text == "Still here."
        (copy,) = await import_file(app, tmp_path / "s.json", str(tmp_path))
        assert copy.session_id != session_id, "its id is taken now"
        twin = await read_session(app.store, copy.session_id)
    assert "I shout." in str(other.asked[0].history)
    renamed = [msgspec.structs.replace(event, session_id=session_id) for event in twin.events]
    assert renamed == list(file.events)


async def test_a_session_is_imported_beside_a_running_host(tmp_path: Path) -> None:
    """A guest of the home writes it; the host opens it and goes on with it."""
    session_id = await talk(tmp_path / "one", tmp_path)
    await exported(tmp_path / "one", session_id, tmp_path / "s.json")
    other = ScriptedModel(lambda _: ScriptedReply(text="Yes."))
    async with (
        Keryx(model=other, tools=[shout], home=tmp_path / "two", workspace=tmp_path) as host,
        Keryx(home=tmp_path / "two", resume=False) as guest,
    ):
        assert guest.host_client.local_host is None
        (imported,) = await import_file(guest, tmp_path / "s.json", str(tmp_path))
        session = await host.open(imported.session_id)
        assert (await (await session.send("And?")).result()).text == "Yes."


def generated(seed: int) -> SessionFile:
    """A log of anything that can follow anything, with blobs of any content."""
    chance = random.Random(seed)
    facts = EventFactory("generated")
    texts = ["", "plain", "\0\x1b[31m", "äß漢\u2028", "</script>```", "\\ud800 '\""]
    data = [chance.randbytes(chance.randrange(300)) for _ in range(3)]
    blobs = tuple(Blob(blob_hash(content), content) for content in dict.fromkeys(data))
    events: list[ev.LoggedEvent] = [facts.opened(chance.choice(texts))]
    for number in range(chance.randrange(8)):
        turn, message, call = f"t{number}", f"m{number}", f"c{number}"
        image = Image(chance.choice(blobs).hash, "image/png", chance.choice(texts))
        accepted = facts.accepted(message, chance.choice(texts), turn)
        events.append(msgspec.structs.replace(accepted, attachments=(image,)))
        if chance.random() < 0.2:
            break
        events += [facts.started(turn, message), facts.delivered(message, turn)]
        if chance.random() < 0.8:
            events += [facts.step("one", turn), facts.replied(chance.choice(texts), turn_id=turn)]
            events += [facts.call(call, turn), facts.called(call, turn)]
        if chance.random() < 0.2:
            break
        events += [facts.finished(turn)]
        if chance.random() < 0.3:
            events += [facts.undone(turn)]
    hashes = {*named_blobs(events)}
    named = sorted((blob for blob in blobs if blob.hash in hashes), key=lambda blob: blob.hash)
    return SessionFile(events=tuple(events), blobs=tuple(named))


@pytest.mark.parametrize("seed", range(40))
async def test_generated_sessions_come_back_the_same(seed: int) -> None:
    file = generated(seed)
    assert decode_session(encode_session(file)) == file
    store = MemoryStore()
    session_id = await write_session(store, decode_session(encode_session(file)), at=5000.0)
    again = await read_session(store, session_id)
    count = len(file.events)
    assert [*map(ev.encode, again.events[:count])] == [*map(ev.encode, file.events)]
    assert sorted(again.blobs, key=lambda blob: blob.hash) == list(file.blobs)
    # What was under way is closed by further facts, so that nothing of it happens twice.
    kinds = {type(event) for event in again.events[count:]}
    assert kinds <= {ev.TurnCancelling, ev.MessageWithdrawn}
    await store.close()


async def test_a_turn_that_was_running_is_not_run_again(tmp_path: Path) -> None:
    facts = EventFactory("running")
    events = (
        *(facts.opened(), facts.accepted(), facts.started("t1", "m1"), facts.delivered()),
        *(
            facts.step(),
            facts.replied("I call."),
            facts.call(),
            facts.accepted("m2", "later", "t2"),
        ),
    )
    (tmp_path / "s.json").write_bytes(encode_session(SessionFile(events=events)))
    unused = ScriptedModel(lambda _: ScriptedReply(text="never"), name="scripted:one")
    async with Keryx(model=unused, home=tmp_path / "home", workspace=tmp_path) as app:
        await import_file(app, tmp_path / "s.json", str(tmp_path))
    async with Keryx(model=unused, home=tmp_path / "home", workspace=tmp_path) as app:
        session = await app.open("running")
        async for event in session.events():
            if isinstance(event, ev.TurnFinished):
                assert event.outcome == "cancelled"
                break
    assert unused.asked == []


USED = {"type": "usage.recorded", "purpose": "title", "model": "m", "cost": None}
WRONG_FIELDS: dict[str, dict[str, Any]] = {
    "other session": {"session_id": "other"},
    "unknown event": {"type": "turn.exploded"},
    "time": {"at": 1e15},
    "usage": {**USED, "usage": {"input_tokens": 1 << 63}},
}


def broken(change: str) -> bytes:
    value = msgspec.json.decode(encode_session(generated(3)))
    match change:
        case str() if change in WRONG_FIELDS:
            value["events"][1] |= WRONG_FIELDS[change]
        case "gap":
            del value["events"][1]
        case "no opening":
            value["events"] = value["events"][1:]
        case "blob":
            hash_ = next(iter(value["blobs"]))
            value["blobs"][hash_] = base64.b64encode(b"other").decode()
        case "base64":
            hash_ = next(iter(value["blobs"]))
            value["blobs"][hash_] = "%%%"
        case "version":
            value["version"] = 99
        case "order":
            value["events"][1] = {**value["events"][2], "seq": 2}
        case _:
            value["events"] = 7
    return msgspec.json.encode(value)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ("gap", "event 2: its seq is 3"),
        ("other session", "event 2: it is of another session"),
        ("no opening", "event 1"),
        ("unknown event", "event 2: "),
        ("blob", "its content has another hash"),
        ("base64", "it is not base64"),
        ("version", "version is 99"),
        ("time", r"event 2: its time is 1e\+15, and must be in seconds"),
        ("usage", r"event \d+: its usage has counts that cannot be"),
        ("type", r"\$.events"),
    ],
)
async def test_a_broken_export_is_refused_with_its_place_and_imports_nothing(
    change: str, place: str, tmp_path: Path
) -> None:
    (tmp_path / "s.json").write_bytes(broken(change))
    async with Keryx(home=IN_MEMORY, model="scripted:demo") as app:
        with pytest.raises(UserMustActError, match=place) as caught:
            await import_file(app, tmp_path / "s.json", str(tmp_path))
        assert await app.store.sessions(parent=None, archived=None) == []
    assert str(tmp_path / "s.json") in str(caught.value)


@pytest.mark.parametrize(
    "has_end", [True, False], ids=["a turn that ended", "a turn that was open"]
)
async def test_a_log_with_a_call_that_never_ended_is_refused(
    tmp_path: Path, *, has_end: bool
) -> None:
    """A model would see nothing of what is said after that call."""
    session_id = await talk(tmp_path / "one", tmp_path)
    file = await exported(tmp_path / "one", session_id, tmp_path / "s.json")
    left_out = (ev.CallFinished,) if has_end else (ev.CallFinished, ev.TurnFinished)
    events = [event for event in file.events if not isinstance(event, left_out)]
    numbered = [
        msgspec.structs.replace(event, seq=number) for number, event in enumerate(events, 1)
    ]
    broken = SessionFile(events=tuple(numbered), blobs=file.blobs)
    (tmp_path / "s.json").write_bytes(encode_session(broken))
    async with Keryx(home=IN_MEMORY, workspace=tmp_path) as app:
        with pytest.raises(UserMustActError, match="contradict each other; nothing of it"):
            await import_file(app, tmp_path / "s.json", str(tmp_path))


async def test_a_log_of_many_events_is_written_whole_or_not_at_all() -> None:
    facts = EventFactory("long")
    events = [facts.opened(), *(facts.renamed(f"title {number}") for number in range(4500))]
    store = MemoryStore()
    appends = 0
    append = store.append

    async def failing(commit: Commit) -> int:
        nonlocal appends
        appends += 1
        if appends == 2:
            raise OSError("no space")
        return await append(commit)

    store.append = failing
    with pytest.raises(OSError, match="no space"):
        await write_session(store, SessionFile(events=tuple(events)), at=1.0)
    assert await store.session("long") is None
    store.append = append
    await write_session(store, SessionFile(events=tuple(events)), at=1.0)
    assert await store.events("long") == events
    await store.close()
