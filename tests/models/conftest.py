"""What the tests of models share."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from keryx.models.http import Clients, model_clients
from tests.models.scripted_server import FORMATS, NewModel


@pytest_asyncio.fixture
async def clients() -> AsyncIterator[Clients]:
    owned = model_clients()
    yield owned.get
    await owned.close()


@pytest.fixture(params=FORMATS)
def new_model(request: pytest.FixtureRequest, clients: Clients) -> NewModel:
    """Creates models, in turn of every format."""
    return NewModel(request.param, clients)
