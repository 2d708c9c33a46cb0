"""The zygote of a module's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chaos.host_processes import Zygote


@pytest.fixture(scope="module")
def module_zygote() -> Iterator[Zygote]:
    zygote = Zygote()
    try:
        yield zygote
    finally:
        zygote.close()


@pytest.fixture
def zygote(module_zygote: Zygote) -> Iterator[Zygote]:
    """Forks lives; none of them outlives the test."""
    try:
        yield module_zygote
    finally:
        module_zygote.kill_all()
