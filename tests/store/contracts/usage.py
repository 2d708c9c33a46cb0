"""The contract of a store's sums of tokens and cost. Part of `StoreContract`."""

from __future__ import annotations

import asyncio

from keryx.events import Usage
from keryx.ports.store import Store, UsageRow
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
