"""The shell tools, through the executor, with real processes."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from keryx.aio.clock import Clock, FakeClock
from keryx.app import Runtime
from keryx.engine.calls.background import Backgrounds
from keryx.engine.calls.call_environment import CallEnvironment
from keryx.engine.calls.call_hooks import CallView, NoHooks
from keryx.engine.redaction import Redactor
from keryx.messages import CallOutcome, Needs, ToolCall
from keryx.tools.shell.terminal import Shell, find_shell, shell_tools

pytestmark = [pytest.mark.promise("tools.6"), pytest.mark.usefixtures("unhurried_exits")]

PATIENCE = 30.0
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin"}


class Watch(NoHooks):
    """Waits for what calls print."""

    def __init__(self) -> None:
        self.printed = ""
        self._more = asyncio.Event()

    def output(self, call: CallView, stream: str, text: str) -> None:
        self.printed += text
        self._more.set()

    async def until(self, text: str) -> None:
        while text not in self.printed:
            self._more.clear()
            await self._more.wait()


class TerminalSession:
    def __init__(self, runtime: Runtime, workspace: Path, shell: Shell) -> None:
        self.runtime = runtime
        self.watch = Watch()
        self.background = Backgrounds(runtime.scope.child("background"))
        self.environment: CallEnvironment = runtime.call_environment(
            "s",
            shell_tools(shell),
            workspace=workspace,
            hooks=self.watch,
            env=ENVIRONMENT,
        )
        self.environment.background = self.background
        self.turn = runtime.scope.child("turn")
        self._count = 0

    def call(self, name: str, /, **arguments: Any) -> ToolCall:
        self._count += 1
        return ToolCall(f"c{self._count}", name, msgspec.json.encode(arguments).decode())

    async def run(self, *calls: ToolCall) -> list[CallOutcome]:
        async with asyncio.timeout(PATIENCE):
            return await self.runtime.executor.run(self.environment, calls, self.turn)

    async def terminal(self, command: str, **more: Any) -> Any:
        (outcome,) = await self.run(self.call("terminal", command=command, **more))
        assert outcome.outcome == "completed", outcome
        return msgspec.json.decode(outcome.text)

    async def process(self, action: str, **more: Any) -> Any:
        (outcome,) = await self.run(self.call("process", action=action, **more))
        assert outcome.outcome == "completed", outcome
        return msgspec.json.decode(outcome.text)


@asynccontextmanager
async def terminal_session(
    workspace: Path, clock: Clock | None = None
) -> AsyncGenerator[TerminalSession]:
    async with Runtime(clock=clock) as runtime:
        shell = await runtime.bridge.to_thread(find_shell)
        session = TerminalSession(runtime, workspace, Shell("/bin/sh", shell.on_pty))
        yield session
        await session.background.close()
        session.turn.close()


@pytest_asyncio.fixture
async def session(tmp_path: Path) -> AsyncIterator[TerminalSession]:
    async with terminal_session(tmp_path) as session:
        yield session


async def test_output_and_exit_code_come_back(session: TerminalSession) -> None:
    result = await session.terminal("echo out; echo err >&2; exit 3")
    assert result["exit_code"] == 3
    assert sorted(result["output"].split()) == ["err", "out"]


async def test_it_runs_in_the_workspace_or_the_folder_that_is_named(
    session: TerminalSession, tmp_path: Path
) -> None:
    (tmp_path / "sub").mkdir()
    assert (await session.terminal("pwd"))["output"].strip() == str(tmp_path)
    assert (await session.terminal("pwd", cwd="sub"))["output"].strip() == str(tmp_path / "sub")


async def test_a_folder_that_is_not_there_is_a_clear_error(session: TerminalSession) -> None:
    (outcome,) = await session.run(session.call("terminal", command="pwd", cwd="nowhere"))
    assert outcome.outcome == "failed"
    assert "nowhere" in outcome.text


async def test_a_command_that_dies_of_a_signal_says_which(session: TerminalSession) -> None:
    result = await session.terminal("kill -9 $$")
    assert (result["exit_code"], result["signal"]) == (None, 9)


async def test_a_timeout_ends_it_with_all_below_and_keeps_the_output(
    session: TerminalSession,
) -> None:
    call = session.call("terminal", command="echo begun; sleep 1000 & sleep 1000", timeout=0.3)
    (outcome,) = await session.run(call)
    assert (outcome.outcome, outcome.reason) == ("cancelled", "timeout")
    assert "begun" in outcome.text


@pytest.mark.parametrize("reason", ["interrupt", "steer", "shutdown", "parent"])
async def test_a_cancelled_command_is_dead_and_its_output_kept(tmp_path: Path, reason: Any) -> None:
    # Time stands still: however long a busy machine needs, the command is never left over.
    async with terminal_session(tmp_path, FakeClock()) as session:
        call = session.call("terminal", command="echo begun; sleep 1000 | cat")
        batch = session.runtime.executor.start(session.environment, [call], session.turn)
        async with asyncio.timeout(PATIENCE):
            await session.watch.until("begun")
            batch.cancel(call.call_id, reason, by="tester")
            (outcome,) = await batch.outcomes()
    assert (outcome.outcome, outcome.reason) == ("cancelled", reason)
    assert "begun" in outcome.text


async def test_ten_terminals_run_at_once(session: TerminalSession, tmp_path: Path) -> None:
    """Each waits for all the others: one after the other they would never end."""
    wait = "touch {n}; while [ $(ls | wc -l) -lt 10 ]; do :; done; echo done"
    calls = [session.call("terminal", command=wait.format(n=n)) for n in range(10)]
    outcomes = await session.run(*calls)
    assert all("done" in outcome.text for outcome in outcomes)


async def test_one_that_is_alone_runs_before_later_ones(session: TerminalSession) -> None:
    first = session.call("terminal", command="sleep 0.05; echo a > order", alone=True)
    second = session.call("terminal", command="echo b >> order; cat order")
    outcomes = await session.run(first, second)
    assert msgspec.json.decode(outcomes[1].text)["output"] == "a\nb\n"


async def test_a_command_that_prints_for_ever_is_bounded(session: TerminalSession) -> None:
    call = session.call("terminal", command="echo first; yes", timeout=0.3)
    (outcome,) = await session.run(call)
    assert outcome.outcome == "cancelled"
    assert len(outcome.text) < 200_000
    assert "first" in outcome.text
    assert "left out" in outcome.text


async def test_a_background_process_survives_the_call_and_is_read_fed_and_ended(
    session: TerminalSession,
) -> None:
    started = await session.terminal("while read line; do echo got $line; done", background=True)
    name = started["process"]
    assert (await session.process("list"))[0]["running"] is True
    await session.process("write", name=name, text="hello\n")
    output, after = "", 0
    async with asyncio.timeout(PATIENCE):
        while "got hello" not in output:
            read = await session.process("read", name=name, after=after)
            output, after = output + read["output"], read["next"]
            await session.process("wait", name=name, seconds=0.01)
    ended = await session.process("kill", name=name)
    assert ended["running"] is False


async def test_a_background_process_that_ends_says_how(session: TerminalSession) -> None:
    started = await session.terminal("echo bye; exit 4", background=True)
    ended = await session.process("wait", name=started["process"], seconds=20)
    assert (ended["running"], ended["exit_code"]) == (False, 4)
    assert (await session.process("read", name=started["process"]))["output"] == "bye\n"


async def test_background_processes_end_with_the_session(
    session: TerminalSession, tmp_path: Path
) -> None:
    await session.terminal("echo $$ > pid; sleep 1000", background=True)
    async with asyncio.timeout(PATIENCE):
        while not (pid := await session.terminal("cat pid 2>/dev/null || true"))["output"].strip():
            pass
    await session.background.close()
    alive = await session.terminal(
        f"kill -0 {pid['output'].strip()} 2>/dev/null && echo alive; true"
    )
    assert alive["output"] == ""


async def test_an_unknown_process_is_named_with_those_there_are(session: TerminalSession) -> None:
    (outcome,) = await session.run(session.call("process", action="read", name="bg9"))
    assert outcome.outcome == "failed"
    assert "there is no background process 'bg9' (there are: none)" in outcome.text


async def test_secrets_are_redacted_in_foreground_and_background(session: TerminalSession) -> None:
    session.environment = msgspec.structs.replace(
        session.environment, redactor=Redactor({"TOKEN": "tok-0123456789"})
    )
    result = await session.terminal("printf tok-0123; sleep 0.05; echo 456789")
    assert result["output"] == "[redacted: TOKEN]\n"
    started = await session.terminal("printf tok-0123; sleep 0.05; echo 456789", background=True)
    await session.process("wait", name=started["process"], seconds=20)
    read = await session.process("read", name=started["process"])
    assert read["output"] == "[redacted: TOKEN]\n"


async def test_a_program_that_insists_on_a_terminal_gets_one(session: TerminalSession) -> None:
    assert (await session.terminal("test -t 0 && test -t 1; echo $?"))["output"] == "1\n"
    result = await session.terminal("test -t 0 && test -t 1; echo $?; stty size; exit 3", pty=True)
    assert result["output"].replace("\r", "") == "0\n40 120\n"
    assert result["exit_code"] == 3


async def test_a_background_program_on_a_terminal_is_typed_to(session: TerminalSession) -> None:
    code = "read -p 'name? ' name; echo hello $name"
    started = await session.terminal(f"bash -c {shlex.quote(code)}", background=True, pty=True)
    name = started["process"]
    await session.process("write", name=name, text="ann\n")
    ended = await session.process("wait", name=name, seconds=20)
    assert ended["exit_code"] == 0
    assert "hello ann" in (await session.process("read", name=name))["output"]


def test_the_risk_of_a_command_says_what_it_needs(tmp_path: Path) -> None:
    terminal, process = shell_tools(Shell())
    judged = terminal.risk(terminal.parse('{"command":"curl https://x.org/a"}'), tmp_path)
    assert judged.needs == Needs(network=True)
    listed = terminal.risk(terminal.parse('{"command":"ls"}'), tmp_path)
    assert (listed.level, listed.changes) == ("none", False)
    moved = terminal.parse('{"command":"rm -rf x","cwd":"/"}')
    assert terminal.risk(moved, tmp_path).level == "high"
    written = process.parse('{"action":"write","name":"bg1","text":"sudo reboot\\n"}')
    assert process.risk(written, tmp_path).level == "high"
