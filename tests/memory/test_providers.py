"""Providers of other packages: what is wrong with one is said, and stops neither start nor end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keryx import Keryx
from keryx import events as ev
from keryx.errors import UserMustActError
from keryx.models.scripted import ScriptedModel
from tests.memory import shelf
from tests.memory.shelf import Shelf
from tests.memory.test_sessions import PATIENCE, ask, facts, home, remembering, said

assert home  # a fixture

pytestmark = pytest.mark.promise("003.1")


class Nameless(Shelf):
    """A provider that says no name."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.name = ""


class Half:
    """A provider that cannot recall."""

    name = "half"

    async def store(self, *_: Any) -> None:
        """Store nothing."""


WRONG: dict[str, Callable[[dict[str, Path]], Any]] = {
    "ZeroDivisionError": lambda _: 1 / 0,
    "has no attribute 'name'": lambda _: None,
    "its name is ''": lambda settings: Nameless(settings["path"]),
    "no method 'recall'": lambda _: Half(),
}


@pytest.mark.parametrize("reason", WRONG)
async def test_a_provider_that_cannot_be_used_is_named_with_what_to_do(
    home: Path, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shelf, "open_shelf", WRONG[reason])
    async with Keryx(model=ScriptedModel([said("Hi.")]), home=home) as app:
        session = await app.open()
        assert await ask(session, "Hello") == "Hi."
        (started,) = await facts(app, session, ev.TurnStarted)
        (state,) = await app.memory.states()
    (warning,) = started.warnings
    for text in (warning, str(state.left_out)):
        assert reason in text
        assert "take it out of `providers`" in text


async def test_a_provider_that_calls_itself_like_the_search_in_the_words_is_refused(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_words(settings: dict[str, Path]) -> Shelf:
        return Shelf(settings["path"], "words")

    monkeypatch.setattr(shelf, "open_shelf", open_words)
    with pytest.raises(UserMustActError, match=r"call themselves 'words'.*`providers`"):
        async with Keryx(model=ScriptedModel([]), home=home):
            raise AssertionError


async def test_settings_that_a_provider_does_not_take_are_named(home: Path) -> None:
    config = (home / "config.toml").read_text()
    (home / "config.toml").write_text(config.replace("path =", "folder ="))
    with pytest.raises(UserMustActError, match=r"'shelf'.*'path'.*\[memory.settings.shelf\]"):
        async with Keryx(model=ScriptedModel([]), home=home):
            raise AssertionError


async def fail() -> None:
    raise RuntimeError("the connection is lost")


async def hang() -> None:
    await asyncio.get_running_loop().create_future()


@pytest.mark.parametrize("close", [fail, hang])
@pytest.mark.promise("003.4")
async def test_a_provider_that_does_not_close_stops_no_shutdown(home: Path, close: Any) -> None:
    reported: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    async with remembering(ScriptedModel([said("One.")]), home) as app:
        provider: Any = shelf.OPENED[-1]
        provider.close = close
        assert await ask(await app.open(), "Hello") == "One."
    assert ["close the memory provider shelf" in report["message"] for report in reported] == [True]
    async with asyncio.timeout(PATIENCE):
        async with Keryx(model=ScriptedModel([said("Two.")]), home=home) as app:
            assert await ask(await app.open(), "Is the home free?") == "Two."
