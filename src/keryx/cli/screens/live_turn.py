"""Two live turns of the demo: a scripted model, real tools, and a steer while the tools run."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.live import Live

from keryx import events as ev
from keryx.app import Keryx, SessionHandle, TurnHandle, TurnResult
from keryx.cli.screens.turn_view import TurnView
from keryx.messages import Text, ToolMessage, UserMessage
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply, history_of
from keryx.ports.effects import NO_EFFECTS
from keryx.ports.model import ModelRequest
from keryx.ports.tool_context import ToolContext
from keryx.tools.function import tool

FRAMES: Final = 20
"""Frames per second, at most."""
PIECE_PAUSE: Final = 0.02
STEER_AFTER: Final = 12
"""How many lines the tools print before the turn is steered."""
STEER: Final = "Never mind the whole house; just tell me about the door."


@tool(effects=NO_EFFECTS, timeout=60)
async def look(context: ToolContext, at: str, seconds: float) -> str:
    """Look at something for a while."""
    deadline = time.monotonic() + seconds
    while (remaining := deadline - time.monotonic()) > 0:
        context.emit(f"looking at the {at}, {remaining:.1f} s to go\n")
        await asyncio.sleep(min(0.1, remaining))
    return f"the {at} is fine"


def script(model_request: ModelRequest) -> ScriptedReply:
    """Return the scripted model's reply; it reads the history like any other model."""
    history = history_of(model_request)
    user_texts = [
        part.text
        for message in history
        if isinstance(message, UserMessage)
        for part in message.content
        if isinstance(part, Text)
    ]
    if isinstance(history[-1], ToolMessage):
        text = "All three are fine; I looked at all of them at once."
        return ScriptedReply(text=text, pause=PIECE_PAUSE)
    if STEER in user_texts[-1]:
        return ScriptedReply(text="Fine: the door is closed.", pause=PIECE_PAUSE)
    if len(user_texts) == 1:
        calls = [_look("door", 0.9), _look("window", 1.3), _look("roof", 0.6)]
        return ScriptedReply(text="I look at all three.", calls=calls, pause=PIECE_PAUSE)
    calls = [_look(f"room {number}", 30) for number in (1, 2, 3)]
    return ScriptedReply(text="That will take me half a minute.", calls=calls, pause=PIECE_PAUSE)


def _look(at: str, seconds: float) -> ScriptedCall:
    return ScriptedCall("look", {"at": at, "seconds": seconds})


async def show_turns() -> bool:
    """Run both turns; return True if they ended as promised."""
    console = Console(file=sys.stdout, highlight=False)
    with tempfile.TemporaryDirectory(prefix="keryx-demo-") as folder:
        home, model = Path(folder), ScriptedModel(script)
        async with Keryx(model=model, tools=[look], workspace=home, home=home / "home") as app:
            session = await app.open()
            console.print("> Is the house fine?", style="bold")
            first = await _watch(console, await session.send("Is the house fine?"))
            console.print("> Now look at every room, closely.", style="bold")
            turn = await session.send("Now look at every room, closely.")
            second = await _watch(console, turn, session)
    cancelled = [call.outcome for call in second.calls] == ["cancelled"] * 3
    return first.outcome == second.outcome == "completed" and cancelled


async def _watch(
    console: Console, turn: TurnHandle, steering: SessionHandle | None = None
) -> TurnResult:
    view, outputs = TurnView(), 0
    with Live(console=console, refresh_per_second=FRAMES, auto_refresh=False) as live:
        drawn_at = 0.0
        async for event in turn.events():
            view.show(event)
            if isinstance(event, ev.CallOutput):
                outputs += 1
            if steering is not None and outputs == STEER_AFTER:
                steering, session = None, steering
                await session.steer(STEER)
            if time.monotonic() - drawn_at > 1 / FRAMES or isinstance(event, ev.TurnFinished):
                drawn_at = time.monotonic()
                live.update(view.render(time.time()), refresh=console.is_terminal)
    console.print("" if console.is_terminal else "\n", end="")
    return await turn.result()
