"""What the tests of the file tools share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.tools.files.file_session import FileSession


@pytest.fixture
def new_session(tmp_path: Path) -> FileSession:
    return FileSession(tmp_path)


@pytest_asyncio.fixture
async def session(new_session: FileSession) -> AsyncIterator[FileSession]:
    await new_session.open()
    yield new_session
    await new_session.close()
