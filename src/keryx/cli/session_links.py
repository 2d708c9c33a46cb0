"""`keryx sessions share`, `links` and `unshare`: links with which others read a session."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Final

from keryx.app import Keryx
from keryx.cli.chatting.pieces import printable
from keryx.server.sharing.share_links import (
    LIFETIMES,
    ShareRecord,
    all_links,
    create_link,
    links_of,
    revoke_link,
)

OWNER: Final = ""
SHORT_ID: Final = 12
"""Characters of a link's id that the list shows, and the fewest that name it."""


def add_share_arguments(parser: argparse.ArgumentParser) -> None:
    lifetime = parser.add_mutually_exclusive_group()
    lifetime.add_argument(
        "--days", type=int, choices=LIFETIMES, default=7, help="until the link ends; default: 7"
    )
    lifetime.add_argument("--forever", action="store_true", help="the link works until `unshare`")
    parser.add_argument("--follow", action="store_true", help="also show what is said later")
    parser.add_argument("--pictures", action="store_true", help="also show attached pictures")
    parser.add_argument("--url", default="", help="the address of the page, to print a whole link")


def add_unshare_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("link", help="the id of a link, as `links` prints it; or `all`")


async def share(app: Keryx, options: argparse.Namespace) -> int:
    """Create a link and print it. Its secret is not stored, so this is the only time."""
    row = await app.store.session(options.session)
    record = ShareRecord.of(
        options.session,
        by="cli",
        now=time.time(),
        days=None if options.forever else options.days,
        up_to=None if options.follow or row is None else row.last_seq,
        attachments=options.pictures,
    )
    address = await create_link(app.host_client, OWNER, record)
    print(options.url.rstrip("/") + address.path)
    if not options.url:
        print(
            "put the address of the page in front of it, as `keryx serve` prints it; "
            "--url does that",
            file=sys.stderr,
        )
    return 0


async def print_links(app: Keryx, session_id: str | None) -> int:
    """Print the links that work, of one session or of all."""
    now = time.time()
    if session_id is None:
        links = await all_links(app.store, now)
    else:
        links = await links_of(app.store, session_id, now)
    for share_id, link in links.items():
        row = await app.store.session(link.session_id)
        title = "" if row is None else printable(row.title)
        end = "never" if link.expires_at is None else _day(link.expires_at)
        reach = "follows" if link.up_to is None else f"up to event {link.up_to}"
        print(f"{share_id[:SHORT_ID]}  {link.session_id}  ends {end}  {reach}  {title}".rstrip())
    return 0


async def unshare(app: Keryx, options: argparse.Namespace) -> int:
    """Revoke one link of a session, or all of them."""
    links = await links_of(app.store, options.session, time.time())
    is_long = len(options.link) >= SHORT_ID
    named = [
        share_id
        for share_id in links
        if options.link == "all" or (is_long and share_id.startswith(options.link))
    ]
    if not named and options.link != "all":
        print(
            f"keryx: this session has no link {options.link!r}; "
            f"`keryx sessions links {options.session}` shows them",
            file=sys.stderr,
        )
        return 1
    for share_id in named:
        await revoke_link(app.host_client, options.session, share_id)
    return 0


def _day(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
