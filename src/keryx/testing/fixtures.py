"""Fixtures for pytest. Use them with `pytest_plugins = ["keryx.testing.fixtures"]` in a conftest.

`nothing_left_over` applies to every test automatically, `loop_is_clean` and `loop_is_not_blocked`
to every async test.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import AsyncIterator, Generator, Iterator

import pytest
import pytest_asyncio
from blockbuster import blockbuster_ctx

from keryx.aio.clock import FakeClock
from keryx.aio.loops import new_loop
from keryx.testing.left_overs import State, tasks_left_over


@pytest.fixture(scope="session", autouse=True)
def loops_have_been_made() -> None:
    """Make a loop once: libuv opens a pipe with its first loop, which is not a left-over."""
    new_loop().close()


@pytest.fixture(autouse=True)
def nothing_left_over() -> Iterator[None]:
    """Fails a test that leaves a thread, process, descriptor, temporary file or change behind."""
    before = State.now()
    yield
    changes = before.changes()
    if changes:
        pytest.fail("\n".join(changes))


@pytest_asyncio.fixture
async def loop_is_clean() -> AsyncIterator[None]:
    """Fails an async test that leaves a task behind on its loop."""
    yield
    tasks = tasks_left_over()
    if tasks:
        pytest.fail("\n".join(tasks))


@pytest.fixture
def loop_is_not_blocked() -> Iterator[None]:
    """Fails a test in which code of Keryx makes a blocking call on an event loop."""
    with blockbuster_ctx("keryx", excluded_modules=["keryx.testing"]):
        yield


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Fails a test that replaces the standard streams.

    It is the innermost wrapper, because pytest restores its own streams after the call.
    """
    before = (sys.stdout, sys.stderr)
    result = yield
    if (sys.stdout, sys.stderr) != before:
        pytest.fail("sys.stdout or sys.stderr was replaced")
    return result


@pytest.fixture
def clock() -> FakeClock:
    """Return a clock that the test moves by hand."""
    return FakeClock()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give every async test the fixtures that check its loop."""
    for item in items:
        if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
            # First in, last out: they check after all other fixtures have cleaned up.
            item.fixturenames[:0] = ["loop_is_not_blocked", "loop_is_clean"]
