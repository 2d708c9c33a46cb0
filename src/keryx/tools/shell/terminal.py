"""`terminal` and `process`: commands in the session's place, and commands in the background.

Output is streamed and stored, bounded, as the call's partial result. The text of a command decides
whether it needs consent; the place decides what the command can reach.
"""

from __future__ import annotations

import importlib
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec

from keryx.errors import ToolFailedError
from keryx.messages import Needs
from keryx.ports.background import BackgroundProcess
from keryx.ports.effects import EXCLUSIVE, NO_EFFECTS, Effects, uses, writes
from keryx.ports.tool import Exact, Risk, Tool
from keryx.ports.tool_context import Emitted, ToolContext
from keryx.tools import exact_bytes
from keryx.tools.function import tool

if TYPE_CHECKING:
    from keryx.tools.shell.risk import Judgement

SHELLS: Final = ("/bin/bash", "/bin/sh")
MAX_SECONDS: Final = 24 * 3600.0
TEMPORARY: Final = (Path("/tmp"),)  # noqa: S108 (a private one, in a confined place)
PEERS: Final = "terminal"
"""Terminals run at the same time; file calls wait for them."""

Seconds = Annotated[float, msgspec.Meta(gt=0, le=MAX_SECONDS)]


class Shell(msgspec.Struct, frozen=True):
    """The shell that runs commands."""

    program: str = SHELLS[-1]
    on_pty: str = ""
    """The source of the program that gives a command a terminal (`pseudo_terminal.py`)."""


def find_shell() -> Shell:
    """Return the shell that models know best, if it is installed. Reads the disk."""
    program = next((shell for shell in SHELLS if Path(shell).exists()), SHELLS[-1])
    return Shell(
        program, Path(__file__).with_name("pseudo_terminal.py").read_text(encoding="utf-8")
    )


def shell_tools(shell: Shell, home: Path | None = None, *, confined: bool = True) -> list[Tool]:
    """Return both tools. `home` is the user's, for `~`; `confined`: commands run confined."""

    def judge(command: str, workspace: Path) -> Judgement:
        # The module is large, and a process that runs no command does not load it.
        risk_module = importlib.import_module("keryx.tools.shell.risk")
        return risk_module.risk(
            command, workspace=workspace, home=home, writable=TEMPORARY, confined=confined
        )

    return [_terminal(shell, judge), _process(judge)]


def _terminal(shell: Shell, judge: Any) -> Tool:
    on_pty = (sys.executable, "-I", "-S", "-c", shell.on_pty)

    def risk_of(args: Any, workspace: Path) -> Risk:
        # Another folder changes the meaning of relative paths, but not the workspace.
        cd_line = "" if args.cwd is None else f"cd {shlex.quote(args.cwd)}\n"
        return _as_risk(judge(cd_line + args.command, workspace))

    @tool(effects=_effects, risk=risk_of, preview=lambda args: args.command)
    async def terminal(
        command: str,
        context: ToolContext,
        cwd: str | None = None,
        timeout: Seconds = 120.0,  # noqa: ASYNC109 (the model's own, kept by the call's scope)
        *,
        background: bool = False,
        alone: bool = False,
        pty: bool = False,
    ) -> dict[str, Any] | Exact:
        """Run a shell command; its output and exit code come back when it ends.

        Several terminals in one reply run at the same time. A command that does not end by itself,
        such as a server, belongs in the background: `process` reads it, writes to it and ends it.

        Args:
            command: For the shell: pipes, redirections and several lines are fine.
            cwd: The folder to run in, relative to the workspace or absolute.
            timeout: Seconds after which it is ended, with all that it started.
            background: Return at once with a name for `process`; it ends with the session.
            alone: Run while nothing else of this session does.
            pty: Run it on a terminal, for programs that insist on one.
        """
        del alone  # the effects use it
        folder = str(_folder(context.workspace, cwd))
        argv = [*(on_pty if pty else ()), shell.program, "-c", command]
        if background:
            name = await context.background.start(argv, command=command, cwd=folder)
            note = {"note": "it runs; use the tool `process` with this name"}
            return {"process": name, **({} if context.nested else note)}
        async with await context.place.spawn(argv, cwd=folder) as process:
            context.cancel_after(timeout)  # it may have waited for other calls of its session
            exit_ = await process.wait()
        result = {**exact_bytes.output_of(context), "exit_code": exit_.code}
        if exit_.signal is not None:
            result["signal"] = exit_.signal
        if exit_.cause:
            result["ended_because"] = exit_.cause
        return Exact(result) if context.nested else result

    return terminal


def _process(judge: Any) -> Tool:
    def risk_of(args: Any, workspace: Path) -> Risk:
        if args.action != "write":
            return Risk("low" if args.action == "kill" else "none", changes=args.action == "kill")
        judged = _as_risk(judge(args.text, workspace))
        level = "high" if judged.level == "high" else "low"
        why = judged.why if judged.level == "high" else "writes to a program that runs"
        return Risk(level, why, (), changes=True, subjects=judged.subjects)

    @tool(effects=_process_effects, risk=risk_of)
    async def process(
        action: Literal["list", "read", "write", "wait", "kill"],
        context: ToolContext,
        name: str = "",
        text: str = "",
        after: Annotated[int, msgspec.Meta(ge=0)] = 0,
        seconds: Seconds = 30.0,
    ) -> Any:
        """List, read, feed, wait for or end background processes of this session.

        Args:
            action: What to do.
            name: Which process, as `terminal` or a list named it.
            text: What to write to its input; end a line with a line break.
            after: Read from this place on; each reading says where the next one goes on.
            seconds: How long to wait for its end.
        """
        processes = context.background
        match action:
            case "list":
                return [_fields_of(running) for running in processes.processes()]
            case "read":
                return _read_output(context, name, after)
            case "write":
                if not text:
                    raise ToolFailedError("there is no text to write; give `text`")
                await processes.write(name, text)
                return {"written": len(text)}
            case "wait":
                return _fields_of(await processes.wait(name, seconds))
            case "kill":
                return _fields_of(await processes.kill(name))

    return process


def _read_output(context: ToolContext, name: str, after: int) -> dict[str, Any] | Exact:
    piece = context.background.read(name, after=after)
    position = {"next": piece.next, "left_out": piece.left_out}
    if not context.nested:
        return {"output": piece.data.decode(errors="replace"), **position}
    # The missing part is at the beginning, and `left_out` says how much it is.
    output = exact_bytes.printed(Emitted(piece.data, 0))
    return Exact({**output, **position, "truncated": piece.left_out > 0})


def _effects(args: Any) -> Effects:
    return EXCLUSIVE if args.alone else writes(".", peers=PEERS)


def _process_effects(args: Any) -> Effects:
    return uses(f"process {args.name}") if args.action in ("write", "kill") else NO_EFFECTS


def _folder(workspace: Path, cwd: str | None) -> Path:
    return workspace if cwd is None else workspace / cwd


def _as_risk(judged: Judgement) -> Risk:
    needs = Needs(
        network=any(need.kind == "network" for need in judged.needs),
        reads=tuple(sorted(need.name for need in judged.needs if need.kind == "read")),
        writes=tuple(sorted(need.name for need in judged.needs if need.kind == "write")),
    )
    return Risk(
        judged.level,
        judged.why,
        judged.patterns,
        needs,
        judged.changes,
        subjects=judged.subjects,
        peril=judged.peril,
    )


def _fields_of(process: BackgroundProcess) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "name": process.name,
        "command": process.command,
        "running": process.ended is None and not process.lost,
        "seconds": round(process.running_for, 1),
    }
    if process.ended is not None:
        fields["exit_code"] = process.ended.code
        if process.ended.signal is not None:
            fields["signal"] = process.ended.signal
        if process.ended.cause:
            fields["ended_because"] = process.ended.cause
    if process.lost:
        fields["lost"] = process.lost
    return fields
