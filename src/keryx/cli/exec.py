"""Run a Python script in the sandbox, with the tools; no model is needed.

The script's output goes to stdout and stderr, and its exit code is the command's. Calls that need
approval ask at the terminal; without a terminal they are refused. Other exit codes: 3 the script
was refused, 124 it timed out, 130 it was interrupted, 137 it was killed (stderr says why, such as
too much memory).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

import msgspec

from keryx import events as ev
from keryx.aio.loops import run_loop
from keryx.app import Keryx, SessionHandle
from keryx.app.host.guests.temporary_sessions import temporary
from keryx.cli.screens.approval_prompt import Asker, is_attended
from keryx.cli.screens.outcomes import CallLines
from keryx.cli.session_flags import APPROVE_HELP
from keryx.cli.streams import read_stdin, write_json
from keryx.cli.values import folder, seconds
from keryx.config import DEFAULT
from keryx.decoding import decode_json
from keryx.errors import UserMustActError
from keryx.messages import Json, Part, Text

FAILED: Final = 1
DENIED: Final = 3
TIMED_OUT: Final = 124
"""The exit code of `timeout` in coreutils."""
CANCELLED: Final = 130


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("script", help="a Python file; - reads the script from stdin")
    parser.add_argument("arguments", nargs="*", help="arguments of the script, in its sys.argv")
    parser.add_argument("--tools", help="only these tools and toolsets, comma-separated; '': none")
    parser.add_argument("--workspace", type=folder, default=".", help="the folder to work in")
    parser.add_argument(
        "--timeout", type=seconds, default=3600.0, help="seconds after which the script is ended"
    )
    parser.add_argument("--approve", choices=("ask", "auto", "never"), help=APPROVE_HELP)
    parser.add_argument("--json", action="store_true", help="print every event as a line of JSON")


def run(options: argparse.Namespace) -> int:
    try:
        code = read_stdin() if options.script == "-" else _read(options.script)
    except (OSError, UnicodeDecodeError) as error:
        raise UserMustActError(
            f"the script {options.script} cannot be read: {error}; name a Python file in UTF-8"
        ) from error
    return run_loop(_exec(options, code))


def _read(script: str) -> str:
    return Path(script).read_text(encoding="utf-8")


async def _exec(options: argparse.Namespace, code: str) -> int:
    async with Keryx(home=options.home, workspace=options.workspace, resume=False) as app:
        if options.tools is None:
            tools = await app.host_client.tools_for("cli", DEFAULT)
        else:
            words = str(options.tools).split(",")
            tools = tuple(name for word in words if (name := word.strip()))
        if tools is not None:
            tools = (*tools, "execute_code")
        session = await app.open(tools=tools, approvals=options.approve)
        async with temporary(app.host_client, app.host_client.config.home, session.session_id):
            return await _show(session, options, code)


async def _show(session: SessionHandle, options: argparse.Namespace, code: str) -> int:
    fields = {"code": code, "arguments": options.arguments, "timeout": options.timeout}
    arguments = msgspec.json.encode(fields).decode()
    screen = _Screen(as_json=options.json, timeout=options.timeout)
    asker = Asker(session) if is_attended() else None
    try:
        async for event in session.run("execute_code", arguments, attended=asker is not None):
            screen.show(event)
            if asker is not None:
                asker.show(event)
    finally:
        if asker is not None:
            await asker.close()
    return screen.code


class _Screen:
    """Prints the script's output, and at a terminal a line that counts its calls."""

    def __init__(self, *, as_json: bool, timeout: float) -> None:
        self._as_json = as_json
        self._timeout = timeout
        self._counting = sys.stderr.isatty() and not as_json
        self._started = 0
        self._done = 0
        self._failed = 0
        self._lines = CallLines()
        self.code = FAILED

    def show(self, event: ev.Event) -> None:
        if self._as_json:
            write_json(ev.encode(event))
        match event:
            case ev.CallOutput() if event.parent is None and not self._as_json:
                self._clear()
                (sys.stdout if event.stream == "stdout" else sys.stderr).write(event.text)
                sys.stdout.flush()
            case ev.CallProgress() if event.nested is not None:
                self._count(event)
            case ev.ApprovalAsked() | ev.ApprovalExpired():
                self._clear()
                _say(self._lines.line(event))
            case ev.CallFinished():
                self._clear()
                self.code = self._end(event)
            case _:
                return

    def _count(self, event: ev.CallProgress) -> None:
        assert event.nested is not None
        if event.nested.outcome is None:
            self._started += event.nested.count
        else:
            self._done += event.nested.count
            self._failed += event.nested.count * (event.nested.outcome != "completed")
        if self._counting:
            sys.stderr.write(
                f"\r[calls: {self._started - self._done} running, {self._done} done, "
                f"{self._failed} failed]"
            )
            sys.stderr.flush()

    def _clear(self) -> None:
        if self._counting:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def _end(self, finished: ev.CallFinished) -> int:
        if finished.outcome == "completed":
            for part in finished.result:
                if isinstance(part, Json):
                    return _ended(decode_json(bytes(part.value), _Ended))
        if finished.reason == "timeout":
            _say(f"the script timed out after {self._timeout:g} s; --timeout gives it more time")
            return TIMED_OUT
        reason = f": {finished.reason}" if finished.reason else ""
        _say(f"the script was {_OUTCOMES.get(finished.outcome, finished.outcome)}{reason}")
        for text in map(_text, finished.result):
            _say(text)
        return {"denied": DENIED, "cancelled": CANCELLED}.get(finished.outcome, FAILED)


_OUTCOMES: Final = {
    "denied": "refused",
    "failed": "not run",
    "unknown": "lost, and may still run",
}


class _Ended(msgspec.Struct):
    exit_code: int | None = None
    signal: int | None = None
    ended_because: str = ""


def _ended(end: _Ended) -> int:
    if end.signal is None:
        return end.exit_code or 0
    if end.ended_because:
        _say(f"the script was killed: {end.ended_because}")
    return 128 + end.signal


def _say(text: str) -> None:
    if text:
        print(f"keryx: {text}", file=sys.stderr)


def _text(part: Part) -> str:
    return part.text if isinstance(part, Text) else ""
