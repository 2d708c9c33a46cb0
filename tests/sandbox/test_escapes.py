"""Ways out of a confinement: behind all walls none works, and a report names those that do."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from keryx.cli.doctor import advice_on
from tests.sandbox.confined_workspace import ConfinedWorkspace
from tests.sandbox.escape_attempts import ATTEMPTS, BOUNDS, GAPS, NEVER
from tests.sandbox.unprivileged_host import NOBODY

pytestmark = pytest.mark.promise("tools.3")

CONFIGURATIONS = [
    (),
    ("landlock",),
    ("pids",),
    ("pids", "landlock"),
    ("net",),
    ("net", "landlock"),
    ("net", "landlock 3"),
    ("ipc",),
    ("userns",),
    ("userns", "landlock 5"),
    ("userns", "landlock 3"),
    ("userns", "landlock 2"),
    ("userns", "landlock 1"),
    ("userns", "landlock"),
    ("seccomp",),
    ("seccomp", "userns", "landlock"),
]
each_configuration = pytest.mark.parametrize(
    "without", CONFIGURATIONS, ids=lambda walls: f"without {', '.join(walls) or 'nothing'}"
)


def check(level: str, gaps: set[str], escaped: set[str]) -> None:
    """What worked is admitted by a gap, and each gap was used."""
    gaps = gaps - {BOUNDS}
    tried = escaped & ATTEMPTS.keys()
    assert {name for name in tried if not GAPS[name] & gaps} == set()
    assert {gap for gap in gaps if not any(gap in GAPS[name] for name in tried)} == set()
    if level == "full":
        assert gaps == set()
        assert escaped == set()


async def test_without_a_policy_every_attempt_works(confined: ConfinedWorkspace):
    confined.policy = None
    assert await confined.escapes(ATTEMPTS) == ATTEMPTS.keys()


@each_configuration
async def test_a_report_names_exactly_what_gets_out(
    confined: ConfinedWorkspace, without: tuple[str, ...]
):
    confined.change(without=without)
    confinement = await confined.confinement()
    check(confinement.level, set(confinement.gaps), await confined.escapes(ATTEMPTS))
    for gap in confinement.gaps:
        assert advice_on([gap]), "doctor does not say what to do about it"


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that an ordinary user can reach and write."""
    folder = Path(tempfile.mkdtemp())
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    yield folder
    shutil.rmtree(folder)


@each_configuration
def test_the_same_is_true_for_an_ordinary_user(open_folder: Path, without: tuple[str, ...]):
    child = subprocess.run(
        [sys.executable, "-m", "tests.sandbox.unprivileged_host", str(open_folder), *without],
        stdout=subprocess.PIPE,
        check=True,
    )
    confinement = json.loads(child.stdout)
    check(confinement["level"], set(confinement["gaps"]), set(confinement["escaped"]))


@pytest.mark.parametrize("without", [(), ("landlock",)], ids=["with Landlock", "alone"])
async def test_namespaces_make_a_full_wall(confined: ConfinedWorkspace, without: tuple[str, ...]):
    confined.change(without=without)
    confinement = await confined.confinement()
    assert (confinement.level, confinement.gaps, confinement.tmp) == ("full", (), "/tmp")
    assert await confined.escapes(NEVER) == set()


ADD_KEY, KEYCTL = {"x86_64": (248, 250), "aarch64": (217, 219)}[os.uname().machine]
SESSION_KEYRING, REVOKE, SEARCH = -3, 3, 10
FIND_KEY = f"check(libc.syscall({KEYCTL}, {SEARCH}, {SESSION_KEYRING}, b'user', b'keryx', 0) > 0)"


async def test_the_keys_of_the_session_stay_outside(confined: ConfinedWorkspace):
    libc = ctypes.CDLL(None, use_errno=True)
    key = libc.syscall(ADD_KEY, b"user", b"keryx", b"secret", 6, SESSION_KEYRING)
    try:
        for without in CONFIGURATIONS:
            confined.change(without=without)
            assert await confined.escapes({"find a key": FIND_KEY}) == set()
        confined.policy = None
        assert await confined.escapes({"find a key": FIND_KEY}) == {"find a key"}
    finally:
        libc.syscall(KEYCTL, REVOKE, key)
