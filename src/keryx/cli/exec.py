"""Run a script in the sandbox with the tools; no model is needed.

What the script prints goes where it would go otherwise, and the exit code is the script's own.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from keryx import events as ev
from keryx.aio.loops import run_loop
from keryx.app import Keryx
from keryx.cli.screens.asking import Asker, is_attended
from keryx.cli.streams import read_stdin, write_json
from keryx.cli.values import folder, seconds
from keryx.errors import UserMustActError
from keryx.messages import Json, Part, Text

FAILED = 1
DENIED = 3


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
    written = {"code": code, "arguments": options.arguments, "timeout": options.timeout}
    arguments = msgspec.json.encode(written).decode()
    async with Keryx(home=options.home, workspace=options.workspace, resume=False) as app:
        granted = None
        if options.tools is not None:
            granted = [*filter(None, map(str.strip, options.tools.split(","))), "execute_code"]
        session = await app.open(tools=granted, approvals=options.approve)
        asker = Asker(session) if is_attended() else None
        screen = _Screen(as_json=options.json)
        async for event in session.run("execute_code", arguments):
            screen.show(event)
            if asker is not None:
                asker.show(event)
            elif isinstance(event, ev.ApprovalAsked):
                await session.answer(event.approval_id, "deny")
        if asker is not None:
            await asker.close()
        await app.delete(session.session_id)
        return screen.code


class _Screen:
    """The script's own output, and a line about its calls where somebody sits at a terminal."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._counting = sys.stderr.isatty() and not as_json
        self._begun = 0
        self._done = 0
        self._failed = 0
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
                    ended = msgspec.json.decode(bytes(part.value), type=_Ended)
                    return 128 + ended.signal if ended.signal is not None else ended.exit_code or 0
        print(f"keryx: {finished.outcome}: {finished.reason or ''}", file=sys.stderr)
        for text in map(_text, finished.result):
            print(f"keryx: {text}", file=sys.stderr)
        return {"denied": DENIED, "cancelled": 130}.get(finished.outcome, FAILED)


class _Ended(msgspec.Struct):
    exit_code: int | None = None
    signal: int | None = None


def _text(part: Part) -> str:
    return part.text if isinstance(part, Text) else ""
