"""Fixtures for pytest. Use them with `pytest_plugins = ["keryx.testing.fixtures"]` in a conftest.

`nothing_left_over` applies to every test by itself, `loop_is_clean` and `loop_is_not_blocked` to
every async one.
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
    """libuv opens a pipe for the whole process with its first loop; that is nobody's left-over."""
    new_loop().close()


@pytest.fixture(autouse=True)
def nothing_left_over() -> Iterator[None]:
    """Fails a test that leaves a thread, process, descriptor, temporary file or change behind."""
    before = State.now()
    yield
    found = before.changes()
    if found:
        pytest.fail("\n".join(found))


@pytest_asyncio.fixture
async def loop_is_clean() -> AsyncIterator[None]:
    """Fails an async test that leaves a task behind on its loop."""
    yield
    found = tasks_left_over()
    if found:
        pytest.fail("\n".join(found))


@pytest.fixture
def loop_is_not_blocked() -> Iterator[None]:
    """Fails a test in which code of Keryx makes a blocking call on an event loop."""
    with blockbuster_ctx("keryx", excluded_modules=["keryx.testing"]):
        yield


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Fails a test that replaces the standard streams.

    Innermost, because pytest puts its own streams back when it leaves the call.
    """
    before = (sys.stdout, sys.stderr)
    result = yield
    if (sys.stdout, sys.stderr) != before:
        pytest.fail("sys.stdout or sys.stderr was replaced")
    return result


@pytest.fixture
def clock() -> FakeClock:
    """A time that the test moves by hand."""
    return FakeClock()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give every async test the fixtures that look after its loop."""
    for item in items:
        if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
            # First in, last out: they look when all other fixtures have cleaned up.
            item.fixturenames[:0] = ["loop_is_not_blocked", "loop_is_clean"]
