"""Rules about commands: none that denies is gone around, none allows what it does not name."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from keryx import Keryx
from keryx import events as ev
from keryx.app import SessionHandle
from keryx.messages import ApprovalMode

pytestmark = pytest.mark.promise("walls.7")

PATIENCE = 60.0


@asynccontextmanager
async def session_with(
    folder: Path, rules: str, mode: ApprovalMode = "never"
) -> AsyncGenerator[SessionHandle]:
    """A session in an empty repository, at a host with these rules."""
    home, workspace = folder / "home", folder / "workspace"
    home.mkdir()
    workspace.mkdir()
    (home / "config.toml").write_text(f"[approvals]\n{rules}\n")
    async with (
        asyncio.timeout(PATIENCE),
        Keryx(model="scripted:demo", home=home, workspace=workspace) as app,
    ):
        yield await app.open(approvals=mode)


async def outcome_of(session: SessionHandle, command: str, tool: str = "terminal") -> str:
    """How the command ended: what is asked about is denied, and counts as asked."""
    arguments = {"command": command} if tool == "terminal" else json.loads(command)
    outcome = ""
    async for event in session.run(tool, json.dumps(arguments)):
        if isinstance(event, ev.ApprovalAsked):
            outcome = "asked"
            await session.answer(event.approval_id, "deny")
        if isinstance(event, ev.CallFinished):
            outcome = outcome or event.outcome
    return outcome


TOUCHING = [
    "touch d",
    "touch d; python3 -c pass",
    "python3 -c pass; touch d",
    "PATH=$PATH:/x touch d",
    "A=1 B=2 touch d",
    "env - touch d",
    "env -i PATH=/bin:/usr/bin touch d",
    "env -u X touch d",
    "nice -n 5 timeout 9 touch d",
    "echo d | xargs touch",
    "command touch d",
    "exec touch d",
    "time A=1 touch d",
    "/usr/bin/touch d",
    "\\touch d",
    "t''ouch d",
    "{touch,d}",
    "{,touch,d}",
    "true && (touch d)",
    "ls | touch d",
    "touch d > /dev/null 2>&1 &",
    "echo $(touch d)",
    "bash -c 'touch d'",
    "bash <<< 'touch d'",
    "eval 'to'uch d",
    "f() { touch d; }; f",
    "find . -maxdepth 0 -exec touch d ';'",
    "x=touch; $x d",
    "a=()echo touch d",
    "a=()# touch d",
    "echo touch d | sh",
    "sed '1etouch d' /etc/hostname",
    "trap 'touch d' EXIT",
    "if true; then touch d; fi",
    "touch d \\\n\\\n\\",
    "(",
]


async def test_a_rule_that_denies_sees_the_command_wherever_it_stands(tmp_path: Path) -> None:
    async with session_with(tmp_path, 'deny = ["terminal:touch*"]') as session:
        outcomes = {command: await outcome_of(session, command) for command in TOUCHING}
        assert {c: o for c, o in outcomes.items() if o != "denied"} == {}
        assert not (tmp_path / "workspace" / "d").exists()
        assert await outcome_of(session, "echo touch d; ls") == "completed"
        assert await outcome_of(session, "mkdir touch") == "completed"


PUSHING = [
    "git push",
    "git push --force; true",
    "git -C . push --force",
    "git --no-pager -c a.b=c push",
    "env git push",
    "git push -f | cat",
    "git $VERB",
    "git -C $X status",
]


@pytest.mark.parametrize("verdict", ["deny", "ask"])
async def test_options_before_a_subcommand_hide_nothing(tmp_path: Path, verdict: str) -> None:
    mode: ApprovalMode = "never" if verdict == "deny" else "auto"
    expected = "denied" if verdict == "deny" else "asked"
    async with session_with(tmp_path, f'{verdict} = ["terminal:git push*"]', mode) as session:
        outcomes = {command: await outcome_of(session, command) for command in PUSHING}
        assert {c: o for c, o in outcomes.items() if o != expected} == {}
        assert await outcome_of(session, "git --version; echo push") == "completed"


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("git push --force*", "git push origin main --force"),
        ("git push --force*", "git push --forc"),
        ("git push --force*", "git push $OPTIONS"),
        ("rm -rf*", "rm -fr x"),
        ("rm -rf*", "rm -r -f x"),
        ("rm -rf*", "rm x -rf"),
        ("rm -rf*", "rm $WHAT"),
        ("cat secret*", "cat *"),
        ("cat secret*", "cat s?cret"),
        ("cat /home/*", "cat ~/x"),
        ("npm publish*", "npm --prefix . publish"),
        ("python*", "python3.11 x.py"),
        ("sudo*", "env sudo ls"),
        ("uv run*", "uv run ls"),
        ("ls*", "uv run --with x ls"),
        ("ls*", "unheard-of --of ls; $unknown"),
    ],
)
async def test_other_spellings_are_the_same_command(
    tmp_path: Path, rule: str, command: str
) -> None:
    async with session_with(tmp_path, f'deny = ["terminal:{rule}"]') as session:
        assert await outcome_of(session, command) == "denied"


async def test_what_a_rule_does_not_speak_of_runs(tmp_path: Path) -> None:
    rules = 'deny = ["terminal:rm -rf*", "terminal:git push*", "terminal:cat secret*"]'
    async with session_with(tmp_path, rules) as session:
        for command in ("rm -f *.o", "git --version", "cat notes* || true", 'echo "$HOME"', "ls *"):
            assert await outcome_of(session, command) == "completed", command


async def test_what_is_written_to_a_process_is_seen_too(tmp_path: Path) -> None:
    async with session_with(tmp_path, 'deny = ["process:touch*"]') as session:
        write = {"action": "write", "name": "p1", "text": "ls; touch d\n"}
        assert await outcome_of(session, json.dumps(write), "process") == "denied"


LOSING = [
    "git reset --hard",
    "git clean -xdf",
    "git stash clear",
    "git push --force",
    "git checkout .",
]


async def test_a_rule_that_allows_does_not_allow_what_it_does_not_name(tmp_path: Path) -> None:
    rules = 'allow = ["terminal:git *", "terminal"]'
    async with session_with(tmp_path, rules, "ask") as session:
        outcomes = {command: await outcome_of(session, command) for command in LOSING}
        assert {c: o for c, o in outcomes.items() if o != "asked"} == {}
        assert await outcome_of(session, "git init -q . && git config user.name Ada") == "completed"


async def test_a_rule_that_names_what_is_dangerous_allows_it(tmp_path: Path) -> None:
    rules = 'allow = ["terminal:git *", "terminal:git reset --hard*", "terminal:git clean -xdf"]'
    async with session_with(tmp_path, rules, "auto") as session:
        assert await outcome_of(session, "git init -q .") == "completed"
        assert await outcome_of(session, "git reset --hard") == "completed"
        assert await outcome_of(session, "git reset --hard HEAD~3") == "completed"
        assert await outcome_of(session, "git clean -xdf") == "completed"
        assert await outcome_of(session, "git clean -xdff") == "asked"
        assert await outcome_of(session, "git reset --hard; git stash clear") == "asked"
