"""What all tests share."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from pathlib import Path

import hypothesis
import pytest

pytest_plugins = ["keryx.testing.fixtures"]

SOAK = os.environ.get("KERYX_SOAK") == "1"

hypothesis.settings.register_profile("ci", max_examples=60, stateful_step_count=30, deadline=None)
hypothesis.settings.register_profile(
    "soak", max_examples=2000, stateful_step_count=80, deadline=None
)
hypothesis.settings.load_profile("soak" if SOAK else "ci")


def pytest_configure(config: pytest.Config) -> None:
    """Each process of tests has a folder of its own: what is left there, only it can have left."""
    # A shell script that starts the tests in the background (`make test &`) makes them ignore
    # Ctrl+C, and so would every process that a test starts and interrupts.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Tests download nothing: pip finds only what a test gives to it.
    os.environ["PIP_NO_INDEX"] = "1"
    alone = "" if config.getoption("numprocesses", None) else "alone"
    if worker := os.environ.get("PYTEST_XDIST_WORKER", alone):
        folder = tempfile.mkdtemp(prefix=f"{worker}-")
        Path(folder).chmod(0o755)  # some tests are done as another user
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


@pytest.fixture
def unhurried_exits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a cancelled call take its time to end. Its processes get their signals in time.

    A call ends as `unknown` if it cleans up too slowly, or if an exit is reported too late, as on a
    full machine; a process may still count as running then. What a test says about the end itself
    does not depend on that. `tests/engine/test_hanging.py` has the times.
    """
    for rung in (
        "engine.executor.GRACE",
        "engine.executor.EXIT_REPORT",
        "warden.process.EXIT_REPORT",
    ):
        monkeypatch.setattr(f"keryx.{rung}", 30.0)
