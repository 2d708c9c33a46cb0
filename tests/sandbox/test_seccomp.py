"""The filter of system calls: each that is refused, by its error, and ordinary work beside it."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shutil

import pytest

from keryx.aio.capture import Capture
from keryx.warden.confinement import seccomp
from tests.sandbox.den import PATIENCE, PYTHON, Den

pytestmark = pytest.mark.promise("walls.4")

COLUMN = seccomp.ARCHITECTURES[os.uname().machine][0]

# Arguments that a kernel takes for nonsense: nothing is done, and the error says who refused.
CALLING = """
import ctypes, json, sys
libc = ctypes.CDLL(None, use_errno=True)
def error_of(number, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments))
    return ctypes.get_errno() if result < 0 else 0
print(json.dumps([error_of(*call) for call in json.loads(sys.argv[1])]))
"""


def call(name: str, *arguments: int) -> list[int]:
    number = seccomp.NUMBERS[name][COLUMN]
    return [number, *(*arguments, *[-1] * 6)[:6]]


def calls() -> dict[str, tuple[list[int], int]]:
    """Each with the error that the filter gives."""
    expected = {name: (call(name), errno.EPERM) for name in seccomp.FORBIDDEN}
    expected |= {name: (call(name), errno.ENOSYS) for name in seccomp.ABSENT}
    for bit in (0o4000, 0o2000, 0o6755):
        for name, place in seccomp.MODE_AT.items():
            filler = [-1] * place
            expected[f"{name} {bit:o}"] = (call(name, *filler, bit), errno.EPERM)
        for name, place in seccomp.FLAGS_AT.items():
            for flags in (os.O_CREAT, os.O_TMPFILE):
                arguments = [*[-1] * place, flags, bit]
                expected[f"{name} {flags:o} {bit:o}"] = (call(name, *arguments), errno.EPERM)
    for family in {*range(60)} - {*seccomp.FAMILIES}:
        for name in ("socket", "socketpair"):
            wanted = (call(name, family, 1, 0), errno.EAFNOSUPPORT)
            expected[f"{name} of family {family}"] = wanted
    for request in seccomp.PUSH_INPUT:
        expected[f"ioctl {request:x}"] = (call("ioctl", 0, request), errno.EPERM)
    for flag in (1 << bit for bit in range(32) if seccomp.NEW_NAMESPACES >> bit & 1):
        expected[f"unshare {flag:x}"] = (call("unshare", flag), errno.EPERM)
        if flag & ~seccomp.EXIT_SIGNAL:
            expected[f"clone {flag:x}"] = (call("clone", flag, 0, 0, 0, 0), errno.EPERM)
    return {name: wanted for name, wanted in expected.items() if wanted[0][0] >= 0}


async def errors_in(den: Den, asked: list[list[int]]) -> list[int]:
    exit_, said = await den.run(PYTHON, "-c", CALLING, json.dumps(asked))
    assert exit_.code == 0, said
    return json.loads(said)


async def test_every_refused_call_is_refused_in_every_form(den: Den) -> None:
    expected = calls()
    errors = await errors_in(den, [asked for asked, _ in expected.values()])
    found = dict(zip(expected, errors, strict=True))
    assert found == {name: error for name, (_, error) in expected.items()}
    assert len(expected) > 150


async def test_the_same_modes_and_families_are_free_without_what_is_refused(den: Den) -> None:
    """So that what refuses is the filter, and it refuses for the reason that it should."""
    free = [
        call("fchmod", -1, 0o755),
        call("openat", -1, 0, os.O_RDONLY, 0o6000),  # makes nothing: the mode means nothing
        call("socket", 1, -1, 0),
        call("ioctl", -1, 0x5413),
        call("unshare", 0x400),
    ]
    assert errno.EPERM not in await errors_in(den, free)


@pytest.mark.skipif(COLUMN != 0, reason="only x86_64 has a second table for the same program")
async def test_calls_of_another_architecture_are_not_there(den: Den) -> None:
    x32 = seccomp.OTHER_TABLE | 39  # getpid
    assert await errors_in(den, [[x32, 0, 0, 0, 0, 0, 0]]) == [errno.ENOSYS]


# -- what a call is known by


SHEDDING = """
import os, resource, signal, sys
try:
    resource.setrlimit(10, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
except (OSError, ValueError) as error:
    print(error)
print(resource.getrlimit(10)[0] != resource.RLIM_INFINITY, flush=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        with open("pulse", "w") as pulse:
            print("ready", file=pulse, flush=True)
            signal.pause()
    os._exit(0)
os.wait()
signal.pause()
"""


async def test_what_leaves_its_call_ends_with_it_though_another_runs(den: Den) -> None:
    os.mkfifo(den.workspace / "pulse")
    pulse = os.open(den.workspace / "pulse", os.O_RDONLY | os.O_NONBLOCK)
    try:
        async with await den.start("/usr/bin/sleep", "1000"):
            said, ready = Capture(), asyncio.Event()
            process = await den.start(PYTHON, "-S", "-c", SHEDDING, output=said)
            asyncio.get_running_loop().add_reader(pulse, ready.set)
            async with asyncio.timeout(PATIENCE):
                await ready.wait()
                asyncio.get_running_loop().remove_reader(pulse)
                process.kill()
                await process.wait()
            assert "True" in said.text()
            assert os.read(pulse, 100) == b"ready\n"
            # Nobody holds the other end any more: the call is over, and so is all that it started.
            assert os.read(pulse, 1) == b""
    finally:
        os.close(pulse)


# -- ordinary work


C_PROGRAM = '#include <stdio.h>\nint main(void) { puts("it runs"); return 0; }\n'
WORK = {
    "a shell": "set -e; (echo a; echo b) | sort -r > out; cat out; mkdir -p d/e; cp -a d f; ls f",
    "git": (
        "set -e; export GIT_CONFIG_GLOBAL=/dev/null; git init -q r; cd r; echo x > a; git add a;"
        " git -c user.name=n -c user.email=e@x commit -qm m; git log --oneline; git gc -q"
    ),
    "make and gcc": "set -e; printf 'p: p.c\\n\\tcc -o p p.c\\n' > Makefile; make -s p; ./p",
    "python": (
        "python3 -c 'import subprocess, threading, multiprocessing as m;"
        ' subprocess.run(["true"], check=True); t = threading.Thread(target=print); t.start();'
        " t.join(); print(m.Pool(2).map(abs, [-1, -2]))'"
    ),
    "node": 'node -e \'require("child_process").execSync("true"); setTimeout(() => 0, 1)\'',
    "npm test": """printf '{"scripts":{"test":"node -e 0"}}' > package.json; npm test --offline""",
    "tar": "set -e; mkdir t; echo x > t/a; tar cf t.tar t; rm -r t; tar xf t.tar; cat t/a",
    "a debugger": "strace -f -o trace sh -c 'true; true'; grep -c exited trace",
    "cargo": "set -e; cargo --version",
    "go": "go version",
    "chromium": (
        "chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage"
        " --user-data-dir=$TMPDIR/c --dump-dom 'data:text/html,<p>drawn</p>' | grep drawn"
    ),
}
NEEDS = {"make and gcc": "cc", "npm test": "npm", "a debugger": "strace", "a shell": "sh"}
"""The program, where it has another name."""
ALWAYS = {"a shell", "git", "python", "node", "npm test", "tar", "chromium"}
"""What the suite cannot do without anyway."""
SYSTEM = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def program(name: str) -> str:
    return NEEDS.get(name, "python3" if name == "python" else name)


HERE = [name for name in WORK if name in ALWAYS or shutil.which(program(name), path=SYSTEM)]


@pytest.mark.parametrize("name", HERE)
async def test_ordinary_work_runs_as_before(den: Den, name: str) -> None:
    (den.workspace / "p.c").write_text(C_PROGRAM)
    exit_, said = await den.run("/bin/sh", "-c", f"export HOME=$TMPDIR; {WORK[name]}")
    assert exit_.code == 0, said
