"""Skills in the home: in the prompt, loaded by a model, their scripts run by commands."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Final

import pytest

from keryx import Keryx, tool
from keryx import events as ev
from keryx.app import SessionHandle
from keryx.folder_names import folder_name
from keryx.messages import UserMessage, text_of
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply, history_of
from keryx.ports.model import ModelRequest
from keryx.tools.skills.catalog import MAX_LIST, list_for_model, read_skills
from keryx.tools.skills.front_matter import read_front_matter
from keryx.tools.skills.skill_tool import MOST_FILES
from tests.app.hosts import result_of
from tests.cli.commands import keryx

pytestmark = pytest.mark.promise("kit.5")

LETTERS: Final = """---
name: letters
description: Writes letters in the style of the house.
license: MIT
metadata:
  author: somebody
---

# Letters

Run scripts/write.sh first.
"""


def write(home: Path, text: str = LETTERS, name: str = "letters") -> Path:
    folder = home / "skills" / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text)
    return folder


def calling(*steps: ScriptedCall) -> ScriptedModel:
    """Makes these calls one after another in each turn."""

    def reply(request: ModelRequest) -> ScriptedReply:
        history = history_of(request)
        at = 0
        while not isinstance(history[-1 - at], UserMessage):
            at += 1
        calls = [steps[at // 2]] if at // 2 < len(steps) else []
        return ScriptedReply(text="" if calls else "Done.", calls=calls)

    return ScriptedModel(reply)


async def calls_of(session: SessionHandle) -> list[ev.CallFinished]:
    result = await result_of(await session.send("go"))
    assert result.outcome == "completed"
    return list(result.calls)


async def warnings(app: Keryx, session: SessionHandle) -> list[str]:
    log = await app.store.events(session.session_id)
    return list([event for event in log if isinstance(event, ev.TurnStarted)][-1].warnings)


def names_in(system: str) -> list[str]:
    return re.findall(r"^- ([a-z]+): Writes letters", system, re.MULTILINE)


def offered(model: ScriptedModel) -> set[str]:
    return {schema.name for schema in model.asked[-1].tools}


async def test_a_skill_is_in_the_prompt_and_its_scripts_run_in_the_place(tmp_path: Path) -> None:
    home, workspace = tmp_path / "home", tmp_path / "work"
    workspace.mkdir()
    folder = write(home)
    (folder / "scripts").mkdir()
    script = folder / "scripts" / "write.sh"
    script.write_text("#!/bin/sh\necho dear $1\n")
    script.chmod(0o700)
    (folder / "secret").symlink_to("/etc/passwd")
    model = calling(ScriptedCall("skill", {"name": "letters"}))
    async with Keryx(model=model, home=home, workspace=workspace) as app:
        session = await app.open(approvals="never")
        (loaded,) = await calls_of(session)
        assert "- letters: Writes letters in the style of the house." in model.asked[0].system
        text = text_of(loaded.result)
        assert "# Letters\n\nRun scripts/write.sh first." in text
        assert "secret" not in text
        path = next(word for word in text.split() if word.endswith("/scripts/write.sh"))
    steps = (
        ScriptedCall("skill", {"name": "letters"}),
        ScriptedCall("terminal", {"command": f"{path} Ada"}),
        ScriptedCall("read_file", {"path": path}),
        ScriptedCall("terminal", {"command": f"echo other > {path} || echo refused"}),
    )
    async with Keryx(model=calling(*steps), home=home, workspace=workspace) as app:
        ended = await calls_of(await app.open(approvals="never"))
    texts = [text_of(call.result) for call in ended]
    assert "dear Ada" in texts[1]
    assert "echo dear $1" in texts[2]
    assert "refused" in texts[3]


async def test_a_script_gets_a_skill_as_a_value(tmp_path: Path) -> None:
    write(tmp_path / "home")
    code = "from keryx_tools import skill\nprint(skill('letters')['instructions'])"
    model = calling(ScriptedCall("execute_code", {"code": code}))
    async with Keryx(model=model, home=tmp_path / "home", workspace=tmp_path) as app:
        (call,) = await calls_of(await app.open(approvals="never"))
    assert "# Letters" in text_of(call.result)


async def test_the_tool_is_offered_only_while_there_are_skills(tmp_path: Path) -> None:
    home = tmp_path / "home"
    model = calling()
    async with Keryx(model=model, home=home, workspace=tmp_path) as app:
        session = await app.open()
        await calls_of(session)
        assert "skill" not in offered(model)
        write(home)
        await calls_of(session)
        assert "skill" in offered(model)
        assert "- letters:" in model.asked[-1].system
        without = await app.open(tools=["read_file"])
        await calls_of(without)
        assert "- letters:" not in model.asked[-1].system


@pytest.mark.promise("004.6")
async def test_a_profile_has_skills_of_its_own_before_those_of_all(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text('[profiles.work]\n[profiles."a/../b"]\n')
    write(home)
    odd = folder_name("a/../b")
    assert "/" not in odd
    write(home / "profiles" / "work", LETTERS.replace("# Letters", "# Letters at work"))
    for profile, name in (("work", "tickets"), (odd, "songs"), ("default", "recipes")):
        write(home / "profiles" / profile, LETTERS.replace(": letters", f": {name}"), name)
    load = ScriptedCall("skill", {"name": "letters"})
    for profile, own in (("work", "tickets"), ("a/../b", "songs"), (None, "recipes")):
        model = calling(load, ScriptedCall("skill", {"name": "tickets"}))
        async with Keryx(model=model, home=home, workspace=tmp_path) as app:
            letters, tickets = await calls_of(await app.open(profile=profile))
        assert names_in(model.asked[0].system) == sorted(["letters", own])
        assert ("# Letters at work" in text_of(letters.result)) == (profile == "work")
        assert tickets.outcome == ("completed" if profile == "work" else "failed")


@pytest.mark.promise("004.6")
async def test_the_tool_is_offered_to_the_profiles_that_have_skills(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text("[profiles.work]\n")
    model = calling()
    async with Keryx(model=model, home=home, workspace=tmp_path) as app:
        at_home, at_work = await app.open(), await app.open(profile="work")
        write(home / "profiles" / "work")
        for session, expected in ((at_home, False), (at_work, True), (at_home, False)):
            await calls_of(session)
            assert ("skill" in offered(model)) == expected


async def test_a_program_may_have_a_tool_of_the_same_name(tmp_path: Path) -> None:
    write(tmp_path / "home")

    @tool
    def skill() -> str:
        """Say what this program can do."""
        return "juggling"

    model = calling(ScriptedCall("skill", {}))
    home = tmp_path / "home"
    async with Keryx(model=model, tools=[skill], home=home, workspace=tmp_path) as app:
        (call,) = await calls_of(await app.open())
    assert text_of(call.result) == "juggling"
    assert "- letters:" not in model.asked[0].system


BROKEN: Final = (
    ("# Letters", "the first line is not ---"),
    ("", "the first line is not ---"),
    ("---\nname: letters\n", "no second line --- ends the front matter"),
    ("---\nname: letters\n---\n", "needs `name: ...` and `description: ...`"),
    ("---\nname: letters\ndescription: [a, b]\n---\n", "needs `name: ...`"),
    ("---\nname: letters\nname: letters\n---\n", "line 3 repeats 'name'"),
    ("---\nname letters\n---\n", "line 2 is not `key: value`"),
    ('---\nname: letters\ndescription: "Open\n---\n', "line 3 has a quoted text"),
    ("---\nname: other\ndescription: x\n---\n", "is not that of its folder"),
    ("---\nname: ../letters\ndescription: x\n---\n", "other characters than a-z"),
    (f"---\nname: letters\ndescription: {'x' * 1025}\n---\n", "more than 1024 characters"),
    (LETTERS + "x" * 200_000, "more than 200000 bytes"),
)


@pytest.mark.parametrize(("text", "fault"), BROKEN)
@pytest.mark.promise("kit.12")
async def test_a_broken_skill_is_reported_and_the_rest_works(
    tmp_path: Path, text: str, fault: str
) -> None:
    home = tmp_path / "home"
    broken = write(home, text)
    write(home, LETTERS.replace("name: letters", "name: notes"), "notes")
    (home / "skills" / "README.md").write_text("Not a skill.")
    model = calling(
        ScriptedCall("skill", {"name": "notes"}), ScriptedCall("skill", {"name": "letters"})
    )
    async with Keryx(model=model, home=home, workspace=tmp_path) as app:
        session = await app.open()
        notes, letters = await calls_of(session)
        (line,) = await warnings(app, session)
    assert line.startswith(f"{broken / 'SKILL.md'}: ")
    assert fault in line
    assert line.endswith("the skill is left out")
    assert (notes.outcome, letters.outcome) == ("completed", "failed")
    assert "there is no skill 'letters'; there are: notes" in text_of(letters.result)


@pytest.mark.promise("kit.12")
def test_links_pipes_and_other_bytes_are_no_skills(tmp_path: Path) -> None:
    skills = tmp_path / "skills"
    target = write(tmp_path, name="letters")
    (skills / "linked").symlink_to(target)
    (skills / "empty").mkdir()
    (skills / "pipe").mkdir()
    os.mkfifo(skills / "pipe" / "SKILL.md")
    write(tmp_path, name="bytes")
    (skills / "bytes" / "SKILL.md").write_bytes(b"---\nname: \xff\n---\n")
    (skills / "through").mkdir()
    (skills / "through" / "SKILL.md").symlink_to(target / "SKILL.md")
    readable, faults = read_skills(skills)
    assert [skill.name for skill in readable] == ["letters"]
    reasons = ["not UTF-8", "no such file", "is a link", "not a file", "cannot be opened"]
    assert [reason for reason, fault in zip(reasons, faults, strict=True) if reason in fault] == (
        reasons
    )


@pytest.mark.parametrize(
    ("lines", "description"),
    [
        ("description: Plain: with a colon # and a comment", "Plain: with a colon"),
        ("description: 'It''s quoted'  # really", "It's quoted"),
        ('description: "A \\"quoted\\" one"', 'A "quoted" one'),
        ("description: >-\n  Folded\n  text\nlicense: MIT", "Folded text"),
        ("description: |\n  Two\n  lines", "Two\nlines"),
        ("description: Goes\n  on", "Goes on"),
        ("# a comment\n\nallowed-tools:\n- a\n- b\ndescription: C#", "C#"),
    ],
)
def test_front_matter_is_read_as_yaml_means_it(lines: str, description: str) -> None:
    fields, body = read_front_matter(f"---\n{lines}\n---\nBody\n---\nmore\n")
    assert fields["description"] == description
    assert body == "Body\n---\nmore"


def test_the_list_in_the_prompt_is_bounded(tmp_path: Path) -> None:
    for number in range(30):
        text = f"---\nname: s{number:02}\ndescription: {'x' * 1000}\n---\n"
        write(tmp_path, text, f"s{number:02}")
    skills, faults = read_skills(tmp_path / "skills")
    assert (len(skills), faults) == (30, [])
    text, (warning,) = list_for_model(skills)
    assert len(text) <= MAX_LIST + 300
    assert "skills from 's19' on are not in the prompt" in warning


async def test_a_skill_with_too_many_files_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    folder = write(tmp_path / "home")
    for number in range(MOST_FILES):
        (folder / f"{number}.txt").touch()
    model = calling(ScriptedCall("skill", {"name": "letters"}))
    async with Keryx(model=model, home=tmp_path / "home", workspace=tmp_path) as app:
        (call,) = await calls_of(await app.open())
    assert call.outcome == "failed"
    assert f"more than {MOST_FILES} files" in text_of(call.result)


def test_the_command_calls_it(tmp_path: Path) -> None:
    write(tmp_path / "home")
    called = keryx(tmp_path / "home", "tools", "call", "skill", json.dumps({"name": "letters"}))
    assert "# Letters" in called.stdout
    refused = keryx(tmp_path / "home", "tools", "call", "skill", json.dumps({"name": "../x"}))
    assert (refused.returncode, "there is no skill '../x'" in refused.stdout) == (1, True)
