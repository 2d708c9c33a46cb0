"""Send one message to an agent and print its reply. The exit code tells how the turn ended.

Exit codes: 0 completed, 1 failed, 2 wrong usage, 3 parked, 4 the answer does not fit the schema,
130 cancelled. Ctrl+C cancels the turn; a second Ctrl+C leaves at once, and the turn continues when
a host starts again. Precedence: flags, KERYX_MODEL, config.toml, then OPENAI_*
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from types import FrameType
from typing import Final, Self

from keryx import events as ev
from keryx.aio.group import Group
from keryx.aio.loops import run_loop
from keryx.aio.scope import Scope, call_soon
from keryx.app import Keryx, SessionHandle, TurnHandle
from keryx.cli.chatting.pieces import printable
from keryx.cli.main import USAGE
from keryx.cli.schema import read_schema
from keryx.cli.screens.approval_prompt import Asker, is_attended
from keryx.cli.screens.outcomes import CallLines
from keryx.cli.screens.plan_block import PlanBlock
from keryx.cli.session_flags import (
    add_session_flags,
    begin_here,
    change_session,
    in_words,
    tool_names,
)
from keryx.cli.streams import read_stdin, write_json
from keryx.config import DEFAULT

EXIT_CODES: Final = {"completed": 0, "failed": 1, "parked": 3, "cancelled": 130}
SCHEMA_MISMATCH: Final = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("prompt", nargs="?", help="the message; - or nothing: read it from stdin")
    add_session_flags(parser)
    parser.add_argument("--json", action="store_true", help="print every event as a line of JSON")
    parser.add_argument(
        "--schema",
        help="a JSON schema, or a file with one: only the answer is printed, and must match it",
    )


def run(options: argparse.Namespace) -> int:
    schema = None if options.schema is None else read_schema(options.schema)
    prompt = options.prompt
    if prompt in (None, "-"):
        prompt = read_stdin()
    if not prompt.strip():
        print("keryx run: the message is empty; pass one, or pipe one in", file=sys.stderr)
        return USAGE
    begin_here(options)
    return run_loop(_run(options, prompt, schema))


async def _run(options: argparse.Namespace, prompt: str, schema: str | None) -> int:
    workspace = options.workspace or "."
    async with Keryx(model=options.model, workspace=workspace, home=options.home) as app:
        session = await _open(app, options)
        turn = await session.send(prompt, schema=schema, attended=is_attended())
        asker = Asker(session) if is_attended() else None
        with _Interrupts(turn) as interrupts:
            code = await _show(turn, _screen(options, schema), asker)
        await interrupts.ended()
        if asker is not None:
            await asker.close()
        return code


async def _open(app: Keryx, options: argparse.Namespace) -> SessionHandle:
    if options.session is not None:
        session = await app.open(options.session)
        if changes := await change_session(app, session, options):
            print(f"keryx: {printable(in_words(changes))}", file=sys.stderr)
        return session
    tools = tool_names(options)
    return await app.open(
        tools=await app.host_client.tools_for("cli", DEFAULT) if tools is None else tools,
        personality=options.personality,
        approvals=options.approve,
        read_only=bool(options.read_only),
    )


class _Interrupts:
    """Ctrl+C cancels the turn; a second one ends the program."""

    def __init__(self, turn: TurnHandle) -> None:
        self._turn = turn
        self._loop = asyncio.get_running_loop()
        self._group = Group(Scope("interrupts"))
        self._before = signal.getsignal(signal.SIGINT)
        self._is_second = False

    def __enter__(self) -> Self:
        signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *exc: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    async def ended(self) -> None:
        await self._group.leave()
        self._group.scope.close()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._is_second and callable(self._before):
            self._before(number, frame)
        self._is_second = True
        call_soon(self._loop, self._cancel)

    def _cancel(self) -> None:
        if len(self._group) == 0:
            print("\n[cancelling the turn; Ctrl+C again leaves at once]", file=sys.stderr)
            self._group.start(self._turn.cancel(), name="cancel")


async def _show(
    turn: TurnHandle, screen: _JsonLines | _Printer | _Answer, asker: Asker | None
) -> int:
    code = EXIT_CODES["failed"]
    async for event in turn.events():
        screen.show(event)
        if asker is not None:
            asker.show(event)
        if isinstance(event, ev.TurnFinished) and event.turn_id == turn.turn_id:
            code = screen.end(event)
    return code


def _screen(options: argparse.Namespace, schema: str | None) -> _JsonLines | _Printer | _Answer:
    if options.json:
        return _JsonLines()
    return _Printer() if schema is None else _Answer()


class _JsonLines:
    """Prints every event as a line of JSON."""

    def show(self, event: ev.Event) -> None:
        write_json(ev.encode(event))

    def end(self, finished: ev.TurnFinished) -> int:
        return EXIT_CODES[finished.outcome]


class _Answer:
    """Prints only the last reply. The turn itself fails if the reply does not match the schema."""

    def __init__(self) -> None:
        self._last: str | None = None
        self._notes = _Notes()

    def show(self, event: ev.Event) -> None:
        match event:
            case ev.StepReplied():
                self._last = event.text
            case ev.StepAbandoned():
                self._last = None
            case _:
                self._notes.show(event)

    def end(self, finished: ev.TurnFinished) -> int:
        code = EXIT_CODES[finished.outcome]
        error = finished.error
        is_mismatch = self._last is not None and error is not None and error.kind == "bad_response"
        if self._last is not None and (is_mismatch or finished.outcome == "completed"):
            print(self._last)
        return SCHEMA_MISMATCH if is_mismatch else code


class _Printer:
    """Prints the reply to stdout, each piece once, and notes about it to stderr.

    A terminal gets the text as it streams. A pipe gets complete replies only: a reply that is cut
    off and starts again cannot be taken back from a pipe.
    """

    def __init__(self) -> None:
        self._live = sys.stdout.isatty()
        self._printed = 0
        self._notes = _Notes()

    def show(self, event: ev.Event) -> None:
        match event:
            case ev.TextDelta() if self._live:
                self._text(event.text)
            case ev.StepSnapshot() if self._live:
                # The reply began before this process followed the turn.
                self._text(event.text[self._printed :])
            case ev.StepReset() | ev.StepAbandoned():
                if self._printed:
                    print("\n[the reply starts again]", file=sys.stderr)
                self._printed = 0
            case ev.StepReplied():
                self._text(event.text[self._printed :])
                print(flush=True)
                self._printed = 0
            case _:
                self._notes.show(event)

    def end(self, finished: ev.TurnFinished) -> int:
        return EXIT_CODES[finished.outcome]

    def _text(self, text: str) -> None:
        print(text, end="", flush=True)
        self._printed += len(text)


class _Notes:
    """Prints notes about the turn, its calls and the model to stderr."""

    def __init__(self) -> None:
        self._call_lines = CallLines()
        self._plan_block = PlanBlock()

    def show(self, event: ev.Event) -> None:
        plan = self._plan_block.text(event)
        note = plan or _turn_note(event) or self._call_note(event) or _model_note(event)
        if note:
            print(printable(note), file=sys.stderr)

    def _call_note(self, event: ev.Event) -> str:
        if self._plan_block.covers(event):
            return ""
        if isinstance(event, ev.CallStarted):
            return f"[{event.tool}] {event.preview}"
        line = self._call_lines.line(event)
        return f"[{line}]" if line else ""


def _turn_note(event: ev.Event) -> str:
    match event:
        case ev.TurnStarted():
            return "\n".join(f"keryx: warning: {warning}" for warning in event.warnings)
        case ev.TurnFinished() if event.error is not None:
            return f"keryx: {event.error.message}: {event.error.hint}"
        case ev.TurnFinished() if event.outcome != "completed":
            return f"keryx: {event.outcome} ({event.reason})"
        case _:
            return ""


def _model_note(event: ev.Event) -> str:
    match event:
        case ev.ModelRetried():
            return f"[retrying in {event.delay:.1f} s: {event.message}]"
        case ev.ModelSwitched():
            return f"[{event.to} answers instead of {event.from_}]"
        case ev.ContextCompacting() if not event.over:
            return f"[compacting: {event.tokens_before:,} tokens]"
        case ev.ContextCompacted():
            return f"[compacted: {event.tokens_before:,} → {event.tokens_after:,} tokens]"
        case _:
            return ""
