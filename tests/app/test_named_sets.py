"""Toolsets that a person named, and the tools that each front end gives to new sessions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from keryx import Keryx
from keryx import events as ev
from keryx.app.tools import Tools
from keryx.config import load
from keryx.errors import UserMustActError
from keryx.ports.tool import aliases_of
from keryx.tools import toolsets
from tests.cli.commands import keryx, model_server
from tests.server.served_host import scripted, served_host

pytestmark = pytest.mark.promise("kit.7")

SETS: Final = """
[toolsets]
reading = ["read_file", "list_files"]
small = ["reading", "clarify", "todo"]

[profiles.default.toolsets]
program = ["small"]
web = ["reading", "todo"]
cli = ["reading"]

[profiles.work.toolsets]
program = ["small", "web_extract", "browser_click"]
"""
SMALL: Final = ("read_file", "list_files", "clarify", "todo")


def configure(home: Path, text: str) -> None:
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(text)


async def tools_of(app: Keryx, session_id: str) -> tuple[str, ...]:
    (opened, *_) = await app.store.events(session_id)
    assert isinstance(opened, ev.SessionOpened)
    return opened.tools


async def test_a_program_gets_what_its_profile_has_for_programs(tmp_path: Path) -> None:
    configure(tmp_path / "home", SETS)
    async with Keryx(home=tmp_path / "home", workspace=tmp_path, model=scripted()) as app:
        assert await tools_of(app, (await app.open()).session_id) == SMALL
        chosen = await app.open(tools=["reading", "patch"])
        assert await tools_of(app, chosen.session_id) == ("read_file", "list_files", "patch")
        work = await tools_of(app, (await app.open(profile="work")).session_id)
        assert work[:4] == SMALL
        assert set(work[4:]) <= {"web_extract", "browser_click"}
        # The configuration is read again for each new session.
        configure(tmp_path / "home", SETS.replace('"reading", "clarify", "todo"', '"todo"'))
        assert await tools_of(app, (await app.open()).session_id) == ("todo",)


async def test_the_page_gets_what_the_profile_has_for_it(tmp_path: Path) -> None:
    configure(tmp_path / "home", SETS)
    async with served_host(tmp_path) as host:
        session_id = await host.client.open()
        assert await tools_of(host.app, session_id) == ("read_file", "list_files", "todo")
        answer = await host.client.ask("POST", "/api/sessions", json={"tools": ["smal"]})
        assert answer.status == 422
        assert "did you mean 'small'?" in str(answer.body)


def test_the_command_line_gets_what_the_profile_has_for_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    call = {"tool": "write_file", "arguments": {"path": "x", "content": "x"}}
    with model_server(home, {"calls": [call]}, {"text": "Ok."}):
        (home / "config.toml").write_text((home / "config.toml").read_text() + SETS)
        done = keryx(home, "run", "--workspace", str(tmp_path), "--json", "go")
    assert "there is no tool 'write_file'" in done.stdout
    assert not (tmp_path / "x").exists()


WRONG: Final = {
    "an unknown tool": (
        '[toolsets]\na = ["raed_file"]',
        "[toolsets] a: there is no tool or toolset 'raed_file'; did you mean 'read_file'?",
    ),
    "an unknown tool of a front end": (
        '[profiles.default.toolsets]\nweb = ["fils"]',
        "web: there is no tool or toolset 'fils'; did you mean 'files'?",
    ),
    "the name of a set": ('[toolsets]\nfiles = ["read_file"]', "the toolset 'files'"),
    "the name of a tool": ('[toolsets]\nread_file = ["patch"]', "the toolset 'read_file'"),
    "the name of a front end": (
        '[toolsets]\ncli = ["files"]',
        "write what it gives to new sessions in [profiles.default.toolsets]",
    ),
    "a cycle": ('[toolsets]\na = ["b"]\nb = ["c"]\nc = ["b"]', "contains itself: b > c > b"),
    "itself": ('[toolsets]\na = ["a"]', "contains itself: a > a"),
    "a wrong name": ('[toolsets]\n"a b" = ["files"]', "the name 'a b' in [toolsets]"),
    "an unknown front end": (
        '[profiles.default.toolsets]\nwebb = ["files"]',
        'unknown front end "webb" in [profiles.default.toolsets]; did you mean "web"?',
    ),
}


@pytest.mark.parametrize(("text", "words"), WRONG.values(), ids=WRONG)
async def test_a_wrong_name_is_an_error_everywhere(tmp_path: Path, text: str, words: str) -> None:
    home = tmp_path / "home"
    configure(home, text)
    doctor = keryx(home, "doctor")
    assert doctor.returncode == 1
    assert words in doctor.stdout
    with pytest.raises(UserMustActError) as error:
        async with Keryx(home=home, workspace=tmp_path, model=scripted()) as app:
            await app.open()
    assert words in str(error.value)


def test_the_server_does_not_start_with_a_wrong_name(tmp_path: Path) -> None:
    configure(tmp_path / "home", '[toolsets]\na = ["raed_file"]')
    done = keryx(tmp_path / "home", "serve", "--port", "0")
    assert done.returncode == 1
    assert "did you mean 'read_file'?" in done.stderr


def test_tools_list_shows_them(tmp_path: Path) -> None:
    configure(tmp_path / "home", SETS)
    done = keryx(tmp_path / "home", "tools", "list")
    assert "small (config.toml)\n  reading, clarify, todo" in done.stdout


# What Keryx has where nothing optional is installed, configured or found.
BARE: Final = """
import os, sys

sys.modules.update(dict.fromkeys(("playwright", "trafilatura", "ddgs", "mcp")))
os.environ["PATH"] = "/nowhere"
from keryx.config import load
from keryx.app.tools import Tools
from keryx.ports.tool import aliases_of

tools = Tools.built_in(load(sys.argv[1]))
names = [*tools.by_name, *(alias for tool in tools.by_name.values() for alias in aliases_of(tool))]
print(*names, *(name for name, members in tools.sets.items() if members))
"""
EVERYTHING: Final = """
[memory]
providers = ["notes"]
[tools.web]
searxng_url = "http://127.0.0.1:9"
[providers.here]
base_url = "http://127.0.0.1:9/v1"
[models.auxiliary]
image = "here:a"
speech = "here:b"
transcription = "here:c"
"""


def test_what_may_be_left_out_is_known_by_name(tmp_path: Path) -> None:
    bare = subprocess.run(
        [sys.executable, "-c", BARE, str(tmp_path / "bare")],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    configure(tmp_path / "whole", EVERYTHING)
    whole = Tools.built_in(load(tmp_path / "whole"))
    aliases = (alias for tool in whole.by_name.values() for alias in aliases_of(tool))
    # An empty set can be named everywhere, so the set of the web tools is never unknown.
    names = {*whole.by_name, *aliases, *whole.sets} - {"web"}
    assert names - set(bare) == toolsets.OPTIONAL


@pytest.mark.parametrize("name", ["transcribe", "image_gen", "recall", "memories"])
def test_a_toolset_may_name_what_works_only_elsewhere(tmp_path: Path, name: str) -> None:
    """The same configuration holds on several machines, and a key may be missing for a while."""
    text = (
        f'[toolsets]\nmine = ["read_file", "{name}"]\n[profiles.default.toolsets]\ncli = ["mine"]'
    )
    configure(tmp_path / "home", text)
    done = keryx(tmp_path / "home", "run", "--model", "scripted:demo", "Hello")
    assert (done.returncode, done.stderr) == (0, "")
    for words in (
        ("run", "--tools", name, "--model", "scripted:demo", "x"),
        ("tools", "call", name),
    ):
        refused = keryx(tmp_path / "home", *words)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert f"{name!r} cannot be used here" in refused.stderr
        assert "`keryx doctor` says what" in refused.stderr
    assert len(keryx(tmp_path / "home", "sessions", "list").stdout.splitlines()) == 1
