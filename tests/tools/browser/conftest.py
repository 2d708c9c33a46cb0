"""One browser for all tests of a module that do not end it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace

import pytest
import pytest_asyncio

from keryx.testing.left_overs import State
from tests.tools.browser.browser_session import BrowserSession, browser_session


@pytest.fixture(scope="module", autouse=True)
def nothing_left_over() -> Iterator[None]:
    """Looked for when a module is over: its tests may share a browser."""
    before = State.now()
    yield
    # A module takes long: others on this machine make theirs meanwhile.
    before = replace(before, temporary=State.now().temporary)
    changes = before.changes()
    if changes:
        pytest.fail("\n".join(changes))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[BrowserSession]:
    async with browser_session(tmp_path_factory.mktemp("browser")) as session:
        yield session
