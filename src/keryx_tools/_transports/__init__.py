"""The transports to the host, chosen by the environment, behind one blocking function.

KERYX_TOOLS_ADDRESS is `unix:PATH`, `files:FOLDER` or `stdio:IN,OUT`. Only one process can use the
last; its `relay` serves a Unix socket instead, for that process and all that it starts.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any, NamedTuple

from keryx_tools._errors import ToolConnectionError, unsent_error
from keryx_tools._transports import packets, sockets
from keryx_tools._transports.deadline import Deadline
from keryx_tools._transports.files import FileCall

ADDRESS = "KERYX_TOOLS_ADDRESS"
SECRET = "KERYX_TOOLS_SECRET"  # noqa: S105 (the name of the variable)


class HostAddress(NamedTuple):
    """Where the host is reached."""

    kind: str
    location: str
    secret: str


def host_address(tool: str) -> HostAddress:
    """Return the host's address; raise `ToolConnectionError` if there is none."""
    address = os.environ.get(ADDRESS, "")
    kind, _, location = address.partition(":")
    secret = os.environ.get(SECRET, "")
    if kind == "stdio":
        from keryx_tools._transports import relay  # noqa: PLC0415 (it needs asyncio, others do not)

        location = relay.start_relay(location, secret, tool)
        os.environ[ADDRESS] = f"unix:{location}"
        return HostAddress("unix", location, secret)
    if kind not in ("unix", "files") or not location:
        why = f"{ADDRESS} is {address!r}" if address else f"{ADDRESS} is not set"
        raise unsent_error(
            tool, f"{why}; tools can be called only in scripts that Keryx has started"
        )
    return HostAddress(kind, location, secret)


def prepare() -> None:
    """Start the relay if needed. If that fails, the first call raises the error."""
    with contextlib.suppress(ToolConnectionError):
        host_address("")


def file_call_params(
    address: HostAddress, tool: str, arguments: dict[str, Any], deadline: Deadline
) -> bytes:
    """Return the parameters of a call by files: without a greeting, each has the secret."""
    return packets.call_params(tool, arguments, deadline.seconds, secret=address.secret)


def call(tool: str, arguments: dict[str, Any], deadline: Deadline) -> dict[str, Any]:
    """Call the tool and block until the answer; return its packet."""
    address = host_address(tool)
    if address.kind == "unix":
        params = packets.call_params(tool, arguments, deadline.seconds)
        return sockets.call(address.location, address.secret, params, deadline)
    file_call = FileCall(
        address.location, file_call_params(address, tool, arguments, deadline), deadline
    )
    stopper = sockets.thread_stopper()
    try:
        while True:
            answer = file_call.answer()
            if answer is not None:
                return answer
            if stopper is not None:
                stopper.check(tool)
            time.sleep(file_call.pause())
    except BaseException:
        file_call.give_up()
        raise
