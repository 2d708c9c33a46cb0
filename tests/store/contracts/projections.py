"""The contract of what a store derives from the logs: lists, states, transcripts.

Part of `StoreContract`.
"""

from __future__ import annotations

import asyncio

import msgspec

from keryx.events import LoggedEvent, MessageAccepted, SessionOpened, StepReplied
from keryx.ports.store import Commit, InboxRow, Store
from keryx.ports.tags import TagCount
from keryx.ports.view import RestingSession
from keryx.testing.event_factory import EventFactory


class _Log:
    """A session whose facts are appended as they are made."""

    def __init__(self, store: Store, epoch: int, session_id: str) -> None:
        self.store = store
        self.epoch = epoch
        self.facts = EventFactory(session_id)

    async def add(self, *events: LoggedEvent) -> int:
        return await self.store.append(
            Commit(session_id=self.facts.session_id, epoch=self.epoch, events=events)
        )

    async def state(self) -> str:
        row = await self.store.session(self.facts.session_id)
        assert row is not None
        return row.state


async def log_of(store: Store, session_id: str = "s") -> _Log:
    log = _Log(store, await store.claim(session_id), session_id)
    await log.add(log.facts.opened())
    return log


async def texts(store: Store, *, before: int | None = None, limit: int = 50) -> list[str]:
    rows = await store.transcript("s", before=before, limit=limit)
    return [
        event.text if isinstance(event, MessageAccepted | StepReplied) else type(event).__name__
        for event in (row.event for row in rows)
    ]


class ProjectionContract:
    """Everything that is read of a session is made of its log."""

    # -- the list

    async def test_the_list_shows_the_last_changed_first_and_has_pages(
        self, subject: Store
    ) -> None:
        logs = [await log_of(subject, name) for name in "abcd"]
        logs[1].facts.at = 1.0  # its clock is far behind, and it is the last to change
        await logs[1].add(logs[1].facts.renamed("b's"))
        page = await subject.sessions(limit=3)
        assert [row.session_id for row in page] == ["b", "d", "c"]
        assert (page[0].title, page[0].last_seq, page[0].changed_at) == ("b's", 2, 1.0)
        assert page[0].created_at == 1000.0
        rest = await subject.sessions(limit=3, before=page[-1].position)
        assert [row.session_id for row in rest] == ["a"]
        assert await subject.session("b") == page[0]

    async def test_a_session_without_a_fact_is_in_no_list(self, subject: Store) -> None:
        await subject.claim("s")
        assert await subject.sessions() == []
        assert await subject.session("s") is None

    async def test_the_title_is_the_last_that_was_given(self, subject: Store) -> None:
        log = await log_of(subject)
        await log.add(log.facts.renamed("first"), log.facts.renamed("second"))
        await log.add(log.facts.accepted())
        row = await subject.session("s")
        assert row is not None
        assert row.title == "second"

    async def test_sessions_are_listed_by_their_tags_in_any_case(self, subject: Store) -> None:
        logs = [await log_of(subject, name) for name in "abc"]
        await logs[0].add(logs[0].facts.tagged("work", "Straße"))
        await logs[1].add(logs[1].facts.tagged("Work"))
        await logs[2].add(msgspec.structs.replace(logs[2].facts.tagged("old"), archived=True))
        assert [row.session_id for row in await subject.sessions(tag="WORK")] == ["b", "a"]
        assert [row.tags for row in await subject.sessions(tag="strasse")] == [("Straße", "work")]
        assert await subject.sessions(tag="old") == []
        assert [row.session_id for row in await subject.sessions(tag="old", archived=True)] == ["c"]
        assert await subject.tags() == [
            TagCount(name="old", sessions=0, archived=1),
            TagCount(name="Straße", sessions=1, archived=0),
            TagCount(name="Work", sessions=2, archived=0),
        ]
        await logs[0].add(logs[0].facts.tagged())
        await subject.delete("b")
        assert [tag.name for tag in await subject.tags()] == ["old"]
        row = await subject.session("a")
        assert row is not None
        assert row.tags == ()

    # -- states

    async def test_a_damaged_session_is_shown_as_such_until_it_is_written_again(
        self, subject: Store
    ) -> None:
        log = await log_of(subject)
        before = await subject.session("s")
        await subject.mark_damaged("s")
        assert await log.state() == "damaged"
        row = await subject.session("s")
        assert row is not None
        assert before is not None
        assert row.position > before.position
        await log.add(log.facts.started())
        assert await log.state() == "running"

    async def test_a_session_runs_waits_and_rests(self, subject: Store) -> None:
        log = await log_of(subject)
        facts = log.facts
        assert await log.state() == "idle"
        await log.add(facts.started())
        assert await log.state() == "running"
        await log.add(facts.asked("a1"), facts.asked("a2"))
        assert await log.state() == "waiting"
        await log.add(facts.answered("a1"))
        assert await log.state() == "waiting"
        await log.add(facts.answered("a2"))
        assert await log.state() == "running"
        await log.add(facts.resumed(), facts.finished())
        assert await log.state() == "idle"

    async def test_what_begins_and_ends_in_one_commit_leaves_nothing_open(
        self, subject: Store
    ) -> None:
        log = await log_of(subject)
        facts = log.facts
        await log.add(
            *(facts.accepted(), facts.delivered(), facts.started()),
            *(facts.asked(), facts.answered(), facts.finished()),
        )
        assert await log.state() == "idle"
        assert await subject.unfinished() == []

    async def test_unfinished_are_those_with_a_turn_a_message_or_a_command(
        self, subject: Store
    ) -> None:
        logs = {name: await log_of(subject, name) for name in "abcde"}
        await logs["a"].add(logs["a"].facts.started())
        await logs["b"].add(logs["b"].facts.accepted("m1"), logs["b"].facts.accepted("m2"))
        await subject.enter("c", InboxRow("k", b""))
        await logs["d"].add(logs["d"].facts.call(turn_id=None))
        assert sorted(await subject.unfinished()) == ["a", "b", "c", "d"]
        await logs["a"].add(logs["a"].facts.finished())
        await logs["b"].add(logs["b"].facts.withdrawn("m1"))
        await subject.append(Commit(session_id="c", epoch=1, consumes=("k",)))
        await logs["d"].add(logs["d"].facts.called(turn_id=None))
        assert await subject.unfinished() == ["b"]
        await logs["b"].add(logs["b"].facts.delivered("m2"))
        assert await subject.unfinished() == []

    async def test_a_session_at_rest_is_told_without_its_log(self, subject: Store) -> None:
        assert await subject.resting("s") is None
        log = await log_of(subject)
        facts = log.facts
        opened = (await subject.events("s"))[0]
        assert isinstance(opened, SessionOpened)
        assert await subject.resting("s") == RestingSession(
            seq=1, settings=(opened,), last_reply=None
        )
        await log.add(facts.accepted(), facts.started(), facts.delivered(), facts.step())
        assert await subject.resting("s") is None
        await log.add(facts.replied("first"))
        moved, last = facts.moved("/elsewhere"), facts.replied("last")
        await log.add(moved, last)
        await log.add(facts.finished())
        resting = await subject.resting("s")
        assert resting == RestingSession(
            seq=facts.last_seq, settings=(opened, moved), last_reply=last
        )
        earlier, summed = facts.compacted("earlier"), facts.compacted()
        await log.add(earlier, summed)
        resting = await subject.resting("s")
        assert resting is not None
        assert (resting.last_reply, resting.compacted) == (last, summed)
        await log.add(facts.started("t2"), facts.replied("newer", turn_id="t2"))
        await log.add(facts.finished("t2"))
        resting = await subject.resting("s")
        assert resting is not None
        assert resting.compacted is None
        await subject.enter("s", InboxRow("k", b"a command"))
        assert await subject.resting("s") is None

    # -- transcripts

    async def test_a_transcript_is_what_a_person_reads(self, subject: Store) -> None:
        log = await log_of(subject)
        facts = log.facts
        await log.add(facts.accepted(text="do it"), facts.delivered(), facts.started())
        await log.add(facts.step(), facts.replied("I will"), facts.call())
        await log.add(facts.called(), facts.step())
        await log.add(facts.replied("done"), facts.finished())
        assert await texts(subject) == ["do it", "I will", "CallFinished", "done"]

    async def test_a_failed_turn_and_a_person_s_own_call_are_read_too(self, subject: Store) -> None:
        log = await log_of(subject)
        facts = log.facts
        await log.add(facts.started(), facts.finished(outcome="failed"))
        await log.add(facts.call(turn_id=None), facts.called(turn_id=None))
        assert await texts(subject) == ["TurnFinished", "CallStarted", "CallFinished"]

    async def test_a_message_stands_where_it_was_delivered_as_it_was_then(
        self, subject: Store
    ) -> None:
        log = await log_of(subject)
        facts = log.facts
        await log.add(facts.accepted("m1", "one", "t1"), facts.accepted("m2", "two", "t2"))
        await log.add(facts.accepted("m3", "never", "t3"))
        await log.add(facts.changed("m2", "two, but better"))
        await log.add(facts.changed("m2", "two at its best"), facts.withdrawn("m3"))
        await log.add(facts.delivered("m1", "t1"), facts.replied("first answer"))
        delivered = facts.delivered("m2", "t9")
        await log.add(delivered)
        await log.add(facts.accepted("m4", "rough"), facts.changed("m4", "fine"))
        await log.add(facts.delivered("m4"))
        assert await texts(subject) == ["one", "first answer", "two at its best", "fine"]
        row = (await subject.transcript("s"))[2]
        assert isinstance(row.event, MessageAccepted)
        assert (row.seq, row.event.turn_id) == (delivered.seq, "t9")

    async def test_a_transcript_has_pages_from_its_end(self, subject: Store) -> None:
        log = await log_of(subject)
        await log.add(*(log.facts.replied(str(number)) for number in range(5)))
        page = await subject.transcript("s", limit=2)
        assert await texts(subject, limit=2) == ["3", "4"]
        assert await texts(subject, before=page[0].seq, limit=2) == ["1", "2"]
        assert await texts(subject, before=page[0].seq) == ["0", "1", "2"]
        assert await texts(subject, limit=0) == []

    async def test_a_transcript_goes_on_from_any_place(self, subject: Store) -> None:
        log = await log_of(subject)
        await log.add(*(log.facts.replied(str(number)) for number in range(5)))
        first = (await subject.transcript("s", limit=5))[0].seq
        following = await subject.transcript("s", after=first, limit=2)
        assert [row.seq for row in following] == [first + 1, first + 2]
        rest = await subject.transcript("s", after=following[-1].seq, limit=9)
        assert [row.seq for row in rest] == [first + 3, first + 4]
        assert await subject.transcript("s", after=rest[-1].seq) == []

    async def test_what_changed_the_course_is_read_as_quiet_lines(self, subject: Store) -> None:
        log = await log_of(subject)
        facts = log.facts
        await log.add(facts.started(), facts.resumed(), facts.retried(), facts.switched("two"))
        await log.add(facts.moved("/elsewhere"), facts.renamed("not worth a line"))
        await log.add(facts.finished(), facts.warned("t2", "nobody knows that personality"))
        assert await texts(subject) == [
            *("TurnResumed", "ModelRetried", "ModelSwitched"),
            *("SessionChanged", "TurnStarted"),
        ]
        await log.add(facts.undone("t1"))
        assert await texts(subject) == ["SessionChanged", "TurnStarted"]

    async def test_an_undone_turn_is_not_read_any_more(self, subject: Store) -> None:
        log = await log_of(subject)
        facts = log.facts
        for turn in ("t1", "t2"):
            await log.add(facts.accepted(turn, turn, turn), facts.delivered(turn, turn))
            await log.add(facts.started(turn), facts.replied(turn, turn_id=turn))
            await log.add(facts.finished(turn))
        await log.add(facts.undone("t2"))
        assert await texts(subject) == ["t1", "t1"]

    async def test_a_turn_that_is_restored_is_read_again(self, subject: Store) -> None:
        log = await log_of(subject)
        facts = log.facts
        for turn in ("t1", "t2"):
            await log.add(facts.accepted(turn, turn, turn), facts.delivered(turn, turn))
            await log.add(facts.started(turn), facts.replied(turn, turn_id=turn))
            await log.add(facts.finished(turn))
        await log.add(facts.undone("t1"))
        assert await texts(subject) == ["t2", "t2"]
        await log.add(facts.undone("t2"), facts.restored("t1", "t1", "t2"))
        assert await texts(subject) == ["t1", "t1", "TurnRestored"]
        await log.add(facts.undone("t1"), facts.restored("t2"))
        assert await texts(subject) == ["t2", "t2"]

    # -- at once

    async def test_who_reads_while_others_write_sees_whole_commits(self, subject: Store) -> None:
        log = await log_of(subject)

        async def write() -> None:
            for _ in range(30):
                await log.add(log.facts.replied("a"), log.facts.replied("b"))

        async def read() -> None:
            while len(events) < 61:
                events[:] = await subject.events("s")
                assert len(events) % 2 == 1

        events: list[LoggedEvent] = []
        async with asyncio.TaskGroup() as group:
            group.create_task(write())
            group.create_task(read())
        assert [event.seq for event in events] == list(range(1, 62))
