"""`keryx sessions export` and `import`: sessions as files."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from keryx import events as ev
from keryx.app import Keryx
from keryx.app.portable.html_page import as_html
from keryx.app.portable.importing import import_file
from keryx.app.portable.markdown_document import as_markdown
from keryx.app.portable.session_file import SessionFile, encode_session, read_session
from keryx.cli.streams import write_json
from keryx.errors import UserMustActError


def _as_lines(session: SessionFile) -> bytes:
    return b"".join(ev.encode(event) + b"\n" for event in session.events)


FORMATS: Final[dict[str, Callable[[SessionFile], bytes]]] = {
    "jsonl": _as_lines,
    "json": encode_session,
    "markdown": as_markdown,
    "html": as_html,
}


def add_export_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format",
        choices=tuple(FORMATS),
        default="jsonl",
        help="jsonl: the events; json: complete, for `import`; markdown and html: for people",
    )
    parser.add_argument("-o", "--output", help="write to this file; default: standard output")


async def export(app: Keryx, options: argparse.Namespace) -> int:
    """Write one session to a file, or to standard output."""
    if options.output is None and options.format == "jsonl":
        for event in await app.store.events(options.session):
            write_json(ev.encode(event))
        return 0
    session = await read_session(app.store, options.session)
    content = FORMATS[options.format](session)
    if options.output is None:
        sys.stdout.write(content.decode())
        return 0
    path = Path(options.output)
    await app.host_client.to_thread(lambda: _write(path, content))
    print(f"{len(session.events)} events were written to {path}", file=sys.stderr)
    return 0


def _write(path: Path, content: bytes) -> None:
    """Write the file whole or not at all: it gets its name at the end."""
    if not path.name:
        raise UserMustActError(f"{str(path)!r} is not the name of a file; choose another")
    temporary = path.with_name(f".keryx-export-{os.getpid()}")
    try:
        # A conversation may hold secrets, so only its owner can read the file.
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except (OSError, ValueError) as error:
        raise UserMustActError(f"{str(path)[:200]} cannot be written: {error}") from error


async def import_(app: Keryx, options: argparse.Namespace) -> int:
    """Import the sessions of a file, and print their ids."""
    for session in await import_file(app, Path(options.file), str(options.workspace)):
        print(session.session_id)
        if session.left_out:
            print(
                f"keryx: {session.left_out} system messages of {session.session_id} were left out: "
                "Keryx has its own instructions",
                file=sys.stderr,
            )
    return 0
