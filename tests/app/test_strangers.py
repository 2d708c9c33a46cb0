"""Whoever reaches the host's own socket and does not know its secret can make it hold nothing."""

from __future__ import annotations

import asyncio
import struct
from pathlib import Path

from keryx import Keryx
from keryx.rpc.incoming_calls import LARGEST_GREETING


async def test_a_stranger_at_the_socket_of_a_host_may_say_only_little(tmp_path: Path) -> None:
    workspace, home = tmp_path / "workspace", tmp_path / "home"
    workspace.mkdir()
    async with asyncio.timeout(30), Keryx(home=home, workspace=workspace) as app:
        await app.open()
        reader, writer = await asyncio.open_unix_connection(home / "host.sock")
        writer.write(struct.pack(">I", LARGEST_GREETING + 1))
        assert b"%d that are taken" % LARGEST_GREETING in await reader.read()
        writer.close()
        await writer.wait_closed()
