"""What models cost and how much fits into them: from the public list, which nobody waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from keryx import Keryx
from keryx.config import Provider
from keryx.events import Usage
from keryx.models.prices import LOAD_DELAY, Prices
from keryx.testing.modelserver import ModelServer, Reply

OPENAI = "https://api.openai.com/v1"
SOME = Usage(input_tokens=1000, output_tokens=100)


@pytest.fixture(scope="module")
def prices() -> Prices:
    prices = Prices()
    prices.load()
    return prices


async def past_its_time() -> None:
    """Timers ring in order: one that was set before this for an earlier time has rung."""
    await asyncio.sleep(2 * LOAD_DELAY)


def test_a_cost_follows_what_was_used(prices: Prices) -> None:
    model = prices.of(OPENAI, "gpt-4o")
    once, twice = (
        model.cost(SOME),
        model.cost(Usage(input_tokens=2000, output_tokens=200)),
    )
    cached = model.cost(Usage(input_tokens=1000, output_tokens=100, cached_tokens=900))
    assert once is not None
    assert cached is not None
    assert twice == pytest.approx(2 * once)
    assert 0 < cached < once
    assert model.cost(Usage()) == 0.0
    assert model.window == 128_000


def test_what_claude_writes_to_its_cache_costs_a_quarter_more(prices: Prices) -> None:
    model = prices.of("https://api.anthropic.com/v1", "claude-opus-4-6")
    plain, cached = model.cost(Usage(input_tokens=1000)), model.cost(Usage(input_tokens=1000), 1000)
    assert plain is not None
    assert cached == pytest.approx(1.25 * plain)


def test_what_nobody_knows_is_none_and_never_nothing(prices: Prices) -> None:
    for address, name in (
        (OPENAI, "a-model-of-my-own"),
        ("https://models.example.com/v1", "gpt-4o"),
    ):
        model = prices.of(address, name)
        assert (model.cost(SOME), model.window) == (None, None)
    assert prices.of(OPENAI, "gpt-4o").cost(None) is None
    impossible = Usage(input_tokens=1, output_tokens=1, cached_tokens=5)
    assert prices.of(OPENAI, "gpt-4o").cost(impossible) is None


def test_before_it_is_loaded_nothing_is_known() -> None:
    model = Prices().of(OPENAI, "gpt-4o")
    assert (model.cost(SOME), model.window) == (None, None)


async def test_it_is_loaded_once_and_only_when_somebody_had_to_wait() -> None:
    begun: asyncio.Queue[Callable[[], None]] = asyncio.Queue()
    prices = Prices(begun.put_nowait)
    for _ in range(3):
        prices.of(OPENAI, "gpt-4o").load_soon()
    assert begun.empty()
    assert await begun.get() == prices.load
    prices.load_soon()
    await past_its_time()
    assert begun.empty()


async def test_one_who_is_closed_begins_nothing() -> None:
    begun: list[Callable[[], None]] = []
    prices = Prices(begun.append)
    prices.load_soon()
    prices.close()
    prices.load_soon()
    await past_its_time()
    assert begun == []


@pytest.mark.parametrize(
    ("provider", "public"),
    [
        (Provider(OPENAI), OPENAI),
        (Provider("http://127.0.0.1:8000/v1"), None),
        (Provider("http://localhost:11434/v1"), None),
        (Provider("http://127.0.0.1:8000/v1", priced_as=OPENAI), OPENAI),
    ],
)
def test_a_server_of_one_s_own_has_no_public_price(provider: Provider, public: str | None) -> None:
    assert provider.public_address == public


@pytest.mark.promise("004.10")
async def test_a_session_is_told_its_cost_and_how_full_its_context_is(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    usage = Usage(input_tokens=50_000, output_tokens=1_000)
    async with ModelServer(lambda _: Reply(text="Yes.", usage=usage), models=["gpt-4o"]) as server:
        (home / "config.toml").write_text(
            f'[providers.one]\nbase_url = "{server.url}"\npriced_as = "{OPENAI}"\n'
            f'[providers.two]\nbase_url = "{server.url}"\nwindows = {{ "gpt*" = 9000 }}\n'
        )
        async with Keryx(model="one:gpt-4o", home=home, workspace=tmp_path) as app:
            session = await app.open()
            result = await (await session.send("hi")).result()
            while result.cost is None:  # until the list is there
                result = await (await session.send("and now?")).result()
            context = (await session.view()).context
            assert context is not None
            assert (context.window, context.last_prompt_tokens) == (128_000, 50_000)
            assert result.cost > 0
            await session.change(model="two:gpt-4o")
            result = await (await session.send("who are you?")).result()
            context = (await session.view()).context
            assert context is not None
            assert (context.window, result.cost) == (9000, None)
            spent = {row.model: row.cost for row in await app.store.usage()}
    assert spent["two:gpt-4o"] is None
