"""The contract of memory providers, as checks that any provider can be tried with.

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    async def test_my_provider(check, tmp_path):
        await check(lambda: MyProvider(tmp_path))

Each check gets a function that opens the provider; opened twice, it must find what it stored. A
provider that stores elsewhere may need a moment until it recalls: `settled` waits for that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from keryx.events import RecalledMemory
from keryx.ports.memory import (
    Delivery,
    Memory,
    MemoryItem,
    MemoryProvider,
    MemoryScope,
    MemorySource,
    TurnMemory,
    TurnText,
    Withdrawal,
    memory_profile,
)

Open = Callable[[], MemoryProvider]
Check = Callable[[Open], Awaitable[None]]

SCOPE: Final = MemoryScope("default", "/work")
PATIENCE: Final = 20.0
"""Seconds until a provider must recall what it stored."""


def memory(
    number: int, text: str, *, session_id: str = "s1", profile: str = "default", workspace: str = ""
) -> Memory:
    """Return a memory for a test."""
    return Memory(
        id=f"mem_{number}",
        text=text,
        kind="fact",
        about="work" if workspace else "user",
        trust="person",
        profile=profile,
        workspace=workspace,
        created_at=1_000.0 + number,
        sources=(MemorySource(session_id, number, f"t{number}", f"c{number}"),),
    )


def turn(number: int, said: str, answer: str, *, session_id: str = "s1") -> TurnMemory:
    """Return a turn for a test."""
    return TurnMemory(
        id=f"t{number}",
        session_id=session_id,
        profile="default",
        workspace="/work",
        at=1_000.0 + number,
        seq=number,
        texts=(TurnText(f"m{number}", "user", said), TurnText(f"p{number}", "assistant", answer)),
    )


async def recalled(
    provider: MemoryProvider,
    words: str,
    expected: Sequence[str],
    absent: Sequence[str] = (),
    scope: MemoryScope = SCOPE,
) -> list[RecalledMemory]:
    """Wait until all these texts are recalled and none of the absent ones; return the memories.

    A provider may recall more: one that searches by meaning finds everything that is near.
    """
    memories: list[RecalledMemory] = []
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                memories = list(await provider.recall(scope, words, 10))
                texts = {memory.text for memory in memories}
                if texts.issuperset(expected) and texts.isdisjoint(absent):
                    return memories
                await asyncio.sleep(0.02)
    except TimeoutError:
        texts = {memory.text for memory in memories}
        raise AssertionError(f"recalled {texts}, expected {expected}, not {absent}") from None


async def store(provider: MemoryProvider, *items: MemoryItem, attempts: int = 0) -> None:
    session_id = next(
        (
            source.session_id
            for item in items
            for source in (item.sources if isinstance(item, Memory) else (item,))
        ),
        "",
    )
    await provider.store(session_id, [Delivery(item, attempts) for item in items])


async def recalls_what_it_stored(open_provider: Open) -> None:
    """What was stored is recalled by its words, also by the next process."""
    provider = open_provider()
    await store(provider, memory(1, "The user drinks green tea."), memory(2, "The cat is Momo."))
    tea, *_ = await recalled(provider, "green tea", ["The user drinks green tea."])
    assert (tea.memory_id, tea.trust, tea.session_id) == ("mem_1", "person", "s1")
    await provider.close()
    again = open_provider()
    await recalled(again, "Momo", ["The cat is Momo."])
    await again.close()


async def stores_once(open_provider: Open) -> None:
    """An item that comes again, because nobody knew whether it was stored, is stored once."""
    provider = open_provider()
    item = memory(1, "The user drinks green tea.")
    await store(provider, item)
    await store(provider, item, attempts=1)
    await provider.close()
    again = open_provider()
    await store(again, item, attempts=2)
    results = await recalled(again, "green tea", [item.text])
    assert [result.text for result in results].count(item.text) == 1
    await again.close()


async def keeps_equal_texts(open_provider: Open) -> None:
    """The same text in two events is two memories: taking one back leaves the other."""
    provider = open_provider()
    first, second = memory(1, "The build is red."), memory(2, "The build is red.")
    await store(provider, first)
    await provider.store("s1", [Delivery(second, 0, equal_before=1)])
    await store(provider, Withdrawal(id="w1", session_id="s1", items=(first.id,)))
    await recalled(provider, "build red", [second.text])
    await provider.close()


async def takes_back(open_provider: Open) -> None:
    """What was undone, replaced or removed is not recalled any more; it may be stored again."""
    provider = open_provider()
    tea, coffee = memory(1, "The user drinks tea."), memory(2, "The user drinks coffee.")
    await store(provider, tea, coffee)
    await store(provider, Withdrawal(id="w1", session_id="s1", items=(tea.id, "mem_unknown")))
    await recalled(provider, "drinks", [coffee.text], [tea.text])
    await store(provider, tea)
    await recalled(provider, "drinks", [coffee.text, tea.text])
    await provider.close()


async def erases(open_provider: Open) -> None:
    """What a person wants forgotten is gone, and the provider says so."""
    provider = open_provider()
    secret = memory(1, "The user's door code is 4711.")
    await store(provider, secret)
    await store(provider, Withdrawal(id="w1", session_id="s1", items=(secret.id,), erase=True))
    assert list(await provider.remaining([secret.id])) == []
    await recalled(provider, "door code", [], [secret.text])
    await provider.close()


async def keeps_scopes_apart(open_provider: Open) -> None:
    """A query gets what belongs to its profile and workspace; an empty scope gets nothing."""
    provider = open_provider()
    items = [
        memory(1, "The port is 1000.", workspace="/work"),
        memory(2, "The port is 2000.", workspace="/elsewhere"),
        memory(3, "The port is 3000.", profile="other"),
        memory(4, "The port is 4000."),
    ]
    await store(provider, *items)
    here, there, other, everywhere = (item.text for item in items)
    elsewhere = MemoryScope("default", "/elsewhere")
    await recalled(provider, "port", [here, everywhere], [there, other])
    await recalled(provider, "port", [there, everywhere], [here, other], elsewhere)
    scope = MemoryScope("other", "/work")
    await recalled(provider, "port", [other], [here, there, everywhere], scope)
    assert list(await provider.recall(MemoryScope("", ""), "port", 10)) == []
    await provider.close()


async def keeps_people_apart(open_provider: Open) -> None:
    """A person's memories are in no answer to the owner or to another person, nor the reverse.

    The ids of people may hold what a provider uses in its names, and differ in one sign only.
    """
    provider = open_provider()
    people = (None, "web:a-b", "web:a_b", "web:A-b", "web:a:b", "web:a b", "web:a.b")
    profiles = [memory_profile("default", person) for person in people]
    items = [
        memory(number, f"The port is {number}000.", profile=profile)
        for number, profile in enumerate(profiles)
    ]
    await store(provider, *items)
    for item in items:
        others = [other.text for other in items if other is not item]
        await recalled(provider, "port", [item.text], others, MemoryScope(item.profile, "/work"))
    await provider.close()


async def takes_turns(open_provider: Open) -> None:
    """Turns are taken, once, and can be taken back; whether they are recalled is its own."""
    provider = open_provider()
    said = turn(1, "What is the capital of Greece?", "Athens.")
    await store(provider, said, memory(1, "The user asked about Greece."))
    await store(provider, said, attempts=1)
    await store(provider, Withdrawal(id="w1", session_id="s1", items=(said.id,)))
    results = await provider.recall(SCOPE, "capital of Greece", 10)
    assert "Athens." not in [result.text for result in results]
    await provider.close()


async def serves_many_at_once(open_provider: Open) -> None:
    """Sessions store at the same time, while others recall, and nothing is lost."""
    provider = open_provider()

    async def one(number: int) -> None:
        session_id = f"s{number}"
        for at in range(5):
            item = memory(number * 10 + at, f"Number {number} said {at}.", session_id=session_id)
            await store(provider, item)
            await provider.recall(SCOPE, f"Number {number}", 10)

    async with asyncio.TaskGroup() as group:
        for number in range(1, 9):
            group.create_task(one(number))
    for number in range(1, 9):
        texts = [f"Number {number} said {at}." for at in range(5)]
        results = await provider.recall(SCOPE, f"Number {number} said", 50)
        assert set(texts) <= {result.text for result in results}, number
    await provider.close()


async def takes_odd_texts(open_provider: Open) -> None:
    """Texts of all kinds are stored and recalled unchanged, and queries of all kinds answered."""
    provider = open_provider()
    odd = memory(
        1, 'Grüße — "quotes", <!-- comments -->, # marks, `code`, 日本語 and a \\ backslash'
    )
    long = memory(2, "word " * 390 + "needle")
    await store(provider, odd, long)
    await recalled(provider, "Grüße quotes backslash", [odd.text])
    await recalled(provider, "needle", [long.text])
    for words in ('"', "AND OR NOT", "a*", "(", "  ", "\0", "x" * 10_000):
        await provider.recall(SCOPE, words, 10)
    await provider.close()


CHECKS: Final[Sequence[Check]] = (
    recalls_what_it_stored,
    stores_once,
    keeps_equal_texts,
    takes_back,
    erases,
    keeps_scopes_apart,
    keeps_people_apart,
    takes_turns,
    serves_many_at_once,
    takes_odd_texts,
)
"""All checks. A provider that passes them can be used by any host."""
