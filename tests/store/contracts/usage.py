"""The contract of a store's sums of tokens and cost. Part of `StoreContract`."""

from __future__ import annotations

import asyncio

from keryx.events import Usage
from keryx.ports.store import Store
from keryx.ports.usage import UsageRow
from tests.store.contracts.projections import log_of


class UsageContract:
    """The sums include usage as soon as it is in the log, and never twice."""

    async def test_usage_is_summed_by_model_and_an_unknown_cost_stays_unknown(
        self, subject: Store
    ) -> None:
        log = await log_of(subject)
        facts = log.facts
        used = Usage(input_tokens=10, output_tokens=2, cached_tokens=5, reasoning_tokens=1)
        await log.add(facts.step("one"))
        await log.add(facts.replied(usage=used, cost=0.5))
        await log.add(facts.step("one"), facts.replied(usage=used, cost=0.25))
        await log.add(facts.step("one"), facts.switched("two"))
        await log.add(facts.replied(usage=used, cost=0.5), facts.spent("two", used, None))
        await log.add(facts.spent("two", None, 1.0))

        def row(model: str, times: int, cost: float | None) -> UsageRow:
            return UsageRow(
                session_id="s",
                model=model,
                input_tokens=10 * times,
                output_tokens=2 * times,
                cached_tokens=5 * times,
                reasoning_tokens=1 * times,
                cost=cost,
            )

        expected = [row("one", 2, 0.75), row("two", 2, None)]
        assert await subject.usage("s") == await subject.usage() == expected
        assert await subject.usage("nobody") == []

    async def test_usage_of_a_day_is_what_was_spent_since_it_began(self, subject: Store) -> None:
        log = await log_of(subject)
        facts = log.facts
        midnight = 86_400.0 * 20_000
        used = Usage(input_tokens=1)
        for at in (midnight - 0.5, midnight, midnight + 899.0, midnight + 50_000.0):
            facts.at = at
            await log.add(facts.spent("one", used, 0.5))
        facts.at = midnight - 1.0
        await log.add(facts.spent("two", used, None))

        async def since(at: float) -> list[tuple[str, int, float | None]]:
            rows = await subject.usage(since=at)
            return [(row.model, row.input_tokens, row.cost) for row in rows]

        assert await since(midnight) == [("one", 3, 1.5)]
        assert await since(midnight + 899.0) == [("one", 3, 1.5)]
        assert await since(midnight + 900.0) == [("one", 1, 0.5)]
        assert await since(midnight + 86_400.0) == []
        assert await since(0.0) == [("one", 4, 2.0), ("two", 1, None)]

    async def test_an_account_is_a_session_with_all_that_it_spent(self, subject: Store) -> None:
        assert await subject.account("s") is None
        log, other = await log_of(subject), await log_of(subject, "other")
        await other.add(other.facts.spent("one", Usage(input_tokens=7), 0.5))
        await log.add(log.facts.spent("one", Usage(input_tokens=1), 0.5))
        await log.add(log.facts.spent("two", Usage(input_tokens=2), None))
        row = await subject.session("s")
        assert row is not None
        assert await subject.account("s") == (row, await subject.usage("s"))

    async def test_an_account_never_counts_more_or_less_than_its_row_tells(
        self, subject: Store
    ) -> None:
        log = await log_of(subject)

        async def write() -> None:
            for _ in range(30):
                await log.add(log.facts.spent("one", Usage(input_tokens=1), 0.5))

        async def read() -> None:
            facts = 0
            while facts < 31:
                account = await subject.account("s")
                assert account is not None
                row, usage = account
                facts = row.last_seq
                assert sum(usage_row.input_tokens for usage_row in usage) == facts - 1

        async with asyncio.TaskGroup() as group:
            group.create_task(write())
            for _ in range(3):
                group.create_task(read())

    async def test_the_smallest_parts_tell_purposes_quarters_and_unknown_costs(
        self, subject: Store
    ) -> None:
        log = await log_of(subject)
        facts = log.facts
        used = Usage(input_tokens=10, output_tokens=2, cached_tokens=5, reasoning_tokens=1)
        facts.at = 900.0 * 1000
        await log.add(facts.step("one"), facts.replied(usage=used, cost=0.5))
        await log.add(facts.step("one"), facts.replied(usage=used, cost=None))
        await log.add(facts.spent("one", used, 0.25))
        facts.at += 900.0
        await log.add(facts.step("one"), facts.replied(usage=used, cost=0.5))
        cells = await subject.usage_cells()
        keys = [(cell.purpose, cell.at, cell.requests, cell.cost, cell.unpriced) for cell in cells]
        assert sorted(keys) == [
            ("title", 900_000.0, 1, 0.25, 0),
            ("turn", 900_000.0, 2, 0.5, 1),
            ("turn", 900_900.0, 1, 0.5, 0),
        ]
        later = await subject.usage_cells(since=900_900.0)
        assert [cell.at for cell in later] == [900_900.0]
        earlier = await subject.usage_cells("s", until=900_900.0)
        assert {cell.at for cell in earlier} == {900_000.0}
        assert await subject.usage_cells("nobody") == []

    async def test_calls_of_tools_are_counted_with_their_time_and_failures(
        self, subject: Store
    ) -> None:
        log = await log_of(subject)
        facts = log.facts
        await log.add(facts.call("c1"), facts.called("c1"))
        await log.add(facts.call("c2"), facts.called("c2", outcome="failed"))
        (use,) = await subject.tool_use()
        assert (use.session_id, use.tool, use.calls, use.failed) == ("s", "echo", 2, 1)
        assert use.seconds > 0
        assert await subject.tool_use("s", until=use.at) == []

    async def test_turns_are_counted_with_those_that_failed(self, subject: Store) -> None:
        log = await log_of(subject)
        facts = log.facts
        facts.at = 900.0 * 1000
        await log.add(facts.started("t1"), facts.finished("t1"))
        await log.add(facts.started("t2"), facts.finished("t2", outcome="failed"))
        await log.add(facts.started("t3"), facts.finished("t3", outcome="cancelled"))
        await log.add(facts.finished("t4", outcome="cancelled", started=False))
        facts.at += 900.0
        await log.add(facts.started("t5"), facts.finished("t5", outcome="parked"))
        counts = [(count.at, count.turns, count.failed) for count in await subject.turn_counts()]
        assert counts == [(900_000.0, 3, 1), (900_900.0, 1, 1)]
        (last,) = await subject.turn_counts("s", since=900_900.0)
        assert (last.session_id, last.turns) == ("s", 1)
        await subject.delete("s")
        assert await subject.turn_counts() == []

    async def test_a_sum_says_how_far_it_reaches_and_includes_deleted_sessions(
        self, subject: Store
    ) -> None:
        log, other = await log_of(subject), await log_of(subject, "other")
        await log.add(log.facts.spent("one", Usage(input_tokens=1, output_tokens=1), 0.5))
        await log.add(log.facts.spent("one", Usage(input_tokens=1), None))
        await other.add(other.facts.spent("one", Usage(input_tokens=7), 0.25))
        spent = await subject.spent(logs=("s", "other", "nobody"))
        assert (spent.cost, spent.tokens, spent.unpriced) == (0.75, 10, 1)
        assert spent.logs == {"s": log.facts.last_seq, "other": other.facts.last_seq}
        assert (await subject.spent("other")).cost == 0.25
        await subject.delete("s")
        after = await subject.spent(logs=("s",))
        assert (after.cost, after.tokens, after.unpriced, after.logs) == (0.75, 10, 1, {})
        names = [cell.session_id for cell in await subject.usage_cells()]
        assert sorted(names) == ["", "other"], "nothing names the deleted session"
        assert (await subject.spent(since=log.facts.at + 1_000)).tokens == 0
