"""List, show or delete what was said; show and take back what was changed."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime

from keryx import events as ev
from keryx.aio.loops import run_loop
from keryx.app import Keryx
from keryx.ports.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--home", help="where state lives; default: KERYX_HOME")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    verbs.add_parser("list", help="all sessions, last changed first")
    for verb, text in (
        ("show", "what was said in one"),
        ("diff", "what one changed on the disk"),
        ("revert", "take back what one changed, unless someone edited it since"),
        ("delete", "everything of one is gone"),
    ):
        words = verbs.add_parser(verb, help=text)
        words.add_argument("session")
        if verb == "show":
            words.add_argument("--json", action="store_true", help="its log, a fact a line")


def run(options: argparse.Namespace) -> int:
    return run_loop(_run(options))


async def _run(options: argparse.Namespace) -> int:
    async with Keryx(home=options.home, resume=False) as app:
        if options.verb == "list":
            return await _list(app.store)
        if await app.store.session(options.session) is None:
            print(f"keryx: there is no session {options.session!r}", file=sys.stderr)
            return 1
        if options.verb == "show":
            return await _show(app.store, options.session, as_json=options.json)
        if options.verb == "delete":
            await app.delete(options.session)
            return 0
        session = await app.open(options.session)
        if options.verb == "revert":
            log = await app.store.events(options.session)
            await session.revert([e.seq for e in log if isinstance(e, ev.FilesChanged)])
        print(await session.diff(), end="")
        return 0


async def _list(store: Store) -> int:
    for row in await store.sessions():
        changed = datetime.fromtimestamp(row.changed_at, UTC).astimezone()
        print(f"{row.session_id}  {changed:%Y-%m-%d %H:%M}  {row.state:<8} {row.title}")
    return 0


async def _show(store: Store, session_id: str, *, as_json: bool) -> int:
    for event in await store.events(session_id):
        if as_json:
            print(ev.encode(event).decode())
            continue
        match event:
            case ev.MessageAccepted():
                print(f"> {event.text}")
            case ev.StepReplied():
                print(event.text + (" [cut]" if event.cut else ""))
            case ev.CallFinished():
                print(f"  [{event.tool}] {event.outcome}")
            case ev.TurnFinished() if event.outcome != "completed":
                print(f"  [{event.outcome}: {event.reason or event.error}]")
            case _:
                continue
    return 0
