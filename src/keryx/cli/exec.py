"""Run a script in the sandbox with the tools; no model is needed.

What the script prints goes where it would go otherwise, and the exit code is the script's own.
Calls that need approval ask at the terminal; without one they are refused. Exit codes of its own:
3 the script was refused, 124 its time was over, 130 it was interrupted, 137 it was killed, for its
memory for instance, which standard error says.
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
from keryx.cli.streams import read_stdin, write_json
from keryx.cli.values import folder, seconds
from keryx.errors import UserMustActError
from keryx.messages import Json, Part, Text

FAILED: Final = 1
DENIED: Final = 3
TIMED_OUT: Final = 124
"""As `timeout` of coreutils has it."""
CANCELLED: Final = 130
UNATTENDED: Final = (
    "it needs approval, and there is no terminal to ask; run it in one, or allow it with a rule, "
    "or with --approve"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("script", help="a file; - reads the script from stdin")
    parser.add_argument("arguments", nargs="*", help="what the script finds in sys.argv")
    parser.add_argument("--tools", help="only these tools and toolsets, with commas; '' for none")
    parser.add_argument("--workspace", type=folder, default=".", help="the folder that it is about")
    parser.add_argument("--timeout", type=seconds, default=3600.0, help="seconds until it is ended")
    parser.add_argument("--approve", choices=("ask", "auto", "never"), help="which calls ask first")
    parser.add_argument("--home", help="where state lives; default: KERYX_HOME")
    parser.add_argument("--json", action="store_true", help="print every event as a line of JSON")


def run(options: argparse.Namespace) -> int:
    try:
        code = read_stdin() if options.script == "-" else _read(options.script)
    except (OSError, UnicodeDecodeError) as error:
        raise UserMustActError(
            f"the script {options.script} cannot be read: {error}; name a file with Python in UTF-8"
        ) from error
    return run_loop(_exec(options, code))


def _read(script: str) -> str:
    return Path(script).read_text(encoding="utf-8")


async def _exec(options: argparse.Namespace, code: str) -> int:
    async with Keryx(home=options.home, workspace=options.workspace, resume=False) as app:
        granted = None
        if options.tools is not None:
            granted = [*filter(None, map(str.strip, options.tools.split(","))), "execute_code"]
        session = await app.open(tools=granted, approvals=options.approve)
        async with temporary(app.host_client, app.host_client.config.home, session.session_id):
            return await _show(session, options, code)


async def _show(session: SessionHandle, options: argparse.Namespace, code: str) -> int:
    written = {"code": code, "arguments": options.arguments, "timeout": options.timeout}
    arguments = msgspec.json.encode(written).decode()
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
    """The script's own output, and a line about its calls where somebody sits at a terminal."""

    def __init__(self, *, as_json: bool, timeout: float) -> None:
        self._as_json = as_json
        self._timeout = timeout
        self._counting = sys.stderr.isatty() and not as_json
        self._begun = 0
        self._done = 0
        self._failed = 0
        self._asked: dict[str, ev.ApprovalAsked] = {}
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
            case ev.ApprovalAsked():
                self._clear()
                self._asked[event.approval_id] = event
            case ev.ApprovalExpired() if event.cause == "undelivered":
                asked = self._asked[event.approval_id]
                _say(f"refused {asked.what}: {asked.why}; {UNATTENDED}")
            case ev.CallFinished():
                self._clear()
                self.code = self._end(event)
            case _:
                return

    def _count(self, event: ev.CallProgress) -> None:
        assert event.nested is not None
        if event.nested.outcome is None:
            self._begun += event.nested.count
        else:
            self._done += event.nested.count
            self._failed += event.nested.count * (event.nested.outcome != "completed")
        if self._counting:
            sys.stderr.write(
                f"\r[calls: {self._begun - self._done} running, {self._done} done, "
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
                    return _ended(msgspec.json.decode(bytes(part.value), type=_Ended))
        if finished.reason == "timeout":
            _say(f"the script was ended after {self._timeout:g} s; --timeout gives it more")
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
