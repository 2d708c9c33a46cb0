"""The contract, over every transport."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path

import pytest
import uvloop

from tests.rpc.contract import Contract, opener
from tests.rpc.transports import Files, Memory, Sockets, Stdio, Transport

pytestmark = pytest.mark.promise("000.5")


class TestMemory(Contract):
    @pytest.fixture
    def transport(self) -> Transport:
        return Memory()


class TestSockets(Contract):
    @pytest.fixture
    def transport(self) -> Transport:
        return Sockets()


class TestStdio(Contract):
    @pytest.fixture
    def transport(self) -> Transport:
        return Stdio()


class TestFiles(Contract):
    @pytest.fixture
    def transport(self) -> Transport:
        return Files()


@pytest.mark.parametrize("name", [name for name in dir(Contract) if name.startswith("test_")])
@pytest.mark.parametrize("transport", [Sockets(), Stdio()], ids=["sockets", "stdio"])
def test_the_contract_holds_on_the_loop_of_the_host(
    name: str, transport: Transport, tmp_path: Path
) -> None:
    test = getattr(Contract(), name)
    available = {"opened": opener(transport, tmp_path), "transport": transport}
    arguments = {key: available[key] for key in inspect.signature(test).parameters}
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(test(**arguments))
