"""Trust the MCP servers, hooks and skills of a folder. Until then nothing of them is used.

Trust is in the folder and in the content of these files: after a change you are asked again.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from keryx.aio.loops import run_loop
from keryx.app import Keryx
from keryx.app.services.places import find_workspace
from keryx.app.trust.description import DescribedFolder, describe
from keryx.app.trust.trusted_folders import TrustedFolder, read_folders
from keryx.cli.values import usable_folder
from keryx.dates import time_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", default=".", help="the folder; default: this one")
    verbs = parser.add_mutually_exclusive_group()
    verbs.add_argument("--show", action="store_true", help="only show what the folder has")
    verbs.add_argument("--list", action="store_true", help="list the folders that you trust")
    verbs.add_argument("--remove", action="store_true", help="trust the folder no more")


def run(options: argparse.Namespace) -> int:
    if not (options.list or options.remove):
        options.folder = usable_folder(options.folder)
    return run_loop(_run(options))


async def _run(options: argparse.Namespace) -> int:
    async with Keryx(home=options.home, resume=False) as app:
        if options.list:
            return await _list(app)
        if options.remove:
            return await _remove(app, options.folder)
        workspace = str(find_workspace(options.folder))
        described = await describe(app.host_client, workspace)
        _print(described)
        if options.show or not described.digest:
            return 0
        await app.host_client.trust(
            TrustedFolder(
                workspace=workspace, digest=described.digest, trusted_at=time.time(), by="cli"
            )
        )
    print("trusted; new turns use this")
    return 0


async def _list(app: Keryx) -> int:
    folders = await read_folders(app.store)
    for trusted in folders:
        date = time_text(trusted.trusted_at)
        now = await describe(app.host_client, trusted.workspace)
        state = "" if now.trusted else "  (has changed since: not used)"
        print(f"{date}  {trusted.workspace}{state}")
    if not folders:
        print("you trust no folder yet", file=sys.stderr)
    return 0


async def _remove(app: Keryx, name: str) -> int:
    # A folder that is gone can be removed too, by the path that `--list` shows.
    for workspace in dict.fromkeys((_real_path(name), name)):
        if await app.host_client.distrust(workspace):
            return 0
    print(
        f"keryx: the folder {name!r} is not trusted; `keryx trust --list` shows those that are",
        file=sys.stderr,
    )
    return 1


def _real_path(name: str) -> str:
    try:
        return str(Path(name).expanduser().resolve())
    except (OSError, RuntimeError, ValueError):  # no path at all
        return name


def _print(described: DescribedFolder) -> None:
    if not described.digest:
        print(
            f"{described.workspace} has no MCP servers, hooks or skills: there is nothing to trust"
        )
        return
    print(f"{described.workspace} has {described.summary}:")
    for server in described.servers:
        print(f"  MCP server {server.name}: {server.runs}")
    for hook in described.hooks:
        print(f"  hook {hook.name}, {hook.event} of {', '.join(hook.match)}: {hook.runs}")
    for skill in described.skills:
        print(f"  skill {skill.name}: {skill.description}")
    for problem in described.problems:
        print(f"keryx: warning: {problem}", file=sys.stderr)
