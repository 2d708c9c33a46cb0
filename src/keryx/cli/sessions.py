"""List, show, search, tag, export, import, share, replay, fork, undo or delete sessions."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from keryx import config
from keryx import events as ev
from keryx.aio.loops import run_loop
from keryx.app import Keryx
from keryx.app.host.repair import repair
from keryx.cli import session_files, session_links, session_replay
from keryx.cli.chatting.pieces import one_line
from keryx.cli.streams import write_json
from keryx.cli.values import folder, rows
from keryx.dates import time_text
from keryx.errors import UserMustActError
from keryx.ports.store import Store

LONGEST_LINE: Final = 200
"""Characters of a title or of what was found; both come from anywhere."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    list_ = verbs.add_parser("list", help="list all sessions, last changed first")
    list_.add_argument("--limit", type=rows, default=50, help="how many rows at most")
    list_.add_argument("--tag", help="only sessions with this tag; case does not matter")
    search = verbs.add_parser("search", help="find words in all sessions")
    search.add_argument("words", nargs="+")
    search.add_argument("--limit", type=rows, default=20, help="how many rows at most")
    import_ = verbs.add_parser("import", help="import sessions of Keryx, OpenAI or hermes-agent")
    import_.add_argument("file", help="a JSON or JSON lines file")
    import_.add_argument(
        "--workspace", type=folder, default=".", help="the workspace of conversations; default: ."
    )
    links = verbs.add_parser("links", help="list the links with which others read sessions")
    links.add_argument("session", nargs="?", help="only those of this session")
    verbs.add_parser("repair", help="save what can be read of a damaged store into a new one")
    for verb, text, add in _VERBS:
        command = verbs.add_parser(verb, help=text)
        command.add_argument("session")
        if add is not None:
            add(command)


def _add_show(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print events as JSON lines")


def _add_tag(command: argparse.ArgumentParser) -> None:
    command.add_argument("tags", nargs="*", help="all tags that it will have")
    command.add_argument("--remove", action="store_true", help="remove all tags")


def _add_turn(command: argparse.ArgumentParser) -> None:
    command.add_argument("--turn", help="the id of the turn; default: the last one")


def _add_undo(command: argparse.ArgumentParser) -> None:
    _add_turn(command)
    command.add_argument("--keep-files", action="store_true", help="keep its file changes")


def _add_compact(command: argparse.ArgumentParser) -> None:
    command.add_argument("--focus", default="", help="what the summary keeps above all")


def _add_delete(command: argparse.ArgumentParser) -> None:
    command.add_argument("--keep-memory", action="store_true", help="keep what it taught")


_VERBS: Final[tuple[tuple[str, str, Callable[[argparse.ArgumentParser], None] | None], ...]] = (
    ("show", "print the conversation of a session", _add_show),
    (
        "export",
        "write a session as JSON, Markdown or HTML",
        session_files.add_export_arguments,
    ),
    (
        "replay",
        "show a turn again as it happened, or compare it with another model",
        session_replay.add_replay_arguments,
    ),
    (
        "share",
        "create a link with which anybody can read a session, without a login",
        session_links.add_share_arguments,
    ),
    (
        "unshare",
        "revoke a link, or all links of a session",
        session_links.add_unshare_arguments,
    ),
    ("tag", "set the tags of a session, or show them", _add_tag),
    ("fork", "start a new session from this one, as it was after a turn", _add_turn),
    ("undo", "undo a turn, with its file changes", _add_undo),
    (
        "compact",
        "replace the earlier conversation by a summary in the model's context",
        _add_compact,
    ),
    ("diff", "show what a session changed on the disk", None),
    ("revert", "revert the file changes of a session, unless someone edited them since", None),
    ("delete", "delete a session and everything in it", _add_delete),
)
"""The verbs that are about one session."""


def run(options: argparse.Namespace) -> int:
    if options.verb == "repair":
        return _repair(config.load(options.home).home)
    return run_loop(_run(options))


def _repair(home: Path) -> int:
    result = repair(home)
    if result is None:
        print("the store is not damaged; nothing was changed")
        return 0
    salvaged = result.salvaged
    whole = len(salvaged.complete)
    print(f"{whole} sessions are whole; the damaged store is kept as {result.damaged}")
    for cut in salvaged.cut:
        lost = "an unknown number of" if cut.lost is None else cut.lost
        print(
            f"{cut.session_id}: the first {cut.saved} events are kept, {lost} after them are lost"
        )
    for session_id in salvaged.lost:
        print(f"{session_id}: nothing of it can be read")
    if salvaged.unnamed:
        print(f"{salvaged.unnamed} more sessions are lost, and their ids cannot be read")
    if salvaged.blobs_lost:
        print(f"{len(salvaged.blobs_lost)} attachments, prompts or results cannot be read")
    return 0


async def _run(options: argparse.Namespace) -> int:
    async with Keryx(home=options.home, resume=False) as app:
        match options.verb:
            case "list":
                return await _list(app.store, options.limit, options.tag)
            case "search":
                return await _search(app.store, " ".join(options.words), options.limit)
            case "links" if options.session is None:
                return await session_links.print_links(app, None)
            case "import":
                return await session_files.import_(app, options)
            case _:
                return await _run_on_session(app, options)


async def _run_on_session(app: Keryx, options: argparse.Namespace) -> int:
    if await app.store.session(options.session) is None:
        print(
            f"keryx: there is no session {options.session!r}; `keryx sessions list` shows all",
            file=sys.stderr,
        )
        return 1
    return await _ON_SESSION.get(options.verb, _change)(app, options)


async def _delete(app: Keryx, options: argparse.Namespace) -> int:
    await app.delete(options.session, keep_memory=options.keep_memory)
    return 0


async def _print_links(app: Keryx, options: argparse.Namespace) -> int:
    return await session_links.print_links(app, options.session)


async def _change(app: Keryx, options: argparse.Namespace) -> int:
    if options.verb == "tag":
        return await _tag(app, options)
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
            await session.compact(options.focus)
            print(_compaction(await app.store.events(options.session, after=len(log))))
            return 0
        case "revert":
            await session.revert([e.seq for e in log if isinstance(e, ev.FilesChanged)])
        case _:
            pass
    print(await session.diff(), end="")
    return 0


def _compaction(events: list[ev.LoggedEvent]) -> str:
    done = next(event for event in reversed(events) if isinstance(event, ev.ContextCompacted))
    return f"{done.summary}\n\ncompacted: {done.tokens_before:,} → {done.tokens_after:,} tokens"


def _last_turn(log: list[ev.LoggedEvent]) -> str:
    undone = {event.turn_id for event in log if isinstance(event, ev.TurnUndone)}
    for event in reversed(log):
        if isinstance(event, ev.TurnFinished) and event.turn_id not in undone:
            return event.turn_id
    raise UserMustActError("this session has no turn to undo")


async def _tag(app: Keryx, options: argparse.Namespace) -> int:
    """Set all tags of a session; without any, print those that it has."""
    if options.tags and options.remove:
        raise UserMustActError("name tags, or use --remove to have none; not both")
    if options.tags or options.remove:
        session = await app.open(options.session)
        await session.change(tags=tuple(options.tags))
    row = await app.store.session(options.session)
    for tag in () if row is None else row.tags:
        print(tag)
    return 0


async def _search(store: Store, words: str, limit: int) -> int:
    hits = await store.search(words, limit=limit)
    for hit in hits:
        row = await store.session(hit.session_id)
        title = "" if row is None else one_line(row.title, 30)
        text = one_line("".join(piece.text for piece in hit.snippet), LONGEST_LINE)
        print(f"{hit.session_id}  {title:<30}  {text}")
    if not hits:
        print("nothing was found", file=sys.stderr)
    return 0 if hits else 1


async def _list(store: Store, limit: int, tag: str | None) -> int:
    for row in await store.sessions(limit=limit, tag=tag):
        tags = "".join(f"  #{tag}" for tag in row.tags)
        title = one_line(row.title, LONGEST_LINE)
        print(f"{row.session_id}  {time_text(row.changed_at)}  {row.state:<8} {title}{tags}")
    return 0


async def _show(app: Keryx, options: argparse.Namespace) -> int:
    store, session_id = app.store, options.session
    for event in await store.events(session_id):
        if options.json:
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


_ON_SESSION: Final[dict[str, Callable[[Keryx, argparse.Namespace], Awaitable[int]]]] = {
    "show": _show,
    "export": session_files.export,
    "replay": session_replay.replay,
    "share": session_links.share,
    "links": _print_links,
    "unshare": session_links.unshare,
    "delete": _delete,
}
