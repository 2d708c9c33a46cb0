"""What the calls of a script had ended with is part of the truth, also after `kill -9`."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import aclosing
from pathlib import Path

import msgspec
import pytest

from keryx import events as ev
from keryx.aio.loops import run_loop
from keryx.messages import Text, ToolMessage
from keryx.models.scripted import history_of
from keryx.models.tour import tour_model
from keryx.ports.model import ModelRequest, TextPiece
from tests.app.hosts import PATIENCE, ROOT
from tests.chaos.fanout import CALLS, ENDED, host


def killed_after_ten(folder: Path) -> str:
    command = [sys.executable, "-m", "tests.chaos.fanout", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as life:
        assert life.stdout is not None
        session_id = life.stdout.readline().decode().strip()
        life.kill()
    return session_id


@pytest.mark.promise("mended.10")
def test_the_calls_that_had_ended_are_kept_shown_and_told_to_the_model(tmp_path: Path) -> None:
    session_id = killed_after_ten(tmp_path)
    run_loop(second_life(tmp_path, session_id))


async def second_life(folder: Path, session_id: str) -> None:
    async with asyncio.timeout(PATIENCE), host(folder) as app:
        session = await app.open(session_id)
        async with aclosing(session.events()) as events:
            async for event in events:
                if isinstance(event, ev.TurnFinished):
                    break
        log = await app.store.events(session_id)
        (finished,) = [event for event in log if isinstance(event, ev.CallFinished)]
        assert (finished.outcome, finished.reason) == ("unknown", "crash")
        assert finished.nested is not None
        assert (finished.nested.calls, finished.nested.completed) == (ENDED, ENDED)
        blob = await app.store.blob(finished.nested.blob)
        assert blob is not None
        picture = msgspec.json.decode(blob, type=ev.NestedCalls)
        assert len(picture.calls) == ENDED < CALLS
        (part,) = finished.result
        assert isinstance(part, Text)
        assert part.text.startswith("10 nested calls had ended before that:\n- look")
        last = [event for event in log if isinstance(event, ev.StepReplied)][-1]
        assert part.text in last.text, "the model is told"


@pytest.mark.promise("mended.10")
@pytest.mark.parametrize(
    ("result", "claim"),
    [
        ("[unknown: crash; …]\n10 nested calls had ended before that:", "10 of the thirteen"),
        ("[unknown: crash; it may …]", "0 of the thirteen"),
        ("\n".join(f"r-{n}: {n} clusters" for n in range(13)), "Thirteen answers"),
        ("\n".join(f"r-{n}: {n} clusters" for n in range(12)), "12 of thirteen answers"),
        ("[cancelled: interrupt; …]", "before a region answered"),
    ],
)
async def test_the_tour_claims_what_is_true(result: str, claim: str) -> None:
    model = tour_model()
    history = (model.encode(ToolMessage("c1", (Text(result),))),)
    request = ModelRequest(system="", history=history)
    assert len(history_of(request)) == 1
    pieces = [piece async for piece in model.stream(request)]
    assert claim in "".join(piece.text for piece in pieces if isinstance(piece, TextPiece))
