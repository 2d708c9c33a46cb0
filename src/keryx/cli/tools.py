"""List the tools, or call one by hand, with no model."""

from __future__ import annotations

import argparse
import json
import sys

from keryx import events as ev
from keryx.aio.loops import run_loop
from keryx.app import Keryx, SessionHandle
from keryx.app.host.guests.temporary_sessions import temporary
from keryx.app.named_sets import with_named_sets
from keryx.app.own_tools import TOOLSET, load_now, names_in_use
from keryx.app.tools import Tools
from keryx.cli.main import USAGE
from keryx.cli.screens.approval_prompt import Asker, is_attended
from keryx.cli.screens.outcomes import CallLines
from keryx.cli.session_flags import APPROVE_HELP, begin_here
from keryx.cli.streams import read_stdin
from keryx.cli.values import folder
from keryx.config import load
from keryx.messages import text_of

EXIT_CODES = {"completed": 0, "failed": 1, "denied": 3, "cancelled": 130, "unknown": 4}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    list_ = verbs.add_parser("list", help="list the tools, by toolset")
    list_.add_argument("--json", action="store_true", help="print them as JSON, with schemas")
    call = verbs.add_parser("call", help="call a tool: output on stderr, result on stdout")
    call.add_argument("tool")
    call.add_argument("arguments", nargs="?", default="{}", help="JSON; - reads it from stdin")
    call.add_argument("--workspace", type=folder, help="the folder to work in; default: this")
    call.add_argument("--session", help="run the call in this session, as it is, and log it there")
    call.add_argument("--approve", choices=("ask", "auto", "never"), help=APPROVE_HELP)


def run(options: argparse.Namespace) -> int:
    if options.verb == "list":
        return _list(options)
    if options.session is not None and (options.workspace or options.approve):
        print(
            "keryx tools call: --workspace and --approve cannot be used with --session, whose "
            "settings hold; leave them out, or change them with keryx run --session",
            file=sys.stderr,
        )
        return USAGE
    if options.arguments == "-":
        options.arguments = read_stdin()
    begin_here(options)
    return run_loop(_call(options))


def _list(options: argparse.Namespace) -> int:
    config = load(options.home)
    built_in = Tools.built_in(config)
    own, warnings = load_now(config.home, names_in_use(built_in))
    all_tools = with_named_sets(built_in.plus(TOOLSET, own), config)
    sets = all_tools.sets
    for warning in warnings:
        print(f"keryx: {warning}", file=sys.stderr)
    if options.json:
        rows = [
            {
                "name": tool.name,
                "toolset": name,
                "description": tool.description,
                "parameters": tool.parameters,
            }
            for name, tools in sets.items()
            for tool in tools
        ]
        print(json.dumps(rows, indent=2))
        return 0
    for name, tools in sets.items():
        print(name)
        for tool in tools:
            first = next(iter(tool.description.strip().splitlines()), "")
            print(f"  {tool.name:<14} {first}".rstrip())
    for name, members in all_tools.named.items():
        print(f"{name} (config.toml)\n  {', '.join(members) or 'nothing'}")
    return 0


async def _call(options: argparse.Namespace) -> int:
    async with Keryx(home=options.home, workspace=options.workspace or ".", resume=False) as app:
        if options.session is not None:
            return await _run(await app.open(options.session), options)
        (await app.host_client.tools_to_choose()).check_usable(options.tool)
        session = await app.open(approvals=options.approve)
        async with temporary(app.host_client, app.host_client.config.home, session.session_id):
            return await _run(session, options)


async def _run(session: SessionHandle, options: argparse.Namespace) -> int:
    asker = Asker(session) if is_attended() else None
    lines = CallLines()
    code = 1
    try:
        run = session.run(options.tool, options.arguments, attended=asker is not None)
        async for event in run:
            if asker is not None:
                asker.show(event)
            if isinstance(event, ev.CallOutput):
                sys.stderr.write(event.text)
            if isinstance(event, ev.CallFinished):
                code = _print_result(event)
            if line := lines.line(event):
                print(f"keryx: {line}", file=sys.stderr)
    finally:
        if asker is not None:
            await asker.close()
    return code


def _print_result(finished: ev.CallFinished) -> int:
    for part in finished.result:
        print(text_of((part,)))
    return EXIT_CODES[finished.outcome]
