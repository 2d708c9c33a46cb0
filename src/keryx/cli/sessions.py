"""List, show, search, fork or delete what was said; show and take back what was changed."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path

from keryx import config
from keryx import events as ev
from keryx.aio.loops import run_loop
from keryx.app import Keryx
from keryx.app.host.repair import repair
from keryx.cli.streams import write_json
from keryx.cli.values import rows
from keryx.errors import UserMustActError
from keryx.ports.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--home", help="where state lives; default: KERYX_HOME")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    listed = verbs.add_parser("list", help="all sessions, last changed first")
    listed.add_argument("--limit", type=rows, default=50, help="how many")
    found = verbs.add_parser("search", help="where something was said, in all sessions")
    found.add_argument("words", nargs="+")
    found.add_argument("--limit", type=rows, default=20, help="how many")
    verbs.add_parser("repair", help="save what can be read of a damaged store into a new one")
    for verb, text in (
        ("show", "what was said in one"),
        ("export", "the whole log of one, a fact a line, as JSON"),
        ("fork", "a new one that begins as this one was after a turn"),
        ("undo", "take back a turn, with its changes of files"),
        ("compact", "let a summary stand for what was said, in what the model is sent"),
        ("diff", "what one changed on the disk"),
        ("revert", "take back what one changed, unless someone edited it since"),
        ("delete", "everything of one is gone"),
    ):
        words = verbs.add_parser(verb, help=text)
        words.add_argument("session")
        if verb == "show":
            words.add_argument("--json", action="store_true", help="its log, a fact a line")
        if verb in ("fork", "undo"):
            words.add_argument("--turn", help="the turn that is meant; default: the last one")
        if verb == "undo":
            words.add_argument("--keep-files", action="store_true", help="leave the files alone")


def run(options: argparse.Namespace) -> int:
    if options.verb == "repair":
        return _repair(config.load(options.home).home)
    return run_loop(_run(options))


def _repair(home: Path) -> int:
    done = repair(home)
    if done is None:
        print("the store is not damaged; nothing was changed")
        return 0
    found = done.salvaged
    print(f"{len(found.complete)} sessions are whole; the damaged store is kept as {done.kept}")
    for cut in found.cut:
        lost = "an unknown number of" if cut.lost is None else cut.lost
        print(f"{cut.session_id}: the first {cut.saved} facts are kept, {lost} after them are lost")
    for session_id in found.lost:
        print(f"{session_id}: nothing of it can be read")
    if found.unnamed:
        print(f"of {found.unnamed} more sessions not even the names can be read")
    if found.blobs_lost:
        print(f"{len(found.blobs_lost)} attachments, prompts or results cannot be read")
    return 0


async def _run(options: argparse.Namespace) -> int:
    async with Keryx(home=options.home, resume=False) as app:
        if options.verb == "list":
            return await _list(app.store, options.limit)
        if options.verb == "search":
            return await _search(app.store, " ".join(options.words), options.limit)
        if await app.store.session(options.session) is None:
            print(f"keryx: there is no session {options.session!r}", file=sys.stderr)
            return 1
        if options.verb in ("show", "export"):
            as_json = options.verb == "export" or options.json
            return await _show(app.store, options.session, as_json=as_json)
        if options.verb == "delete":
            await app.delete(options.session)
            return 0
        return await _change(app, options)


async def _change(app: Keryx, options: argparse.Namespace) -> int:
    session = await app.open(options.session)
    log = await app.store.events(options.session)
    match options.verb:
        case "fork":
            print((await session.fork(options.turn)).session_id)
            return 0
        case "undo":
            await session.undo(options.turn or _last_turn(log), files=not options.keep_files)
            return 0
        case "compact":
            await session.compact()
            print(_told(await app.store.events(options.session, after=len(log))))
            return 0
        case "revert":
            await session.revert([e.seq for e in log if isinstance(e, ev.FilesChanged)])
        case _:
            pass
    print(await session.diff(), end="")
    return 0


def _told(facts: list[ev.LoggedEvent]) -> str:
    done = next(each for each in reversed(facts) if isinstance(each, ev.ContextCompacted))
    return f"{done.summary}\n\nsummed up: {done.tokens_before:,} → {done.tokens_after:,} tokens"


def _last_turn(log: list[ev.LoggedEvent]) -> str:
    undone = {event.turn_id for event in log if isinstance(event, ev.TurnUndone)}
    for event in reversed(log):
        if isinstance(event, ev.TurnFinished) and event.turn_id not in undone:
            return event.turn_id
    raise UserMustActError("there is no turn to undo in this session")


async def _search(store: Store, words: str, limit: int) -> int:
    hits = await store.search(words, limit=limit)
    for hit in hits:
        row = await store.session(hit.session_id)
        title = "" if row is None else row.title
        text = "".join(piece.text for piece in hit.snippet)
        print(f"{hit.session_id}  {title[:30]:<30}  {' '.join(text.split())}")
    if not hits:
        print("nothing was found", file=sys.stderr)
    return 0 if hits else 1


async def _list(store: Store, limit: int) -> int:
    for row in await store.sessions(limit=limit):
        changed = datetime.fromtimestamp(row.changed_at, UTC).astimezone()
        print(f"{row.session_id}  {changed:%Y-%m-%d %H:%M}  {row.state:<8} {row.title}")
    return 0


async def _show(store: Store, session_id: str, *, as_json: bool) -> int:
    for event in await store.events(session_id):
        if as_json:
            write_json(ev.encode(event))
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
