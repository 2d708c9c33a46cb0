"""A process that is killed while it takes a home or joins it leaves nothing behind for good."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from keryx.app.host.homes.home import GUESTS, Home, live_guests
from keryx.app.host.homes.host_address import LONGEST_SOCKET_PATH

pytestmark = pytest.mark.promise("mended.14")

DIES = """
import os, signal, socket, sys
from pathlib import Path
from keryx.app.host.homes.home import GuestRegistration, Home

def die(*args, exist_ok=False, **options):
    if not exist_ok:  # the home itself is there
        os.kill(os.getpid(), signal.SIGKILL)

AT = die
home = Path(sys.argv[1])
Home.take(home) if sys.argv[2] == "owner" else GuestRegistration.create(home)
"""
POINTS = ["Path.mkdir", "Path.unlink", "socket.socket.bind", "socket.socket.listen", "Path.replace"]


def temporary() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("keryx-*"))


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("role", ["owner", "guest"])
def test_the_next_owner_removes_what_was_left(tmp_path: Path, role: str, point: str) -> None:
    home = tmp_path / ("long" * 20) / "path"
    (home / GUESTS).mkdir(parents=True)
    assert len(str(home)) > LONGEST_SOCKET_PATH
    before = temporary()
    program = DIES.replace("AT", point)
    ended = subprocess.run([sys.executable, "-c", program, home, role], check=False)
    assert ended.returncode == -signal.SIGKILL

    owned = Home.take(home)
    assert isinstance(owned, Home)
    assert live_guests(home) == []
    assert list((home / GUESTS).iterdir()) == []
    owned.release()
    assert temporary() == before
