"""Ask an agent once and print what it says. The exit code tells how the turn ended."""

from __future__ import annotations

import argparse
import signal
import sys
from types import FrameType
from typing import Final

from keryx import events as ev
from keryx.aio.loops import run_loop
from keryx.app import Keryx, TurnHandle

EXIT_CODES: Final = {"completed": 0, "failed": 1, "parked": 3, "cancelled": 130}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("prompt", nargs="?", help="what to say; from stdin if it is - or absent")
    parser.add_argument("--model", help="provider:name; default: what is configured")
    parser.add_argument("--session", help="go on with this session")
    parser.add_argument("--workspace", default=".", help="the folder that it is about")
    parser.add_argument("--home", help="where state lives; default: KERYX_HOME")
    parser.add_argument("--json", action="store_true", help="print every event as a line of JSON")


def run(options: argparse.Namespace) -> int:
    prompt = options.prompt
    if prompt in (None, "-"):
        prompt = sys.stdin.read()
    if not prompt.strip():
        print("keryx run: there is nothing to say; give a prompt, or pipe one in", file=sys.stderr)
        return 2
    return run_loop(_run(options, prompt))


async def _run(options: argparse.Namespace, prompt: str) -> int:
    async with Keryx(model=options.model, workspace=options.workspace, home=options.home) as app:
        session = await app.open(options.session)
        turn = await session.send(prompt)
        with _Interrupts(turn):
            return await _show(turn, as_json=options.json)


class _Interrupts:
    """Ctrl+C cancels the turn; a second one ends the program."""

    def __init__(self, turn: TurnHandle) -> None:
        self._turn = turn
        self._before = signal.getsignal(signal.SIGINT)

    def __enter__(self) -> None:
        signal.signal(signal.SIGINT, self._handle)

    def __exit__(self, *exc: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if not self._turn.cancel_soon() and callable(self._before):
            self._before(number, frame)


async def _show(turn: TurnHandle, *, as_json: bool) -> int:
    code, printer = 1, _Printer()
    async for event in turn.events():
        if as_json:
            sys.stdout.write(ev.encode(event).decode() + "\n")
            sys.stdout.flush()
        else:
            printer.show(event)
        if isinstance(event, ev.TurnFinished) and event.turn_id == turn.turn_id:
            code = EXIT_CODES[event.outcome]
    return code


class _Printer:
    """Text to stdout, each piece once; everything about it to stderr."""

    def __init__(self) -> None:
        self._printed = 0

    def show(self, event: ev.Event) -> None:
        match event:
            case ev.TextDelta():
                self._text(event.text)
            case ev.StepSnapshot():
                # The turn had begun to speak before anybody listened.
                self._text(event.text[self._printed :])
            case ev.StepReset():
                print("\n[the reply starts anew]", file=sys.stderr)
                self._printed = 0
            case ev.StepReplied():
                self._text(event.text[self._printed :])
                print()
                self._printed = 0
            case _:
                _tell(event)

    def _text(self, text: str) -> None:
        print(text, end="", flush=True)
        self._printed += len(text)


def _tell(event: ev.Event) -> None:
    match event:
        case ev.CallStarted():
            print(f"[{event.tool}] {event.preview}", file=sys.stderr)
        case ev.CallFinished() if event.outcome != "completed":
            print(f"[{event.tool}] {event.outcome}: {event.reason}", file=sys.stderr)
        case ev.ModelRetried():
            print(f"[again in {event.delay:.1f} s: {event.message}]", file=sys.stderr)
        case ev.TurnFinished() if event.error is not None:
            print(f"keryx: {event.error.message}: {event.error.hint}", file=sys.stderr)
        case ev.TurnFinished() if event.outcome != "completed":
            print(f"keryx: {event.outcome} ({event.reason})", file=sys.stderr)
        case _:
            return
