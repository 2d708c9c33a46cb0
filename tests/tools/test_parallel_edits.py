"""Any batch of calls leaves the files as if its calls had run in call order, one by one."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keryx.aio.loops import run_loop
from keryx.messages import CallOutcome, ToolCall
from tests.conftest import SOAK
from tests.tools.tool_session import ToolSession

pytestmark = pytest.mark.promise("tools.2")

NAMES = ("a.txt", "b.txt", "sub/c.txt", "sub/d.txt")
WORDS = ("red", "green", "blue")

names = st.sampled_from(NAMES)
words = st.sampled_from(WORDS)


Operation = tuple[str, dict[str, Any]]


def read(name: str) -> Operation:
    return "read_file", {"path": name}


def write(name: str, word: str) -> Operation:
    return "write_file", {"path": name, "content": f"{word}\n", "overwrite": True}


def patch(name: str, old: str, new: str) -> Operation:
    body = f"*** Update File: {name}\n-{old}\n+{new}\n"
    return "patch", {"patch": f"*** Begin Patch\n{body}*** End Patch\n"}


def move(name: str, other: str, word: str) -> Operation:
    body = f"*** Update File: {name}\n*** Move to: {other}\n-{word}\n+{word} moved\n"
    return "patch", {"patch": f"*** Begin Patch\n{body}*** End Patch\n"}


def search(word: str) -> Operation:
    return "search_files", {"pattern": word}


# What one terminal writes no other one reads, for they run side by side.
def copy(name: str) -> Operation:
    return "terminal", {"command": f"cat {name} > OWN.out 2>&1; true"}


def grep(word: str) -> Operation:
    return "terminal", {"command": f"grep -rl {word} a.txt sub > OWN.out; true"}


LISTING: Operation = ("list_files", {"path": ".", "depth": 3})

operations: st.SearchStrategy[Operation] = st.one_of(
    st.builds(read, names),
    st.builds(write, names, words),
    st.builds(patch, names, words, words),
    st.builds(move, names, names, words),
    st.builds(search, words),
    st.just(LISTING),
    st.builds(copy, names),
    st.builds(grep, words),
)


def prepare(folder: Path) -> None:
    (folder / "sub").mkdir(parents=True)
    for name, word in zip(NAMES, ("red", "green", "blue", "red"), strict=True):
        (folder / name).write_text(f"{word}\n")


def named(shop: ToolSession, number: int, operation: Operation) -> ToolCall:
    tool, arguments = operation
    own = {key: str(value).replace("OWN", f"t{number}") for key, value in arguments.items()}
    return shop.call(tool, **(own if tool == "terminal" else arguments))


def seen(outcome: CallOutcome, folder: Path) -> tuple[str, str]:
    return outcome.outcome, outcome.text.replace(str(folder), "")


def tree(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


async def in_order(
    folder: Path, batch: list[Operation], *, together: bool
) -> list[tuple[str, str]]:
    shop = ToolSession(folder)
    await shop.open()
    try:
        # Everything was read before, so that nothing is refused only because it was not.
        await shop.run(*(shop.call("read_file", path=name) for name in NAMES))
        calls = [named(shop, number, operation) for number, operation in enumerate(batch)]
        if together:
            shop.late = True
            outcomes = await shop.run(*calls)
        else:
            outcomes = [(await shop.run(call))[0] for call in calls]
        return [seen(outcome, folder) for outcome in outcomes]
    finally:
        await shop.close()


@settings(max_examples=300 if SOAK else 25, deadline=None)
@given(st.lists(operations, min_size=2, max_size=8))
def test_a_batch_behaves_as_if_run_in_call_order(batch: list[Operation]) -> None:
    top = Path(tempfile.mkdtemp(prefix="edits-"))
    try:
        together, one_by_one = top / "together", top / "one"
        prepare(together)
        prepare(one_by_one)
        actual = run_loop(in_order(together, batch, together=True))
        expected = run_loop(in_order(one_by_one, batch, together=False))
        assert tree(together) == tree(one_by_one)
        assert actual == expected
    finally:
        shutil.rmtree(top)
