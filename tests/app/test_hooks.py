"""Hooks: programs of a person that see calls before and after, and may change or refuse them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from keryx import NO_EFFECTS, Keryx, tool
from keryx import events as ev
from keryx.app import SessionHandle
from keryx.messages import text_of
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply, history_of
from keryx.ports.effects import writes
from keryx.ports.model import ModelRequest
from keryx.ports.tool import Risk
from tests.app.hosts import PATIENCE, cancelled, first, result_of
from tests.cli.commands import COMMAND, environment, keryx, model_server

pytestmark = pytest.mark.promise("kit.7")

ECHO: Final = {"text": "hello"}


def hook(folder: Path, body: str, name: str = "hook") -> str:
    """Write a hook; return its settings without the event."""
    path = folder / f"{name}.py"
    path.write_text(f"import json, os, sys, time\ncall = json.load(sys.stdin)\n{body}\n")
    return f'name = "{name}"\ncommand = {json.dumps([sys.executable, str(path)])}\n'


def configure(home: Path, *hooks: str) -> None:
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text("".join(f"[[hooks]]\n{text}\n" for text in hooks))


BEFORE: Final = 'event = "before_call"\n'
AFTER: Final = 'event = "after_call"\n'


@tool(effects=NO_EFFECTS)
async def echo(text: str) -> str:
    """Return the text."""
    return text


def risk_of(args: Any, workspace: Path) -> Risk:
    del workspace
    return Risk("high" if args.text == "risky" else "low")


@tool(effects=NO_EFFECTS, risk=risk_of)
async def judged(text: str) -> str:
    """Return the text; one text is risky."""
    return text


def asking(*calls: ScriptedCall) -> ScriptedModel:
    def reply(request: ModelRequest) -> ScriptedReply:
        if type(history_of(request)[-1]).__name__ == "UserMessage":
            return ScriptedReply(text="", calls=list(calls))
        return ScriptedReply(text="Done.")

    return ScriptedModel(reply)


async def finished(session: SessionHandle) -> list[ev.CallFinished]:
    """Run one turn; return how its calls ended."""
    result = await result_of(await session.send("go", attended=False))
    assert result.outcome == "completed"
    return list(result.calls)


async def run_echo(tmp_path: Path, *hooks: str, **changes: Any) -> ev.CallFinished:
    home = tmp_path / "home"
    configure(home, *hooks)
    model = asking(ScriptedCall("echo", {**ECHO, **changes}))
    async with Keryx(home=home, workspace=tmp_path, tools=[echo], model=model) as app:
        (call,) = await finished(await app.open())
    return call


async def test_a_hook_reads_the_call_and_may_say_nothing(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    body = f"open({str(seen)!r}, 'a').write(json.dumps(call) + '\\n')"
    call = await run_echo(tmp_path, BEFORE + hook(tmp_path, body), AFTER + hook(tmp_path, body))
    assert (call.outcome, text_of(call.result), call.hooks) == ("completed", "hello", ())
    before, after = map(json.loads, seen.read_text().splitlines())
    common = {
        "session_id": call.session_id,
        "call_id": call.call_id,
        "tool": "echo",
        "input": ECHO,
        "workspace": str(tmp_path),
    }
    assert before == {"event": "before_call", **common}
    assert after == {"event": "after_call", **common, "outcome": "completed", "result": "hello"}


@pytest.mark.parametrize(
    "body",
    [
        'print(json.dumps({"decision": "deny", "reason": "not today"}))',
        'sys.stderr.write("not today"); sys.exit(2)',
    ],
)
async def test_a_hook_refuses_a_call(tmp_path: Path, body: str) -> None:
    call = await run_echo(tmp_path, BEFORE + hook(tmp_path, body))
    assert (call.outcome, call.started) == ("denied", False)
    assert call.reason == "the hook 'hook' refused it: not today"
    assert [(action.hook, action.action) for action in call.hooks] == [("hook", "deny")]


async def test_a_hook_changes_the_input_and_the_log_says_so(tmp_path: Path) -> None:
    home = tmp_path / "home"
    configure(
        home,
        BEFORE
        + hook(
            tmp_path, 'print(json.dumps({"input": {"text": call["input"]["text"] + "1"}}))', "one"
        ),
        BEFORE
        + hook(
            tmp_path, 'print(json.dumps({"input": {"text": call["input"]["text"] + "2"}}))', "two"
        ),
    )
    model = asking(ScriptedCall("echo", ECHO))
    async with Keryx(home=home, workspace=tmp_path, tools=[echo], model=model) as app:
        session = await app.open()
        (call,) = await finished(session)
        log = await app.store.events(session.session_id)
    assert text_of(call.result).startswith("hello12\n")
    assert 'the hook \'two\' changed the input to: {"text": "hello12"}' in text_of(call.result)
    (amended,) = [event for event in log if isinstance(event, ev.CallAmended)]
    assert [action.hook for action in amended.hooks] == ["one", "two"]
    (started,) = [event for event in log if isinstance(event, ev.CallStarted)]
    assert json.loads(started.arguments) == json.loads(amended.arguments) == {"text": "hello12"}


async def test_a_changed_input_is_judged_not_the_old_one(tmp_path: Path) -> None:
    home = tmp_path / "home"
    body = (
        'other = {"risky": "safe", "safe": "risky"}[call["input"]["text"]]\n'
        'print(json.dumps({"input": {"text": other}}))'
    )
    configure(home, BEFORE + hook(tmp_path, body))
    model = asking(
        ScriptedCall("judged", {"text": "safe"}), ScriptedCall("judged", {"text": "risky"})
    )
    async with Keryx(home=home, workspace=tmp_path, tools=[judged], model=model) as app:
        calls = await finished(await app.open())
    by_outcome = {call.outcome: call for call in calls}
    reason = by_outcome["denied"].reason or ""
    assert reason.startswith("undelivered: it needs approval, and nobody is there to answer")
    assert text_of(by_outcome["completed"].result).startswith("safe\n")


async def test_a_changed_input_decides_about_the_order(tmp_path: Path) -> None:
    """The second call is made to conflict with the first one, and waits for it."""
    home, running, overlapped = tmp_path / "home", set[str](), list[str]()

    @tool(effects=lambda args: writes(args.path))
    async def work(path: str, label: str) -> str:
        """Work on a path."""
        if running:
            overlapped.append(label)
        running.add(label)
        await asyncio.sleep(0)
        running.discard(label)
        return label

    configure(
        home,
        BEFORE + hook(tmp_path, 'print(json.dumps({"input": {**call["input"], "path": "same"}}))'),
    )
    calls = [ScriptedCall("work", {"path": f"p{n}", "label": str(n)}) for n in range(5)]
    async with Keryx(home=home, workspace=tmp_path, tools=[work], model=asking(*calls)) as app:
        results = await finished(await app.open())
    assert len(results) == len(calls)
    assert overlapped == []


ANSWER: Final = """field = b"input" if call["event"] == "before_call" else b"result"
sys.stdout.buffer.write(b'{"' + field + b'": {"text": %s}}')"""
LONG_NOTE: Final = 'print(json.dumps({"note": "x" * 1_000_000}))'
BROKEN: Final = {
    "invalid JSON": ('print("{nope")', "is not valid"),
    "another form": ('print(json.dumps({"decison": "deny"}))', "unknown field"),
    "an unknown decision": ('print(json.dumps({"decision": "maybe"}))', "is not valid"),
    "a list as input": ('print(json.dumps({"input": [1]}))', "must be an object"),
    "an exit code": ('sys.stderr.write("oh"); sys.exit(7)', "exit code 7; it wrote: oh"),
    "a signal": ("os.kill(os.getpid(), 9)", "signal 9"),
    "too much": ('sys.stdout.write("x" * 3_000_000)', "more than 1048576 bytes"),
    "bytes that are no text": (ANSWER % r'"\xff"', "is not valid"),
    "a number out of range": (ANSWER % "1e999", "out of range"),
    "input that the tool refuses": ('print(json.dumps({"input": {"text": 5}}))', "text"),
}


@pytest.mark.parametrize(("body", "words"), BROKEN.values(), ids=BROKEN)
async def test_a_hook_before_a_call_that_fails_stops_the_call(
    tmp_path: Path, body: str, words: str
) -> None:
    call = await run_echo(tmp_path, BEFORE + hook(tmp_path, body))
    assert (call.outcome, call.started) == ("failed", False)
    assert "the hook 'hook' before it failed" in text_of(call.result)
    assert words in text_of(call.result)
    assert [action.action for action in call.hooks] == ["fault"]


async def test_a_hook_that_cannot_start_or_is_too_slow_stops_the_call(tmp_path: Path) -> None:
    call = await run_echo(tmp_path, BEFORE + 'name = "missing"\ncommand = ["/no/such/program"]\n')
    assert call.outcome == "failed"
    assert "the hook 'missing' before it failed: it cannot be run" in text_of(call.result)
    slow = "timeout = 0.2\n" + hook(tmp_path, "time.sleep(100)")
    call = await run_echo(tmp_path, BEFORE + slow)
    assert "it has not ended after 0.2 seconds" in text_of(call.result)


@pytest.mark.parametrize(("body", "words"), list(BROKEN.values())[4:9], ids=list(BROKEN)[4:9])
async def test_a_hook_after_a_call_that_fails_leaves_the_result(
    tmp_path: Path, body: str, words: str
) -> None:
    call = await run_echo(tmp_path, AFTER + hook(tmp_path, body))
    assert call.outcome == "completed"
    assert text_of(call.result).startswith("hello\n[the hook 'hook' after the call failed:")
    assert words in text_of(call.result)
    assert [action.action for action in call.hooks] == ["fault"]


async def test_a_hook_after_a_call_changes_what_the_model_sees(tmp_path: Path) -> None:
    body = 'print(json.dumps({"result": call["result"].upper(), "note": "louder"}))'
    call = await run_echo(tmp_path, AFTER + 'match = "ec*"\n' + hook(tmp_path, body))
    assert text_of(call.result).splitlines() == [
        "HELLO",
        "[the hook 'hook' replaced the result]",
        "[note of the hook 'hook': louder]",
    ]
    assert [action.action for action in call.hooks] == ["result", "note"]
    call = await run_echo(tmp_path, AFTER + hook(tmp_path, LONG_NOTE))
    assert "characters left out" in text_of(call.result)


async def test_hooks_are_for_the_tools_that_they_name(tmp_path: Path) -> None:
    deny = hook(tmp_path, "sys.exit(2)")
    call = await run_echo(tmp_path, BEFORE + 'match = ["write_*", "ECHO"]\n' + deny)
    assert call.outcome == "completed"
    call = await run_echo(tmp_path, BEFORE + 'match = ["write_*", "e?ho"]\n' + deny)
    assert call.outcome == "denied"


async def test_a_command_may_be_a_line_for_the_shell(tmp_path: Path) -> None:
    call = await run_echo(tmp_path, BEFORE + 'command = "cat >/dev/null; echo no >&2; exit 2"\n')
    assert call.outcome == "denied"
    assert call.reason == "the hook 'cat >/dev/null; echo no >&2; exit 2' refused it: no"


async def test_a_hook_may_not_put_a_secret_into_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "value-of-a-secret")
    body = 'print(json.dumps({"input": {"text": "value-of-a-" + "secret"}}))'
    call = await run_echo(tmp_path, BEFORE + hook(tmp_path, body))
    assert call.outcome == "failed"
    assert "value-of-a-secret" not in ev.encode(call).decode()
    body = 'sys.stderr.write("value-of-a-" + "secret"); sys.exit(2)'
    call = await run_echo(tmp_path, BEFORE + hook(tmp_path, body))
    assert call.outcome == "denied"
    assert "value-of-a-secret" not in ev.encode(call).decode()


async def test_calls_of_a_script_pass_the_hooks_side_by_side(tmp_path: Path) -> None:
    """Each of the calls waits in its hook until the hooks of all of them run."""
    home, meeting = tmp_path / "home", tmp_path / "meeting"
    meeting.mkdir()
    body = f"""
folder = {str(meeting)!r}
open(os.path.join(folder, call["call_id"]), "w").close()
while len(os.listdir(folder)) < 8:
    time.sleep(0.01)
print(json.dumps({{"input": {{"path": "b.txt"}}}}))
"""
    configure(home, BEFORE + 'match = "read_file"\n' + hook(tmp_path, body))
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "a.txt").write_text("A")
    (workspace / "b.txt").write_text("B")
    script = tmp_path / "script.py"
    script.write_text(
        "import keryx_tools as k\n"
        "print(k.parallel(lambda path: k.read_file(path)['text'], ['a.txt'] * 8))\n"
    )
    done = keryx(home, "exec", str(script), "--workspace", str(workspace), "--timeout", "60")
    assert done.stdout.count("B") == 8, done.stderr
    assert "A" not in done.stdout


async def test_cancelling_a_call_ends_its_hook(tmp_path: Path) -> None:
    home, pids = tmp_path / "home", tmp_path / "pids"
    body = f"""
child = os.fork()
if child:
    open({str(pids)!r} + ".part", "w").write(f"{{os.getpid()}} {{child}}")
    os.rename({str(pids)!r} + ".part", {str(pids)!r})
else:
    os.setsid()
time.sleep(1000)
"""
    configure(home, BEFORE + hook(tmp_path, body))
    model = asking(ScriptedCall("echo", ECHO))
    async with Keryx(home=home, workspace=tmp_path, tools=[echo], model=model) as app:
        session = await app.open()
        turn = await session.send("go")
        await first(turn, ev.StepReplied)
        async with asyncio.timeout(PATIENCE):
            while not pids.exists():  # noqa: ASYNC110 (another process writes it)
                await asyncio.sleep(0.01)
        result = await cancelled(turn)
        (call,) = result.calls
        assert (call.outcome, call.started) == ("cancelled", False)
        for pid in map(int, pids.read_text().split()):
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)


async def test_a_call_that_has_completed_stays_so_if_its_hook_is_cancelled(tmp_path: Path) -> None:
    home, began = tmp_path / "home", tmp_path / "began"
    configure(home, AFTER + hook(tmp_path, f"open({str(began)!r}, 'w').close(); time.sleep(1000)"))
    model = asking(ScriptedCall("echo", ECHO))
    async with Keryx(home=home, workspace=tmp_path, tools=[echo], model=model) as app:
        session = await app.open()
        turn = await session.send("go")
        async with asyncio.timeout(PATIENCE):
            while not began.exists():  # noqa: ASYNC110 (another process writes it)
                await asyncio.sleep(0.01)
        result = await cancelled(turn)
        (call,) = result.calls
        assert call.outcome == "completed"
        assert text_of(call.result).startswith("hello\n")
        assert "because the call was cancelled" in text_of(call.result)


WRONG: Final = {
    "no event": 'command = "true"',
    "an unknown event": 'event = "before"\ncommand = "true"',
    "no command": 'event = "before_call"',
    "an empty command": 'event = "before_call"\ncommand = []',
    "an empty line": 'event = "before_call"\ncommand = " "',
    "an empty match": 'event = "before_call"\ncommand = "true"\nmatch = []',
    "a timeout of 0": 'event = "before_call"\ncommand = "true"\ntimeout = 0',
    "an unknown setting": 'event = "before_call"\ncomand = "true"',
    "a NUL": 'event = "before_call"\ncommand = "tr\\u0000ue"',
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_a_hook_that_is_written_wrongly_is_an_error(tmp_path: Path, text: str) -> None:
    configure(tmp_path / "home", text)
    done = keryx(tmp_path / "home", "doctor")
    assert done.returncode == 1
    assert "hook 1 of [[hooks]]" in done.stdout


def test_a_table_of_hooks_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[hooks]\nevent = "before_call"\ncommand = "true"\n')
    done = keryx(tmp_path, "doctor")
    assert done.returncode == 1
    assert "[[hooks]]" in done.stdout


COUNT: Final = """
from keryx import tool
from keryx.ports.tool import Risk

@tool(risk=lambda args, _: Risk("high" if args.ask else "low"))
def count(text: str, ask: bool = False) -> str:
    "Count."
    with open({runs!r}, "a") as file:
        file.write(text)
    return "counted"
"""


def own_tool(tmp_path: Path) -> None:
    tools = tmp_path / "home" / "tools"
    tools.mkdir(mode=0o700)
    (tools / "count.py").write_text(COUNT.format(runs=str(tmp_path / "runs")))
    (tools / "count.py").chmod(0o600)


def start_and_die(tmp_path: Path, arguments: dict[str, object], *hooks: str) -> None:
    """Run a turn whose only call counts, in a host that a hook kills."""
    home = tmp_path / "home"
    with model_server(
        home, {"calls": [{"tool": "count", "arguments": arguments}]}, {"text": "Ok."}
    ):
        text = (home / "config.toml").read_text()
        (home / "config.toml").write_text(text + "".join(f"[[hooks]]\n{hook}\n" for hook in hooks))
        own_tool(tmp_path)
        with subprocess.Popen(
            [COMMAND, "run", "--workspace", str(tmp_path), "--tools", "count", "go"],
            env=environment(home),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            (tmp_path / "pid.part").write_text(str(process.pid))
            (tmp_path / "pid.part").rename(tmp_path / "pid")
            process.communicate(timeout=PATIENCE)
        assert process.returncode == -signal.SIGKILL


def killing(tmp_path: Path) -> str:
    """Kill the host, once."""
    return f"""
file = {str(tmp_path / "pid")!r}
while not os.path.exists(file) and not os.path.exists(file + ".used"):
    time.sleep(0.01)
if os.path.exists(file):
    host = int(open(file).read())
    os.rename(file, file + ".used")
    os.kill(host, 9)
    time.sleep(1000)
"""


async def resumed_call(home: Path) -> ev.CallFinished:
    """Let the next host resume the turn; return how its call ended."""
    async with Keryx(home=home) as app, asyncio.timeout(PATIENCE):
        (row,) = await app.store.sessions()
        session = await app.open(row.session_id)
        async for event in session.events(after=0):
            if isinstance(event, ev.CallFinished):
                return event
    raise AssertionError("the log ended")


@pytest.mark.parametrize(("event", "outcome"), [(BEFORE, "completed"), (AFTER, "unknown")])
async def test_the_death_of_the_host_in_a_hook_runs_no_tool_twice(
    tmp_path: Path, event: str, outcome: str
) -> None:
    start_and_die(tmp_path, {"text": "x"}, event + hook(tmp_path, killing(tmp_path)))
    call = await resumed_call(tmp_path / "home")
    assert call.outcome == outcome
    assert (tmp_path / "runs").read_text() == "x"


def run_program(words: list[str], home: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(words, env=environment(home), check=False, timeout=PATIENCE)


WAITING: Final = """
import asyncio, os, sys
from keryx import Keryx, events as ev

async def main():
    async with Keryx(home=sys.argv[1], workspace=sys.argv[2]) as app:
        turn = await (await app.open(tools=["count"])).send("go", attended=True)
        async for event in turn.events():
            if isinstance(event, ev.ApprovalAsked):
                os.kill(os.getpid(), 9)

asyncio.run(main())
"""


async def test_what_a_person_approved_is_what_runs_after_a_crash(tmp_path: Path) -> None:
    """The hook would change the input differently now; the approved input is in the log."""
    home = tmp_path / "home"
    first_input = BEFORE + hook(
        tmp_path, 'print(json.dumps({"input": {"text": "1", "ask": True}}))'
    )
    call = {"tool": "count", "arguments": {"text": "0"}}
    with model_server(home, {"calls": [call]}, {"text": "Ok."}):
        text = (home / "config.toml").read_text()
        (home / "config.toml").write_text(f"{text}\n[[hooks]]\n{first_input}")
        own_tool(tmp_path)
        program = [sys.executable, "-c", WAITING, str(home), str(tmp_path)]
        killed = run_program(program, home)
        assert killed.returncode == -signal.SIGKILL
        hook(tmp_path, 'print(json.dumps({"input": {"text": "2", "ask": False}}))')
        async with Keryx(home=home) as app, asyncio.timeout(PATIENCE):
            (row,) = await app.store.sessions()
            session = await app.open(row.session_id)
            log = await app.store.events(row.session_id)
            (request,) = [event for event in log if isinstance(event, ev.ApprovalAsked)]
            assert request.what == "count: 1"
            await session.answer(request.approval_id, "once")
            async for event in session.events(after=0):
                if isinstance(event, ev.CallFinished):
                    assert event.outcome == "completed"
                    break
    assert (tmp_path / "runs").read_text() == "1"
