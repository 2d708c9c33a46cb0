"""hermes-agent issue #17770: a script calls tools from threads, and each gets its own answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.commands import keryx

EXAMPLES = Path(__file__).parent.parent.parent / "examples"

TEN_THREADS = """
import concurrent.futures
from hermes_tools import terminal

def ask(number):
    answer = terminal(f"echo BEGIN-{number}; sleep 0.3; echo END-{number}", timeout=10)
    return number, answer.get("output", "")

with concurrent.futures.ThreadPoolExecutor(max_workers=10) as pool:
    answers = list(pool.map(ask, range(10)))
wrong = [n for n, text in answers if f"BEGIN-{n}\\n" not in text or f"END-{n}\\n" not in text]
print(f"wrong: {len(wrong)}/10")
"""

ALL_KINDS = """
import asyncio, concurrent.futures, multiprocessing, subprocess, sys
import keryx_tools
from keryx_tools import terminal
from keryx_tools import aio

def one(tag):
    return tag, terminal(f"echo {tag}")["output"].strip()

async def many(tags):
    return [(t, r["output"].strip()) for t, r in
            zip(tags, await asyncio.gather(*(aio.terminal(f"echo {t}") for t in tags)))]

def check(pairs):
    assert all(tag == answer for tag, answer in pairs), pairs
    return len(pairs)

if __name__ == "__main__":
    done = 0
    with multiprocessing.get_context("fork").Pool(4) as pool:      # before the first call
        done += check(pool.map(one, [f"early{n}" for n in range(20)]))
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        done += check(list(pool.map(one, [f"thread{n}" for n in range(40)])))
    done += check(asyncio.run(many([f"task{n}" for n in range(40)])))
    with multiprocessing.get_context("fork").Pool(4) as pool:      # after it
        done += check(pool.map(one, [f"late{n}" for n in range(20)]))
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        done += check(pool.map(one, [f"spawned{n}" for n in range(8)]))
    code = "from keryx_tools import terminal; print(terminal('echo below')['output'], end='')"
    below = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert below.stdout == "below\\n", below
    print(f"right: {done}")
"""

ABANDONED = """
import signal
from keryx_tools import terminal

class GivenUp(Exception):
    pass

def give_up(number, frame):
    raise GivenUp

signal.signal(signal.SIGALRM, give_up)
for number in range(5):
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        terminal(f"sleep 0.5; echo LATE-{number}")
    except GivenUp:
        pass
    signal.setitimer(signal.ITIMER_REAL, 0)
    answer = terminal(f"echo MINE-{number}")["output"]
    assert answer == f"MINE-{number}\\n", answer
print("nothing was poisoned")
"""

NOT_GRANTED = """
try:
    from keryx_tools import terminal
except ImportError as error:
    print("refused:", error)
"""


def execute(tmp_path: Path, code: str, *words: str) -> tuple[int, str, str]:
    script = tmp_path / "script.py"
    script.write_text(code)
    workspace = tmp_path / "workspace"
    workspace.mkdir(exist_ok=True)
    home = tmp_path / "home"
    result = keryx(home, "exec", str(script), "--workspace", str(workspace), *words)
    return result.returncode, result.stdout, result.stderr


@pytest.mark.promise("000.1")
def test_ten_threads_each_get_their_own_answer(tmp_path: Path) -> None:
    assert execute(tmp_path, TEN_THREADS) == (0, "wrong: 0/10\n", "")


@pytest.mark.promise("000.2")
def test_threads_tasks_and_processes_before_and_after_the_first_call(tmp_path: Path) -> None:
    code, output, errors = execute(tmp_path, ALL_KINDS)
    assert (code, output) == (0, "right: 128\n"), errors


@pytest.mark.promise("000.4")
def test_a_call_that_its_caller_gave_up_on_poisons_nothing(tmp_path: Path) -> None:
    assert execute(tmp_path, ABANDONED) == (0, "nothing was poisoned\n", "")


def test_a_script_without_grants_has_no_tools(tmp_path: Path) -> None:
    code, output, errors = execute(tmp_path, NOT_GRANTED, "--tools", "")
    assert code == 0, errors
    assert output.startswith("refused:")


@pytest.mark.promise("000.8")
def test_one_command_over_thirteen_regions_is_an_example(tmp_path: Path) -> None:
    code, output, errors = execute(tmp_path, (EXAMPLES / "regions.py").read_text())
    assert code == 0, errors
    assert "13 of 13 regions" in output


def test_what_the_script_calls_is_summed_up_and_its_value_kept(tmp_path: Path) -> None:
    code, output, _ = execute(tmp_path, (EXAMPLES / "regions.py").read_text(), "--json")
    assert code == 0
    finished = [json.loads(line) for line in output.splitlines()][-1]
    assert (finished["nested"]["calls"], finished["nested"]["completed"]) == (13, 13)
    value = finished["result"][0]["value"]
    assert len(value["result"]) == 13
    assert value["calls"]["terminal"]["count"] == 13


def test_the_exit_code_and_the_output_are_the_script_s(tmp_path: Path) -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)"
    assert execute(tmp_path, code) == (7, "out\n", "err\n")
    assert execute(tmp_path, "raise ValueError('no')")[0] == 1
    missing = keryx(tmp_path / "home", "exec", str(tmp_path / "nothing.py"))
    assert missing.returncode == 1
    assert "cannot be read" in missing.stderr
