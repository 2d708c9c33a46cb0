"""Sessions that teach the memory of a home, and what its providers have of it then."""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from keryx import Keryx
from keryx import events as ev
from keryx.app import SessionHandle
from keryx.models.scripted import ScriptedModel
from keryx.ports.memory import Memory, TurnMemory
from tests.memory import shelf
from tests.memory.broken_memory import PROVIDERS, configure, install_second
from tests.memory.memory_home import MemoryHome
from tests.memory.shelf import Shelf
from tests.memory.test_sessions import ask, call, facts, said
from tests.server.served_host import in_thread

TEA, CAKE = "The user drinks tea.", "The user eats cake."
CHESS, SONGS = "The user plays chess.", "The user sings."
BROKEN = PROVIDERS["it_is_not_made"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[MemoryHome]:
    home = MemoryHome(tmp_path)
    monkeypatch.setattr(sys, "path", [str(home.packages), *sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # a mended module is read again
    configure(home, "shelf")
    yield home
    shelf.OPENED.clear()
    sys.modules.pop("second_provider", None)


def teaching(*texts: str) -> ScriptedModel:
    """Conclude each of these, in a turn of its own."""
    replies = [(call("conclude", text=text), said(f"About {text}")) for text in texts]
    return ScriptedModel([reply for pair in replies for reply in pair])


async def teach(app: Keryx, session: SessionHandle, *texts: str) -> None:
    for text in texts:
        await ask(session, text)


async def warnings(app: Keryx, session: SessionHandle) -> list[tuple[str, ...]]:
    return [fact.warnings for fact in await facts(app, session, ev.TurnStarted)]


def check_stored(path: Path, session_id: str, *texts: str) -> None:
    """A provider has these memories, and a turn for each, once and in the order of the session."""
    lines = Shelf(path).lines()
    assert [item.text for item in lines if isinstance(item, Memory)] == list(texts)
    turns = [item for item in lines if isinstance(item, TurnMemory)]
    assert [turn.texts[0].text for turn in turns] == list(texts)
    assert {turn.session_id for turn in turns} == {session_id}


async def delivered(app: Keryx, *, but: str = "") -> None:
    """Wait until all providers but this one have everything."""
    while any(state.lag.waiting for state in await app.memory.states() if state.name != but):
        await shelf.OPENED[-1].wait_stored()


async def memories(app: Keryx) -> list[str]:
    return [item.text for item in await app.memory.export()]


async def provided(home: MemoryHome, source: str) -> None:
    """Let the package bring this provider from the next start on."""
    await in_thread(install_second, home, source)
    sys.modules.pop("second_provider", None)
