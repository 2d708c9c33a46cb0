"""What the tests of the file tools share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.tools.files.file_session import FileSession


@pytest.fixture
def made(tmp_path: Path) -> FileSession:
    return FileSession(tmp_path)


@pytest_asyncio.fixture
async def session(made: FileSession) -> AsyncIterator[FileSession]:
    await made.open()
    yield made
    await made.close()
