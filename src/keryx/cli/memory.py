"""List, search, add, edit, merge, forget or export what agents remember beyond their sessions.

Memory is off until config.toml names a provider: `[memory]` and `providers = ["notes"]`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Final

import msgspec

from keryx.aio.loops import run_loop
from keryx.app import Keryx
from keryx.app.memory.memory_client import MemoryClient
from keryx.cli.chatting.pieces import printable
from keryx.cli.memory_merges import print_merges
from keryx.cli.memory_states import print_failures, print_states
from keryx.cli.streams import write_json
from keryx.cli.values import folder, place, rows
from keryx.config import DEFAULT
from keryx.dates import time_text
from keryx.ports.memory import Memory, profile_and_person

TRUST: Final = {"person": "your words", "tool": "from files", "page": "not trusted"}
"""Whose words a memory is taken for, as people read it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    list_ = verbs.add_parser("list", help="list what is remembered, the newest first")
    list_.add_argument("--ended", action="store_true", help="list what was replaced or removed")
    search = verbs.add_parser("search", help="find memories that have all these words")
    search.add_argument("words", nargs="+")
    for verb in (list_, search):
        verb.add_argument("--workspace", type=folder, help="only of this folder, and about you")
        verb.add_argument("--profile", help="only of this profile")
        verb.add_argument("--limit", type=rows, default=50, help="how many rows at most")
        verb.add_argument("--json", action="store_true", help="print one memory per line, as JSON")
    add = verbs.add_parser("add", help="remember a fact in your own words")
    add.add_argument("text", help="the fact, quoted as one argument")
    add.add_argument("--work", action="store_true", help="it is about this folder only")
    add.add_argument("--workspace", type=folder, default=".", help="the folder of --work")
    add.add_argument("--profile", default=DEFAULT, help="the profile that remembers it")
    edit = verbs.add_parser("edit", help="replace a memory by your own words")
    edit.add_argument("memory", help="the id of the memory, as `list` shows it")
    edit.add_argument("text", help="the new text, quoted as one argument")
    confirm = verbs.add_parser("confirm", help="trust a memory like your own words")
    confirm.add_argument("memory", help="the id of the memory, as `list` shows it")
    forget = verbs.add_parser("forget", help="erase memories, here and at every provider")
    forget.add_argument("memories", nargs="+", metavar="memory", help="the ids of the memories")
    forget.add_argument("--yes", action="store_true", help="erase them without a question")
    merging = "let a model merge memories that say the same; can be undone"
    _add_merging(verbs.add_parser("consolidate", help=merging))
    undo = verbs.add_parser("undo", help="take back a consolidation, or the removal of a memory")
    undo.add_argument("operation", help="its id, or that of a memory of `list --ended`")
    lag = verbs.add_parser("lag", help="show what the providers have not stored yet")
    failed = verbs.add_parser("failed", help="show what a provider refused, and why")
    for verb in (lag, failed):
        verb.add_argument("--json", action="store_true", help="print one row per line, as JSON")
    retry = verbs.add_parser("retry", help="send what failed again, and try all providers at once")
    retry.add_argument("places", nargs="*", type=place, help="only these, as `failed` shows them")
    export = verbs.add_parser("export", help="print everything that is remembered")
    form = export.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one memory per line; the default")
    form.add_argument("--markdown", action="store_true", help="a list for people")
    export.add_argument("--profile", help="only of this profile")


def _add_merging(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workspace", type=folder, help="also those about this folder")
    parser.add_argument("--profile", default=DEFAULT, help="the profile that remembers them")
    parser.add_argument("--model", help="default: models.auxiliary.memory, or the profile's")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def run(options: argparse.Namespace) -> int:
    return run_loop(_run(options))


async def _run(options: argparse.Namespace) -> int:
    async with Keryx(home=options.home, resume=False) as app:
        match options.verb:
            case "list" | "search":
                code = await _list(app.memory, options)
            case "forget":
                code = await _forget(app, options.memories, is_sure=options.yes)
            case "retry":
                code = await _retry(app.memory, options.places)
            case "lag":
                code = print_states(await app.memory.states(), as_json=options.json)
            case "consolidate":
                code = await _consolidate(app.memory, options)
            case "undo":
                code = await _undo(app.memory, options.operation)
            case _:
                code = 0
                await _do(app.memory, options)
    return code


async def _do(memory: MemoryClient, options: argparse.Namespace) -> None:
    """Carry out a verb that can only succeed or raise."""
    match options.verb:
        case "add":
            print((await _add(memory, options)).id)
        case "edit":
            print((await memory.edit(options.memory, options.text)).id)
        case "confirm":
            await memory.confirm(options.memory)
        case "failed":
            print_failures(await memory.failures(), as_json=options.json)
        case _:
            _export(await memory.export(options.profile), is_list=options.markdown)


async def _list(memory: MemoryClient, options: argparse.Namespace) -> int:
    workspace = None if options.workspace is None else str(options.workspace)
    profile, limit = options.profile, options.limit
    if options.verb == "search":
        words = " ".join(options.words)
        shown = await memory.search(words, profile=profile, workspace=workspace, limit=limit)
    else:
        page = await memory.list(
            profile=profile, workspace=workspace, ended=options.ended, limit=limit
        )
        shown = page.memories
    for item in shown:
        if options.json:
            write_json(msgspec.json.encode(item))
        else:
            print(_line(item))
    if not shown:
        is_search = options.verb == "search"
        print("nothing was found" if is_search else "nothing is remembered yet", file=sys.stderr)
        return 1 if is_search else 0
    return 0


def _line(memory: Memory) -> str:
    date = time_text(memory.created_at)
    source = memory.sources[0].session_id if memory.sources else "by you"
    state = "" if memory.state == "active" else f"  ({memory.state})"
    if memory.conflicts_with is not None:
        state += f"  (conflicts with {memory.conflicts_with}: edit or forget one of them)"
    text = " ".join(printable(memory.text).split())
    _, person = profile_and_person(memory.profile)
    whose = "" if person is None else f"  (of {printable(person)})"
    return f"{memory.id}  {date}  {TRUST[memory.trust]:<11}  {source:<18}  {text}{whose}{state}"


async def _add(memory: MemoryClient, options: argparse.Namespace) -> Memory:
    return await memory.add(
        options.text,
        about="work" if options.work else "user",
        workspace=str(options.workspace),
        profile=options.profile,
    )


async def _forget(app: Keryx, ids: Sequence[str], *, is_sure: bool) -> int:
    memory = app.memory
    items = {memory_id: await memory.get(memory_id) for memory_id in ids}
    unknown = [memory_id for memory_id, item in items.items() if item is None]
    if unknown:
        print(
            f"keryx: there is no memory {unknown[0]!r}, and nothing was forgotten; "
            "`keryx memory list` shows those there are",
            file=sys.stderr,
        )
        return 1
    for item in items.values():
        if item is not None:
            print(_line(item))
    if not is_sure and not await app.host_client.to_thread(_confirmed):
        print("nothing was forgotten; --yes forgets without a question", file=sys.stderr)
        return 1
    forgotten = await memory.forget(list(items))
    print(f"forgotten: {len(forgotten.erased)}, with what they replaced")
    for provider, left in forgotten.remaining.items():
        print(
            f"keryx: warning: {provider} still has {len(left)} of them, or may have; they are "
            "erased there as soon as it answers (`keryx memory lag`)",
            file=sys.stderr,
        )
    return 0


def _confirmed() -> bool:
    try:
        return input("Forget this permanently? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        print()
        return False


async def _consolidate(memory: MemoryClient, options: argparse.Namespace) -> int:
    workspace = "" if options.workspace is None else str(options.workspace)
    report = await memory.consolidate(
        profile=options.profile, workspace=workspace, model=options.model
    )
    return print_merges(report, as_json=options.json)


async def _undo(memory: MemoryClient, operation: str) -> int:
    if await memory.undo(operation):
        print("the memories are as before")
        return 0
    print(f"keryx: there is nothing to undo with the id {operation!r}", file=sys.stderr)
    return 1


async def _retry(memory: MemoryClient, places: Sequence[int]) -> int:
    failed = {failure.place for failure in await memory.failures()}
    unknown = [number for number in places if number not in failed]
    if unknown:
        print(
            f"keryx: nothing failed with the number {unknown[0]}; `keryx memory failed` shows "
            "what did",
            file=sys.stderr,
        )
        return 1
    count = await memory.retry(list(places) or None)
    print(f"sent again: {count}")
    return 0


def _export(memories: Sequence[Memory], *, is_list: bool) -> None:
    if not is_list:
        for memory in memories:
            write_json(msgspec.json.encode(memory))
        return
    places = dict.fromkeys((memory.profile, memory.workspace) for memory in memories)
    for profile, workspace in sorted(places):
        name = printable(workspace) or "About the user"
        of_profile = "" if profile == DEFAULT else f" ({printable(profile)})"
        print(f"# {name}{of_profile}", end="\n\n")
        for memory in memories:
            if (memory.profile, memory.workspace) == (profile, workspace):
                print(f"- {' '.join(printable(memory.text).split())}")
        print()
