"""A read-only session writes nothing in its workspace, whatever the judge makes of a command."""

from __future__ import annotations

from pathlib import Path

import pytest

from keryx.messages import Text
from tests.app.scripting import Den, call, hosting, run_python

pytestmark = pytest.mark.promise("walls.2")

# Each makes a file, in a spelling in which that is hard to see.
COMMANDS = [
    "sed -n 'wmade' lines",
    "sed '1etouch made' lines",
    "mktemp ./made.XXXX",
    """x='$(touch made)'; echo "${x@P}" """,
    "mapfile -C 'touch made #' -c 1 lines_read < lines",
    "let 'a[$(touch made)]=1'",
    "printf -v 'a[$(touch made)]' x",
    "awk 'BEGIN { print 1 > \"made\" }'",
    "sort lines -o made",
    "git init made",
    "python3 -c \"open('made', 'w')\"",
    "mkdir made",
    "ln -s lines made",
    "rm lines",
    "mv lines made",
    "chmod 600 lines",
    "truncate -s 0 lines",
]
WRITING = """
import os, subprocess
def attempt(work):
    try:
        work()
    except OSError:
        pass
attempt(lambda: open("made", "w"))
attempt(lambda: os.unlink("lines"))
attempt(lambda: os.rename("lines", "made"))
attempt(lambda: os.truncate("lines", 0))
attempt(lambda: os.utime("lines", (0, 0)))
attempt(lambda: os.mkdir(os.environ["KERYX_WORKSPACE"] + "/made"))
subprocess.run(["sh", "-c", "touch made; echo > lines"], stderr=subprocess.DEVNULL)
with open(os.environ["TMPDIR"] + "/scratch", "w") as file:
    print(file.write("temporary files can be written"), end="")
"""


def snapshot(folder: Path) -> list[tuple[str, int, float, str]]:
    return sorted(
        (path.name, path.lstat().st_mode, path.lstat().st_mtime, path.read_text())
        for path in folder.iterdir()
    )


@pytest.fixture
def lines(den: Den) -> list[tuple[str, int, float, str]]:
    (den.workspace / "lines").write_text("one\ntwo\n")
    return snapshot(den.workspace)


async def test_no_command_writes_however_it_is_spelled(
    den: Den, lines: list[tuple[str, int, float, str]]
) -> None:
    async with hosting(den) as app:
        handle = await app.open(approvals="never", read_only=True)
        for command in COMMANDS:
            await call(handle, "terminal", command=command)
            assert snapshot(den.workspace) == lines, command
        # The same commands can write in a session that may.
        free = await app.open(approvals="never")
        await call(free, "terminal", command=COMMANDS[0])
        assert (den.workspace / "made").exists()


async def test_a_tool_in_a_process_writes_nothing_but_temporary_files(
    den: Den, lines: list[tuple[str, int, float, str]]
) -> None:
    async with hosting(den, run_python) as app:
        handle = await app.open(approvals="never", read_only=True)
        said = await call(handle, "run_python", program=WRITING, facts="")
        assert said.result == (Text("30"),)
        assert (await call(handle, "execute_code", code=WRITING)).outcome == "denied"
        assert snapshot(den.workspace) == lines


async def test_what_is_set_later_holds_for_what_starts_later(
    den: Den, lines: list[tuple[str, int, float, str]]
) -> None:
    async with hosting(den, run_python) as app:
        handle = await app.open(approvals="never")
        await call(handle, "run_python", program="print(1)", facts="")  # its process stays warm
        await handle.change(read_only=True)
        await call(handle, "run_python", program=WRITING, facts="")
        await call(handle, "terminal", command=COMMANDS[0])
        assert snapshot(den.workspace) == lines
        await handle.change(read_only=False)
        await call(handle, "terminal", command=COMMANDS[0])
        assert (den.workspace / "made").exists()
