"""The contract of a store's inbox: commands and answers. Part of `StoreContract`."""

from __future__ import annotations

import pytest

from keryx.errors import (
    AlreadyEnteredError,
    AlreadyTakenError,
    FencedError,
    KeyReusedError,
    SequenceError,
)
from keryx.ports.store import Commit, InboxRow, OutboxRow, Store
from keryx.testing.event_factory import EventFactory


class InboxContract:
    """A command takes effect once, and the first answer wins."""

    async def test_a_command_enters_once_and_waits_until_it_is_consumed(
        self, subject: Store
    ) -> None:
        epoch = await subject.claim("s")
        rows = [InboxRow("z", b"1"), InboxRow("a", b"2"), InboxRow("m", b"3")]
        for row in rows:
            assert await subject.enter("s", row)
        assert not await subject.enter("s", rows[0])
        assert await subject.pending("s") == rows
        await subject.append(Commit(session_id="s", epoch=epoch, consumes=("z", "m")))
        assert await subject.pending("s") == [rows[1]]
        assert not await subject.enter("s", rows[0])
        assert await subject.command("s", "z") == rows[0]
        assert await subject.command("s", "never") is None
        assert await subject.pending("nobody") == []

    async def test_a_command_of_the_owner_enters_and_is_consumed_in_one_commit(
        self, subject: Store
    ) -> None:
        epoch = await subject.claim("s")
        row = InboxRow("k", b"body")
        await subject.append(Commit(session_id="s", epoch=epoch, enters=(row,)))
        assert await subject.pending("s") == []
        assert await subject.command("s", "k") == row
        again = Commit(
            session_id="s", epoch=epoch, events=(EventFactory().opened(),), enters=(row,)
        )
        with pytest.raises(AlreadyEnteredError):
            await subject.append(again)
        assert await subject.events("s") == []

    async def test_a_key_with_another_body_is_refused(self, subject: Store) -> None:
        epoch = await subject.claim("s")
        await subject.enter("s", InboxRow("k", b"one"))
        with pytest.raises(KeyReusedError):
            await subject.enter("s", InboxRow("k", b"two"))
        other = Commit(session_id="s", epoch=epoch, enters=(InboxRow("k", b"two"),))
        with pytest.raises(KeyReusedError):
            await subject.append(other)
        assert await subject.pending("s") == [InboxRow("k", b"one")]

    async def test_the_same_key_in_two_sessions_is_two_commands(self, subject: Store) -> None:
        for name in "ab":
            await subject.claim(name)
            assert await subject.enter(name, InboxRow("k", name.encode()))

    async def test_nothing_enters_a_session_that_is_not_there(self, subject: Store) -> None:
        with pytest.raises(FencedError):
            await subject.enter("nobody", InboxRow("k", b""))
        assert await subject.unfinished() == []

    async def test_what_was_consumed_cannot_be_consumed_again(self, subject: Store) -> None:
        epoch = await subject.claim("s")
        await subject.enter("s", InboxRow("k", b""))
        await subject.append(Commit(session_id="s", epoch=epoch, consumes=("k",)))
        with pytest.raises(AlreadyTakenError):
            await subject.append(Commit(session_id="s", epoch=epoch, consumes=("k",)))
        with pytest.raises(SequenceError):
            await subject.append(Commit(session_id="s", epoch=epoch, consumes=("never",)))

    async def test_a_command_that_was_withdrawn_may_come_again(self, subject: Store) -> None:
        epoch = await subject.claim("s")
        withdrawing = Commit(session_id="s", epoch=epoch, withdraws=("k",))
        await subject.enter("s", InboxRow("k", b"one"))
        await subject.append(withdrawing)
        assert await subject.pending("s") == []
        assert await subject.command("s", "k") is None
        with pytest.raises(SequenceError):
            await subject.append(withdrawing)
        assert await subject.enter("s", InboxRow("k", b"two"))

    async def test_the_first_claim_of_a_name_wins(self, subject: Store) -> None:
        epoch = await subject.claim("s")
        answers = [
            Commit(session_id="s", epoch=epoch, claims=("a1",), outbox=(OutboxRow(who, "t", b""),))
            for who in ("one", "two")
        ]
        await subject.append(answers[0])
        with pytest.raises(AlreadyTakenError):
            await subject.append(answers[1])
        assert [row.id for row in await subject.outbox("t")] == ["one"]

    async def test_the_same_twice_in_one_commit_is_refused(self, subject: Store) -> None:
        epoch = await subject.claim("s")
        row = OutboxRow("o", "t", b"")
        for twice in (
            Commit(session_id="s", epoch=epoch, claims=("a", "a")),
            Commit(session_id="s", epoch=epoch, outbox=(row, row)),
        ):
            with pytest.raises(AlreadyTakenError):
                await subject.append(twice)
        keys = (InboxRow("k", b"1"), InboxRow("k", b"2"))
        with pytest.raises(KeyReusedError):
            await subject.append(Commit(session_id="s", epoch=epoch, enters=keys))
        assert await subject.outbox("t") == []
