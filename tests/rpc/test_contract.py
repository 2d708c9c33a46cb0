"""The contract, over every transport."""

from __future__ import annotations

import pytest

from tests.rpc.contract import Contract
from tests.rpc.transports import Files, Memory, Sockets, Stdio, Transport


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
