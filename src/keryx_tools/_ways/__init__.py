"""The ways to the host, as the environment names them, behind one blocking function.

KERYX_TOOLS_ADDRESS is `unix:PATH`, `files:FOLDER` or `stdio:IN,OUT`. The last belongs to one
process alone; there `relay` turns it into the first, for that process and all that it starts.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any, NamedTuple

from keryx_tools._errors import ToolConnectionError, unsent
from keryx_tools._ways import packets, sockets
from keryx_tools._ways.deadline import Deadline
from keryx_tools._ways.folder import Letter

ADDRESS = "KERYX_TOOLS_ADDRESS"
SECRET = "KERYX_TOOLS_SECRET"  # noqa: S105 (the name of the variable)


class Way(NamedTuple):
    """Where the host is."""

    kind: str
    place: str
    secret: str


def way(tool: str) -> Way:
    """The way to the host. `ToolConnectionError` if there is none."""
    address = os.environ.get(ADDRESS, "")
    kind, _, place = address.partition(":")
    secret = os.environ.get(SECRET, "")
    if kind == "stdio":
        from keryx_tools._ways import relay  # noqa: PLC0415 (it needs asyncio, others do not)

        place = relay.started(place, secret, tool)
        os.environ[ADDRESS] = f"unix:{place}"
        return Way("unix", place, secret)
    if kind not in ("unix", "files") or not place:
        why = f"{ADDRESS} is {address!r}" if address else f"{ADDRESS} is not set"
        raise unsent(tool, f"{why}; tools can be called in what Keryx has started, only")
    return Way(kind, place, secret)


def prepare() -> None:
    """Make a way that whatever this process starts can use. Who calls hears of it if that fails."""
    with contextlib.suppress(ToolConnectionError):
        way("")


def letter_params(found: Way, tool: str, arguments: dict[str, Any], deadline: Deadline) -> bytes:
    """What a call through a folder says: there is no greeting, so each carries the secret."""
    return packets.call_params(tool, arguments, deadline.seconds, secret=found.secret)


def call(tool: str, arguments: dict[str, Any], deadline: Deadline) -> dict[str, Any]:
    """Call the tool and block for the packet that answers."""
    found = way(tool)
    if found.kind == "unix":
        params = packets.call_params(tool, arguments, deadline.seconds)
        return sockets.call(found.place, found.secret, params, deadline)
    letter = Letter(found.place, letter_params(found, tool, arguments, deadline), deadline)
    leash = sockets.leash_of_thread()
    try:
        while True:
            answer = letter.answer()
            if answer is not None:
                return answer
            if leash is not None:
                leash.check(tool)
            time.sleep(letter.pause())
    except BaseException:
        letter.give_up()
        raise
