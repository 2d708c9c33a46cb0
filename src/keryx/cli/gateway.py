"""Talk to agents from chat platforms: Telegram, or a signed webhook. Ctrl+C ends the gateway.

`keryx gateway pair` prints a code. Who sends `/pair CODE` to the bot may talk to it.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import time

from keryx.aio.bridge import Bridge
from keryx.aio.loops import run_loop
from keryx.aio.scope import Scope
from keryx.app import Keryx
from keryx.cli.logs import redact_logs
from keryx.cli.values import folder
from keryx.config import load, secrets_of
from keryx.errors import UserMustActError
from keryx.gateway import inbox, people
from keryx.gateway.delivery import ledger
from keryx.gateway.gateway import NOT_CONFIGURED, Gateway, running_gateway
from keryx.gateway.gateway_file import FILE, SCHEMA
from keryx.sqlite_file import SqliteFile, Work

ACTIONS = ("run", "pair", "people", "forget", "status")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action",
        nargs="?",
        choices=ACTIONS,
        default="run",
        help="run (default); pair: make a code; people: list who is paired; forget: unpair; "
        "status: count what waits and what failed",
    )
    parser.add_argument("person", nargs="?", help="whom to forget, as `people` shows it")
    parser.add_argument(
        "--workspace", type=folder, default=".", help="the folder of new sessions; default: ."
    )
    parser.add_argument("--model", help="provider:name; default: KERYX_MODEL, or config.toml")


def run(options: argparse.Namespace) -> int:
    if options.action == "run":
        return run_loop(_run(options))
    if options.action == "forget" and not options.person:
        print("keryx gateway forget: say whom; `keryx gateway people` lists all", file=sys.stderr)
        return 2
    return run_loop(_look(options))


async def _run(options: argparse.Namespace) -> int:
    keryx = Keryx(model=options.model, workspace=options.workspace, home=options.home, titles=True)
    async with keryx as app:
        redact_logs(secrets_of(app.host_client.config))
        workspace = str(await app.host_client.to_thread(options.workspace.resolve))
        async with running_gateway(app.host_client, workspace=workspace) as gateway:
            return await _wait(gateway)


async def _wait(gateway: Gateway) -> int:
    """Wait for a signal, or for a platform that cannot go on."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    gateway.on_failure(lambda _: stop.set())
    print(f"The gateway serves: {', '.join(gateway.platforms)}", flush=True)
    try:
        await stop.wait()
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
    if gateway.failure is not None:
        raise gateway.failure
    print("stopping; what waits is sent at the next start", flush=True)
    return 0


async def _look(options: argparse.Namespace) -> int:
    scope = Scope("gateway")
    bridge = Bridge(scope)
    try:
        config = await bridge.to_thread(load, options.home)
        if not config.gateway.is_configured:
            raise UserMustActError(NOT_CONFIGURED)
        file = SqliteFile(config.home / FILE, bridge, SCHEMA)
        try:
            return await file.write(_work(options))
        finally:
            await file.close()
    finally:
        await bridge.close()
        scope.close()


def _work(options: argparse.Namespace) -> Work[int]:
    match options.action:
        case "pair":
            return lambda connection: _pair(people.make_code(connection, time.time()))
        case "people":
            return lambda connection: _list(people.paired(connection))
        case "forget":
            return lambda connection: _forgotten(people.forget(connection, options.person))
        case _:
            return lambda connection: _status(inbox.counts(connection), ledger.counts(connection))


def _pair(code: str) -> int:
    minutes = int(people.CODE_LIFETIME // 60)
    print(f"Send this to the bot within {minutes} minutes; it works once:\n\n  /pair {code}")
    return 0


def _list(paired: list[people.PairedPerson]) -> int:
    for person in paired:
        day = time.strftime("%Y-%m-%d", time.localtime(person.at))
        print(f"{person.person:<16} {person.platform:<10} since {day}  {person.name}")
    if not paired:
        print("nobody is paired; `keryx gateway pair` makes a code")
    return 0


def _forgotten(is_done: bool) -> int:  # noqa: FBT001 (the only argument)
    if not is_done:
        print(
            "keryx: nobody of that id is paired; `keryx gateway people` lists all", file=sys.stderr
        )
        return 1
    print("forgotten")
    return 0


def _status(updates: dict[str, int], messages: dict[str, int]) -> int:
    for name, counts in (("updates", updates), ("messages", messages)):
        shown = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
        print(f"{name}: {shown or 'none'}")
    return 0
