"""`make` on a machine that lacks something: it installs that, or says what to install."""

from __future__ import annotations

import os
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
SUDO = """#!/bin/sh
exec "$@"
"""


def make_environment(world: Path, apt_get: str) -> subprocess.CompletedProcess[str]:
    """Run the rule that makes the virtual environment, with these programs on the PATH."""
    folder = world / "bin"
    folder.mkdir()
    for name, script in (("python3", PYTHON), ("apt-get", apt_get), ("sudo", SUDO)):
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)
    return subprocess.run(
        ["make", f"VENV={world}/venv", "PYTHON=python3", f"{world}/venv/bin/python"],
        cwd=ROOT,
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "WORLD": str(world)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_virtual_environments_need_is_installed(tmp_path: Path) -> None:
    made = make_environment(tmp_path, APT_GET)
    assert made.returncode == 0, made.stderr
    assert "install --yes --no-install-recommends python3.11-venv" in (
        (tmp_path / "apt-get").read_text()
    )
    assert (tmp_path / "venv" / "bin" / "python").exists()


def test_what_cannot_be_installed_is_named_and_nothing_half_made_is_left(tmp_path: Path) -> None:
    made = make_environment(tmp_path, REFUSES)
    assert made.returncode != 0
    assert "apt install python3-venv" in made.stderr
    assert not (tmp_path / "venv").exists()
