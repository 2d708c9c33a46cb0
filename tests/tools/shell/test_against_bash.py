"""What bash runs, the parser saw, or it refused the line."""

from __future__ import annotations

import asyncio
import glob
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from keryx import Keryx
from keryx import events as ev
from keryx.engine.approvals.rules import may_match
from keryx.ports.tool import ANY_TEXT
from keryx.tools.shell.risk import risk
from tests.conftest import SOAK
from tests.tools.shell.generated_scripts import FAILING, REAL, RUNNER, STUBS, Generator

pytestmark = pytest.mark.promise("walls.8")

COUNT = 20_000 if SOAK else 400
BATCH = 500
SEED = 14
PATIENCE = 550.0


async def run_all(folder: Path, scripts: list[str]) -> list[list[list[str]]]:
    """Run the scripts in the confinement; the commands that each one ran."""
    workspace = folder / "workspace"
    workspace.mkdir()
    orders = {
        "scripts": scripts, "stubs": STUBS, "failing": FAILING, "real": REAL, "shell": "/bin/bash"
    }  # fmt: skip
    (workspace / "scripts.json").write_text(json.dumps(orders))
    (workspace / "runner.py").write_text(RUNNER)
    arguments = {"command": f"{sys.executable} -I runner.py", "timeout": PATIENCE}
    async with (
        asyncio.timeout(PATIENCE),
        Keryx(model="scripted:demo", home=folder / "home", workspace=workspace) as app,
    ):
        session = await app.open(approvals="never")
        async for event in session.run("terminal", json.dumps(arguments)):
            if isinstance(event, ev.CallFinished):
                assert event.outcome == "completed", event
                assert (workspace / "results.json").exists(), ev.encode(event)
    results: list[list[list[str]]] = json.loads((workspace / "results.json").read_text())
    return results


def missed(script: str, ran: list[list[str]], subjects: tuple[str, ...]) -> list[str]:
    """The commands that ran and that no rule would have been compared with."""
    texts = [" ".join(words) for words in ran]
    return [
        f"{text!r} in {script!r}"
        for text in texts
        if not any(may_match(glob.escape(text), subject) for subject in subjects)
    ]


@pytest.mark.timeout(3600 if SOAK else 120)
async def test_every_command_that_bash_runs_was_seen(
    tmp_path: Path,
    record_property: Callable[[str, object], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    generator = Generator(SEED)
    scripts = [generator.script() for _ in range(COUNT)]
    misses: list[str] = []
    commands = refusals = 0
    for start in range(0, COUNT, BATCH):
        batch = scripts[start : start + BATCH]
        folder = tmp_path / str(start)
        folder.mkdir()
        for script, ran in zip(batch, await run_all(folder, batch), strict=True):
            judged = risk(script, workspace=folder / "workspace")
            refusals += ANY_TEXT in judged.subjects
            commands += len(ran)
            misses += missed(script, ran, judged.subjects)
    summary = f"{COUNT} scripts ran {commands} commands: {refusals} refused, {len(misses)} missed"
    record_property("fuzz", summary)
    with capsys.disabled():
        sys.stdout.write(f"\n{summary}\n")
    assert misses == []
    assert commands > COUNT, "the scripts run something"
    assert refusals < COUNT * 0.8, "not everything is refused"
