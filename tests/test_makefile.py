"""`make` on a machine that lacks something: it installs that, or says what to install."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.promise("mended.17")

# A Python as Debian's is without python3-venv: it is whole once apt-get has run.
PYTHON = """#!/bin/sh
case "$*" in
  *ensurepip*) test -e "$WORLD/installed" ;;
  *version_info*) echo 3.11 ;;
  "-m venv "*) mkdir -p "$3/bin" && ln -s /bin/true "$3/bin/python" ;;
  *) exit 1 ;;
esac
"""
APT_GET = """#!/bin/sh
echo "$*" >> "$WORLD/apt-get"
case "$*" in *install*) touch "$WORLD/installed" ;; esac
"""
REFUSES = """#!/bin/sh
echo "E: Unable to acquire the dpkg frontend lock, are you root?" >&2
exit 100
"""
# Two at the same time fail, as the real one does. The first waits in the middle until it may go on.
ONE_AT_A_TIME = """#!/bin/sh
mkdir "$WORLD/apt-lock" || exit 100
if mkdir "$WORLD/first"; then read -r _ < "$WORLD/gate"; fi
case "$*" in *install*) touch "$WORLD/installed" ;; esac
rmdir "$WORLD/apt-lock"
"""
SUDO = """#!/bin/sh
exec "$@"
"""
# The real one, which says first that somebody is about to wait.
FLOCK = """#!/bin/sh
touch "$WORLD/waits-$$"
exec {flock} "$@"
"""


def start_make(world: Path, apt_get: str, venv: str = "venv") -> subprocess.Popen[str]:
    """Start the rule that makes the virtual environment, with these programs on the PATH."""
    folder = world / "bin"
    folder.mkdir(exist_ok=True)
    flock = FLOCK.format(flock=shutil.which("flock"))
    programs = {"python3": PYTHON, "apt-get": apt_get, "sudo": SUDO, "flock": flock}
    for name, script in programs.items():
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)
    return subprocess.Popen(
        ["make", f"VENV={world}/{venv}", "PYTHON=python3", f"{world}/{venv}/bin/python"],
        cwd=ROOT,
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "WORLD": str(world)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def make_environment(world: Path, apt_get: str) -> subprocess.CompletedProcess[str]:
    with start_make(world, apt_get) as make:
        out, error = make.communicate()
    return subprocess.CompletedProcess(make.args, make.returncode, out, error)


def test_two_clones_that_install_at_the_same_time_wait_for_each_other(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    with (
        start_make(tmp_path, ONE_AT_A_TIME, "one") as one,
        start_make(tmp_path, ONE_AT_A_TIME, "other") as other,
    ):
        while len(list(tmp_path.glob("waits-*"))) < len((one, other)):
            assert one.poll() is None
            assert other.poll() is None
            os.sched_yield()
        with (tmp_path / "gate").open("w") as gate:
            gate.write("go on\n")
        errors = [make.communicate()[1] for make in (one, other)]
    assert (one.returncode, other.returncode) == (0, 0), errors


def test_what_virtual_environments_need_is_installed(tmp_path: Path) -> None:
    result = make_environment(tmp_path, APT_GET)
    assert result.returncode == 0, result.stderr
    assert "install --yes --no-install-recommends python3.11-venv" in (
        (tmp_path / "apt-get").read_text()
    )
    assert (tmp_path / "venv" / "bin" / "python").exists()


def test_what_cannot_be_installed_is_named_and_nothing_half_made_is_left(tmp_path: Path) -> None:
    result = make_environment(tmp_path, REFUSES)
    assert result.returncode != 0
    assert "apt install python3-venv" in result.stderr
    assert not (tmp_path / "venv").exists()
