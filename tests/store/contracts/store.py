"""The contract of a store: logs, blobs, records and the outbox.

Inherit from `StoreContract` in a test class and define the fixture `subject`. The module `inbox`
tests commands; `projections` and `usage` test what a store derives from the log.
"""

from __future__ import annotations

import asyncio

import pytest

from keryx.errors import (
    AlreadyTakenError,
    FencedError,
    RecordChangedError,
    ScopeClosedError,
    SequenceError,
)
from keryx.events import LoggedEvent, PromptChanged
from keryx.messages import File
from keryx.ports.store import Blob, Commit, InboxRow, OutboxRow, RecordChange, Store, blob_hash
from keryx.testing.event_factory import EventFactory
from tests.store.contracts.inbox import InboxContract
from tests.store.contracts.projections import ProjectionContract
from tests.store.contracts.usage import UsageContract


def commit(epoch: int, *events: LoggedEvent, session_id: str = "s") -> Commit:
    return Commit(session_id=session_id, epoch=epoch, events=events)


def blob(data: bytes) -> Blob:
    return Blob(blob_hash(data), data)


class LogContract:
    """One gapless log for each session, written by its owner only."""

    async def test_what_is_appended_is_read_in_order(self, subject: Store) -> None:
        facts = EventFactory()
        epoch = await subject.claim("s")
        written = [facts.opened(), facts.accepted(), facts.delivered(), facts.started()]
        await subject.append(commit(epoch, *written[:1]))
        await subject.append(commit(epoch, *written[1:]))
        assert await subject.events("s") == written
        assert await subject.events("s", after=1, limit=2) == written[1:3]
        assert await subject.events("s", after=4) == []
        assert await subject.events("nobody") == []

    async def test_a_log_is_read_in_pages(self, subject: Store) -> None:
        facts = EventFactory()
        epoch = await subject.claim("s")
        written = [facts.opened(), *(facts.accepted(f"m{number}") for number in range(20))]
        await subject.append(commit(epoch, *written))
        pages: list[LoggedEvent] = []
        while page := await subject.events("s", after=len(pages), size=500):
            pages += page
        assert pages == written
        assert await subject.events("s", limit=3, size=10_000_000) == written[:3]

    async def test_a_session_is_made_with_its_first_events(self, subject: Store) -> None:
        facts = EventFactory()
        opened = facts.opened()
        epoch = await subject.create(commit(0, opened))
        assert await subject.events("s") == [opened]
        await subject.append(commit(epoch, facts.accepted()))
        with pytest.raises(AlreadyTakenError):
            await subject.create(commit(0, opened))
        assert await subject.claim("s") > epoch

    async def test_the_first_epoch_is_one_and_each_claim_fences_all_before(
        self, subject: Store
    ) -> None:
        facts = EventFactory()
        assert await subject.claim("s") == 1
        assert await subject.claim("s") == 2
        with pytest.raises(FencedError):
            await subject.append(commit(1, facts.opened()))
        with pytest.raises(FencedError):
            await subject.append(commit(3, EventFactory().opened()))
        assert await subject.events("s") == []
        await subject.append(commit(2, EventFactory().opened()))

    async def test_a_session_that_nobody_claimed_is_fenced(self, subject: Store) -> None:
        with pytest.raises(FencedError):
            await subject.append(commit(1, EventFactory().opened()))

    @pytest.mark.parametrize("seqs", [(2,), (0,), (1, 3), (1, 1), (2, 1)])
    async def test_a_gap_is_refused_and_nothing_is_written(
        self, subject: Store, seqs: tuple[int, ...]
    ) -> None:
        epoch = await subject.claim("s")
        events = [EventFactory(last_seq=seq - 1).opened() for seq in seqs]
        with pytest.raises(SequenceError):
            await subject.append(commit(epoch, *events))
        assert await subject.events("s") == []

    async def test_an_event_of_another_session_is_refused(self, subject: Store) -> None:
        epoch = await subject.claim("s")
        with pytest.raises(SequenceError):
            await subject.append(commit(epoch, EventFactory("other").opened()))

    async def test_positions_rise_over_all_sessions(self, subject: Store) -> None:
        positions: list[int] = []
        for name in ("a", "b", "c"):
            epoch = await subject.claim(name)
            positions.append(
                await subject.append(commit(epoch, EventFactory(name).opened(), session_id=name))
            )
        assert positions == sorted(set(positions))

    async def test_many_sessions_append_at_once_and_each_keeps_its_own_order(
        self, subject: Store
    ) -> None:
        async def fill(name: str) -> None:
            facts = EventFactory(name)
            epoch = await subject.claim(name)
            for _ in range(10):
                await subject.append(commit(epoch, facts.opened(), session_id=name))

        async with asyncio.TaskGroup() as group:
            for number in range(20):
                group.create_task(fill(str(number)))
        for number in range(20):
            events = await subject.events(str(number))
            assert [event.seq for event in events] == list(range(1, 11))
            assert {event.session_id for event in events} == {str(number)}

    async def test_one_that_is_refused_touches_none_of_those_beside_it(
        self, subject: Store
    ) -> None:
        epochs = {name: await subject.claim(name) for name in "abc"}
        epochs["b"] += 1
        outcomes = await asyncio.gather(
            *(
                subject.append(commit(epochs[name], EventFactory(name).opened(), session_id=name))
                for name in "abc"
            ),
            return_exceptions=True,
        )
        assert [isinstance(outcome, FencedError) for outcome in outcomes] == [False, True, False]
        assert [len(await subject.events(name)) for name in "abc"] == [1, 0, 1]

    async def test_times_that_go_back_change_no_order(self, subject: Store) -> None:
        facts = EventFactory()
        epoch = await subject.claim("s")
        for at in (300.0, 200.0, 100.0):
            facts.at = at
            await subject.append(commit(epoch, facts.opened()))
        assert [event.at for event in await subject.events("s")] == [300.0, 200.0, 100.0]

    async def test_a_closed_store_says_so_and_can_be_closed_again(self, subject: Store) -> None:
        epoch = await subject.claim("s")
        await subject.close()
        await subject.close()
        with pytest.raises(ScopeClosedError):
            await subject.append(commit(epoch, EventFactory().opened()))
        with pytest.raises(ScopeClosedError):
            await subject.events("s")


class KeepingContract:
    """Blobs, the outbox and records, and the deletion of a session."""

    async def test_a_record_changes_only_from_the_version_that_was_read(
        self, subject: Store
    ) -> None:
        epoch = await subject.claim("s")

        async def change(version: int, value: bytes) -> None:
            record = RecordChange("r", version, value)
            await subject.append(Commit(session_id="s", epoch=epoch, records=(record,)))

        assert await subject.record("r") is None
        await change(0, b"first")
        assert await subject.record("r") == (1, b"first")
        for stale in (0, 2):
            with pytest.raises(RecordChangedError):
                await change(stale, b"lost")
        await change(1, b"second")
        assert await subject.record("r") == (2, b"second")

    async def test_records_are_found_by_the_beginning_of_their_keys(self, subject: Store) -> None:
        epoch = await subject.claim("s")
        changes = tuple(RecordChange(key, 0, key.encode()) for key in ("b/1", "a/2", "a/1", "a%"))
        await subject.append(Commit(session_id="s", epoch=epoch, records=changes))
        assert list((await subject.records("a/")).items()) == [("a/1", b"a/1"), ("a/2", b"a/2")]
        assert await subject.records("c/") == {}

    async def test_a_record_that_is_dropped_is_gone_and_may_be_made_again(
        self, subject: Store
    ) -> None:
        epoch = await subject.claim("s")
        record = RecordChange("a/1", 0, b"first")
        await subject.append(Commit(session_id="s", epoch=epoch, records=(record,)))
        assert await subject.drop_record("a/1") is True
        assert await subject.drop_record("a/1") is False
        assert await subject.record("a/1") is None
        await subject.append(Commit(session_id="s", epoch=epoch, records=(record,)))
        assert await subject.record("a/1") == (1, b"first")

    async def test_a_record_of_no_session_is_kept_and_replaced(self, subject: Store) -> None:
        await subject.keep_record("a/1", b"first")
        await subject.keep_record("a/1", b"second")
        assert await subject.record("a/1") == (2, b"second")
        assert await subject.drop_record("a/1") is True

    async def test_the_outbox_keeps_its_order_until_it_is_sent(self, subject: Store) -> None:
        epoch = await subject.claim("s")
        rows = tuple(OutboxRow(name, "memory", b"do") for name in ("z", "y", "x"))
        other = OutboxRow("w", "mail", b"do")
        await subject.append(Commit(session_id="s", epoch=epoch, outbox=(*rows, other)))
        assert await subject.outbox("memory", limit=2) == list(rows[:2])
        await subject.sent(["y", "never"])
        assert await subject.outbox("memory") == [rows[0], rows[2]]
        assert await subject.outbox("mail") == [other]

    async def test_a_blob_goes_with_the_last_session_that_names_it(self, subject: Store) -> None:
        both, mine, pasted = blob(b"both"), blob(b"mine"), blob(b"pasted")
        epochs = {name: await subject.claim(name) for name in "ab"}
        await subject.append(Commit(session_id="a", epoch=epochs["a"], blobs=(both, mine, pasted)))
        await subject.append(Commit(session_id="b", epoch=epochs["b"], blobs=(both,)))
        # The second session only names the third blob in an event, as a fork would.
        facts = EventFactory("b")
        attached = facts.accepted(attachments=(File(pasted.hash, "text/plain"),))
        await subject.append(commit(epochs["b"], attached, session_id="b"))
        assert await subject.delete("a")
        contents = [await subject.blob(item.hash) for item in (both, mine, pasted)]
        assert contents == [b"both", None, b"pasted"]
        assert await subject.delete("b")
        assert await subject.blob(both.hash) is None
        assert await subject.blob(pasted.hash) is None

    async def test_everything_of_a_deleted_session_is_gone_and_nothing_of_others(
        self, subject: Store
    ) -> None:
        for name in "ab":
            facts = EventFactory(name)
            epoch = await subject.claim(name)
            prompt = blob(name.encode())
            events = (
                *(facts.opened(), facts.accepted(), facts.delivered(), facts.started()),
                *(facts.step(), facts.replied()),
                PromptChanged(session_id=name, at=0, seq=7, part="p", blob=prompt.hash),
            )
            await subject.append(
                Commit(
                    session_id=name,
                    epoch=epoch,
                    events=events,
                    claims=("c",),
                    blobs=(prompt,),
                    outbox=(OutboxRow(name, "t", b""),),
                )
            )
            await subject.enter(name, InboxRow("k", b""))
        assert await subject.delete("a")
        assert not await subject.delete("a")
        assert await subject.session("a") is None
        assert [row.session_id for row in await subject.sessions()] == ["b"]
        assert await subject.unfinished() == ["b"]
        assert [row.session_id for row in await subject.usage()] == ["b"]
        assert [row.id for row in await subject.outbox("t")] == ["b"]
        assert await subject.command("a", "k") is None
        assert await subject.transcript("a") == await subject.events("a") == []
        assert await subject.usage("a") == []
        assert len(await subject.events("b")) == 7
        assert len(await subject.transcript("b")) == 2

    async def test_an_old_owner_of_a_deleted_session_stays_fenced(self, subject: Store) -> None:
        old = await subject.claim("s")
        await subject.delete("s")
        assert await subject.claim("s") > old
        with pytest.raises(FencedError):
            await subject.append(commit(old, EventFactory().opened()))


class StoreContract(LogContract, InboxContract, KeepingContract, ProjectionContract, UsageContract):
    """Everything that sessions rely on in a store."""
