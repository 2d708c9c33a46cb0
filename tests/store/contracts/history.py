"""The contract of history: what the list tells of sessions, and what a search finds in them.

Part of what `test_contract` runs over every store.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from keryx.events import (
    CallStarted,
    ForkPoint,
    LoggedEvent,
    ParentCall,
    SessionChanged,
    TurnOutcome,
    Usage,
)
from keryx.messages import File, Json, Text, ToolCall
from keryx.ports.search import Found
from keryx.ports.store import Blob, Commit, RecordChange, SessionRow, Store, blob_hash, records_of
from keryx.testing.event_factory import EventFactory


class Log:
    """A session whose facts are appended as they are made."""

    def __init__(self, store: Store, epoch: int, session_id: str) -> None:
        self.store = store
        self.epoch = epoch
        self.facts = EventFactory(session_id)

    async def add(self, *events: LoggedEvent) -> int:
        return await self.store.append(
            Commit(session_id=self.facts.session_id, epoch=self.epoch, events=events)
        )

    async def say(self, text: str, reply: str = "", turn_id: str = "t1") -> None:
        facts = self.facts
        said = facts.accepted(turn_id, text, turn_id)
        await self.add(said, facts.delivered(turn_id, turn_id), facts.started(turn_id))
        await self.add(facts.replied(reply, turn_id=turn_id), facts.finished(turn_id))

    async def row(self) -> SessionRow:
        row = await self.store.session(self.facts.session_id)
        assert row is not None
        return row


async def log_of(store: Store, session_id: str = "s", *, person: str | None = None) -> Log:
    log = Log(store, await store.claim(session_id), session_id)
    await log.add(msgspec.structs.replace(log.facts.opened(), person=person))
    return log


def settings(facts: EventFactory, **values: object) -> SessionChanged:
    return msgspec.structs.replace(facts.renamed("title"), **values)


class HistoryContract:
    """What the list tells of each session."""

    async def test_the_list_tells_what_a_session_is_set_to(self, subject: Store) -> None:
        log = await log_of(subject)
        row = await log.row()
        assert (row.model, row.workspace) == ("scripted:one", "/w")
        assert (row.pinned, row.archived, row.failed) == (False, False, False)
        await log.add(settings(log.facts, model="other:two", pinned=True))
        await log.add(settings(log.facts, workspace="/elsewhere", title="named"))
        await log.add(log.facts.accepted())
        row = await log.row()
        assert (row.model, row.workspace, row.title) == ("other:two", "/elsewhere", "named")
        assert row.pinned
        await log.add(settings(log.facts, pinned=False))
        assert not (await log.row()).pinned

    @pytest.mark.parametrize(
        ("outcome", "failed"),
        [("failed", True), ("parked", True), ("completed", False), ("cancelled", False)],
    )
    async def test_a_session_whose_last_turn_failed_says_so(
        self, subject: Store, outcome: TurnOutcome, failed: bool
    ) -> None:
        log = await log_of(subject)
        facts = log.facts
        await log.add(facts.started(), facts.finished(outcome="failed"))
        assert (await log.row()).failed
        await log.add(facts.accepted("m2", turn_id="t2"))
        assert (await log.row()).failed
        await log.add(facts.started("t2"))
        assert not (await log.row()).failed
        await log.add(facts.finished("t2", outcome))
        assert (await log.row()).failed is failed

    async def test_undoing_the_turn_that_failed_is_no_failure_any_more(
        self, subject: Store
    ) -> None:
        log = await log_of(subject)
        facts = log.facts
        await log.add(facts.started(), facts.finished(outcome="failed"))
        await log.add(facts.undone("t0"))
        assert (await log.row()).failed
        await log.add(facts.undone("t1"))
        assert not (await log.row()).failed

    async def test_archived_sessions_have_a_list_of_their_own(self, subject: Store) -> None:
        logs = {name: await log_of(subject, name) for name in "abcd"}
        for name in "db":
            await logs[name].add(settings(logs[name].facts, archived=True))

        async def names(archived: bool | None, **bounds: Any) -> str:
            rows = await subject.sessions(archived=archived, **bounds)
            return "".join(row.session_id for row in rows)

        assert [row.session_id for row in await subject.sessions()] == ["c", "a"]
        assert await names(True) == "bd"
        assert await names(None) == "bdca"
        assert await names(None, limit=3) == "bdc"
        at = (await logs["d"].row()).position
        assert await names(None, before=at) == "ca"
        assert await names(None, after=at) == "b"
        await logs["d"].add(settings(logs["d"].facts, archived=False))
        assert await names(False) == "dca"
        assert await names(True) == "b"

    async def test_child_agents_are_listed_by_their_parent_only(self, subject: Store) -> None:
        await log_of(subject, "parent")
        call = ParentCall(session_id="parent", call_id="p1.0.1")
        for name, parent in (("child", "parent"), ("grandchild", "child")):
            log = Log(subject, await subject.claim(name), name)
            facts = log.facts
            opened = msgspec.structs.replace(
                facts.opened(), parent=msgspec.structs.replace(call, session_id=parent)
            )
            used = Usage(input_tokens=10, output_tokens=2)
            await log.add(opened, facts.step("one"), facts.replied(usage=used, cost=1.0))

        async def names(parent: str | None) -> list[str]:
            return sorted(row.session_id for row in await subject.sessions(parent=parent))

        assert await names("") == ["parent"]
        assert await names("parent") == ["child"]
        assert await names(None) == ["child", "grandchild", "parent"]
        row = await subject.session("child")
        assert row is not None
        assert row.parent == call
        usage = await subject.usage("parent")
        assert [entry.session_id for entry in usage] == ["child", "grandchild"]

    async def test_the_list_tells_for_whom_a_session_is(self, subject: Store) -> None:
        people = {"a": "web:ann", "b": "web:Ann", "c": None, "d": "web:ann"}
        for name, person in people.items():
            log = await log_of(subject, name, person=person)
            await log.add(settings(log.facts, title="named"))
            assert (await log.row()).person == person, "nothing that comes later changes it"
        assert {row.session_id: row.person for row in await subject.sessions()} == people
        for person, names in {"web:ann": "da", "web:Ann": "b", "": "c", "web:": ""}.items():
            rows = await subject.sessions(person=person)
            assert [row.session_id for row in rows] == list(names), person
        rows = await subject.sessions(person="web:ann", limit=1)
        assert [row.session_id for row in rows] == ["d"]

    async def test_the_list_tells_what_changed_since(self, subject: Store) -> None:
        logs = {name: await log_of(subject, name) for name in "abc"}
        seen = await logs["c"].add(logs["c"].facts.accepted())
        assert await subject.sessions(after=seen) == []
        await logs["a"].add(logs["a"].facts.accepted())
        assert [row.session_id for row in await subject.sessions(after=seen)] == ["a"]
        assert [row.session_id for row in await subject.sessions(after=0)] == ["a", "c", "b"]

    async def test_a_fork_is_not_charged_for_the_past_that_it_shares(self, subject: Store) -> None:
        used = Usage(input_tokens=10, output_tokens=2)
        log = Log(subject, await subject.claim("fork"), "fork")
        facts = log.facts
        opened = msgspec.structs.replace(facts.opened(), fork=ForkPoint(session_id="s", up_to=3))
        shared = (facts.step("one"), facts.replied(usage=used, cost=1.0))
        own = (facts.step("one"), facts.replied(usage=used, cost=0.5))
        await log.add(opened, *shared, *own)
        await log.add(facts.step("two"), facts.replied(usage=used, cost=0.25))
        rows = await subject.usage("fork")
        assert [(row.model, row.input_tokens, row.cost) for row in rows] == [
            ("one", 10, 0.5),
            ("two", 10, 0.25),
        ]

    async def test_a_blob_belongs_to_the_sessions_that_name_it(self, subject: Store) -> None:
        blobs = [Blob(blob_hash(data), data) for data in (b"one", b"two", b"three")]
        logs = {name: await log_of(subject, name) for name in "ab"}
        await subject.append(
            Commit(session_id="a", epoch=logs["a"].epoch, blobs=(blobs[0], blobs[1]))
        )
        facts = logs["b"].facts
        call: CallStarted = msgspec.structs.replace(facts.call(), arguments_blob=blobs[1].hash)
        await logs["b"].add(call, facts.accepted(attachments=(File(blobs[2].hash, "a/b"),)))

        async def owners(blob: Blob) -> str:
            return "".join([name for name in "abc" if await subject.names_blob(name, blob.hash)])

        assert [await owners(blob) for blob in blobs] == ["a", "ab", "b"]
        await subject.delete("a")
        assert [await owners(blob) for blob in blobs] == ["", "b", "b"]

    async def test_the_records_of_a_session_go_with_it(self, subject: Store) -> None:
        for name in ("a", "a%", "b"):
            epoch = await subject.claim(name)
            records = (
                RecordChange(records_of(name) + "draft", 0, name.encode()),
                RecordChange(f"other/{name}", 0, b"stays"),
            )
            await subject.append(Commit(session_id=name, epoch=epoch, records=records))
        await subject.delete("a")
        assert list((await subject.records("session/")).values()) == [b"a%", b"b"]
        await subject.delete("a%")
        assert list((await subject.records("session/")).values()) == [b"b"]
        assert list((await subject.records("other/")).values()) == [b"stays"] * 3


def marked(hit: Found) -> str:
    return "".join(f"[{piece.text}]" if piece.found else piece.text for piece in hit.snippet)


async def places(store: Store, words: str, limit: int = 20) -> list[tuple[str, int, str]]:
    return [(hit.session_id, hit.seq, hit.kind) for hit in await store.search(words, limit=limit)]


async def names(store: Store, words: str) -> str:
    return "".join(hit.session_id for hit in await store.search(words))


class SearchContract:
    """What a search finds, and what it does not."""

    async def test_words_are_found_where_they_were_said_answered_and_done(
        self, subject: Store
    ) -> None:
        log = await log_of(subject)
        facts = log.facts
        facts.at = 7.5
        said, delivered = facts.accepted(text="find the zebra"), facts.delivered()
        await log.add(said, delivered, facts.started())
        reply = facts.replied(
            "a zebra, I see",
            calls=(ToolCall("c1", "grep", '{"pattern": "zebra\\ncrossing", "n": [3, true]}'),),
        )
        value = Json(msgspec.Raw(b'{"of": "zebra"}'))
        done = msgspec.structs.replace(facts.called(), result=(Text("zebra.txt"), value))
        await log.add(reply, done)
        own = msgspec.structs.replace(
            facts.call("c2", None), arguments='{"command": "ls zebra"}', tool="terminal"
        )
        await log.add(own)
        assert await places(subject, "zebra") == [
            ("s", own.seq, "call"),
            ("s", done.seq, "call"),
            ("s", reply.seq, "reply"),
            ("s", reply.seq, "call"),
            ("s", delivered.seq, "message"),
        ]
        hits = await subject.search("zebra")
        assert [marked(hit) for hit in hits] == [
            "terminal ls [zebra]",
            "[zebra].txt [zebra]",
            "a [zebra], I see",
            "grep [zebra] crossing 3",
            "find the [zebra]",
        ]
        assert (hits[-1].at, hits[-1].turn_id) == (7.5, "t1")
        assert hits[0].turn_id is None
        assert await places(subject, "crossing terminal") == []
        assert await places(subject, "terminal") == [("s", own.seq, "call")]

    async def test_all_words_must_be_there_and_the_last_may_be_begun(self, subject: Store) -> None:
        log = await log_of(subject)
        await log.say("the quick brown fox", "jumps over the lazy dog")
        for words, count in [
            *(("quick fox", 1), ("fox quick", 1), ("quick dog", 0), ("qui", 1), ("uick", 0)),
            *(("bro qui", 0), ("brown qui", 1), ("the", 2), ("th", 2), ("t", 2), ("th ", 0)),
            *(("the ", 2), ("THE!", 2), ("quick-brown", 1), ("", 0), (" ", 0), ('"', 0)),
            *(("fox* OR dog", 0), ("NOT fox", 0), ("words:fox", 0), ('fox" x', 0)),
        ]:
            assert (words, len(await places(subject, words))) == (words, count)

    async def test_case_and_accents_do_not_matter(self, subject: Store) -> None:
        log = await log_of(subject)
        await log.say("Ein Café in ÅRHUS, Straße 5", "naïve cafe\u0301s")
        for words in ("cafe", "CAFÉ", "café", "cafe\u0301"):
            assert len(await places(subject, words)) == 2, words
        for words in ("arhus", "strasse", "STRASSE 5", "naive"):
            assert len(await places(subject, words)) == 1, words
        (hit,) = await subject.search("strasse")
        assert marked(hit) == "Ein Café in ÅRHUS, [Straße] 5"

    async def test_scripts_without_spaces_are_found_by_any_part(self, subject: Store) -> None:
        log = await log_of(subject)
        await log.say("東京都の天気を調べてください", "서울의 날씨는 맑습니다")
        await log.say("京東と天", "วันนี้อากาศดี", turn_id="t2")
        for words, count in [
            *(("天気", 1), ("東京", 1), ("京東", 1), ("京", 2), ("さい", 1), ("い", 1)),
            *(("気天", 0), ("東京 天気", 1), ("날씨", 1), ("씨는", 1), ("อากาศ", 1)),
            *(("東京の", 0), ("東京都の天気", 1), ("か", 0)),
        ]:
            assert (words, len(await places(subject, words))) == (words, count)
        (hit,) = await subject.search("天気")
        assert marked(hit) == "東京都の[天気]を調べてください"

    async def test_a_message_is_found_as_it_was_delivered_and_not_before(
        self, subject: Store
    ) -> None:
        log = await log_of(subject)
        facts = log.facts
        await log.add(facts.accepted("m1", "rough draft"), facts.accepted("m2", "withdrawn"))
        assert await places(subject, "draft") == []
        await log.add(facts.changed("m1", "fine text"), facts.withdrawn("m2"))
        delivered = facts.delivered("m1")
        await log.add(delivered)
        assert await places(subject, "fine") == [("s", delivered.seq, "message")]
        assert await places(subject, "draft") == await places(subject, "withdrawn") == []

    async def test_undone_turns_and_deleted_sessions_are_not_found(self, subject: Store) -> None:
        logs = {name: await log_of(subject, name) for name in "abc"}
        for name, log in logs.items():
            await log.say("needle one", turn_id="t1")
            await log.say("needle two", turn_id="t2")
            assert await names(subject, "needle") == name * 2 + "".join(
                other * 2 for other in "cba" if other < name
            )
        await logs["b"].add(logs["b"].facts.undone("t1"))
        assert await names(subject, "needle") == "bccaa"
        await subject.delete("c")
        assert await names(subject, "needle") == "baa"
        again = await log_of(subject, "c")
        assert await names(subject, "needle") == "baa"
        await again.say("needle anew")
        assert await names(subject, "needle") == "cbaa"

    async def test_words_together_come_first_then_the_last_changed_session(
        self, subject: Store
    ) -> None:
        logs = {name: await log_of(subject, name) for name in "abcd"}
        await logs["a"].say("red apple")
        await logs["b"].say("apple, red")
        await logs["c"].say("RED APPLE.")
        await logs["d"].say("a red, red apple tree and apples")
        assert await names(subject, "red apple") == "dcab"
        assert await names(subject, "red apples") == "d"
        assert await names(subject, "appl") == "dcba"
        await logs["b"].add(settings(logs["b"].facts, title="changed"))
        assert await names(subject, "apple") == "bdca"

    async def test_no_more_is_found_than_was_asked_for(self, subject: Store) -> None:
        log = await log_of(subject)
        await log.add(*(log.facts.replied(f"same {number}") for number in range(30)))
        assert len(await subject.search("same")) == 20
        assert [seq for _, seq, _ in await places(subject, "same", limit=3)] == [31, 30, 29]
        assert await subject.search("same", limit=0) == []

    async def test_a_search_for_a_person_finds_only_what_is_theirs(self, subject: Store) -> None:
        """However much others said since, and in front of what they said."""
        ann = await log_of(subject, "ann", person="web:ann")
        await ann.say("a zebra crossing", "one zebra")
        others: dict[str, str | None] = {"owner": None, "bob": "web:bob", "Ann": "web:Ann"}
        for name, person in others.items():
            log = await log_of(subject, name, person=person)
            for number in range(70):
                await log.say("zebra zebra crossing", turn_id=f"t{number}")
        for words, count in (("zebra", 2), ("zeb", 2), ("zebra cro", 1), ("crossing ", 1)):
            for limit in (1, 20):
                hits = await subject.search(words, limit=limit, person="web:ann")
                assert [hit.session_id for hit in hits] == ["ann"] * min(count, limit), words
        assert await subject.search("zebra", person="web:nobody") == []
        assert await subject.search("zebra", person="") == [], "no person has an empty name"
        assert {hit.session_id for hit in await subject.search("one zebra")} == {"ann"}

    async def test_of_long_texts_the_place_is_shown(self, subject: Store) -> None:
        log = await log_of(subject)
        await log.say("lorem ipsum " * 50 + "\n\n the needle\tin it " + "dolor sit " * 50)
        (hit,) = await subject.search("needle")
        text = marked(hit)
        assert " the [needle] in it dolor" in text
        assert text.startswith("…")
        assert text.endswith("…")
        assert len(text) < 200

    async def test_of_very_long_results_only_the_beginning_is_found(self, subject: Store) -> None:
        log = await log_of(subject)
        await log.add(log.facts.called(result=(Text("early " + "x " * 10_000 + "late"),)))
        key = "k" * 1000
        await log.say("a key: " + key + " and more")
        assert len(await places(subject, "early")) == 1
        assert await places(subject, "late") == []
        assert len(await places(subject, key)) == 1
        assert len(await places(subject, key[:50])) == 1
        assert len(await places(subject, "more")) == 1

    async def test_a_search_says_what_it_covers(self, subject: Store) -> None:
        assert (await subject.covered()).is_whole
        log = await log_of(subject)
        position = await log.add(log.facts.replied("said"))
        coverage = await subject.covered()
        assert (coverage.position, coverage.is_whole, coverage.problem) == (position, True, None)
