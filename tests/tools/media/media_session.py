"""A home whose models for media are a server on loopback, and calls in a session of it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keryx import Keryx
from keryx import events as ev
from keryx.messages import Image, Json, Text, text_of
from tests.tools.media.media_server import KEY, MediaServer

PATIENCE = 60.0
ALL = ("image", "speech", "transcription")


@dataclass(frozen=True)
class Ended:
    """The end of one call, and what was logged of usage."""

    event: ev.CallFinished
    usage: list[ev.UsageRecorded]

    @property
    def outcome(self) -> str:
        return self.event.outcome

    @property
    def text(self) -> str:
        return text_of(self.event.result)

    @property
    def texts(self) -> list[str]:
        return [part.text for part in self.event.result if isinstance(part, Text)]

    @property
    def images(self) -> list[Image]:
        return [part for part in self.event.result if isinstance(part, Image)]

    @property
    def value(self) -> dict[str, Any]:
        (part,) = self.event.result
        assert isinstance(part, Json), self.event
        return json.loads(bytes(part.value))


class MediaHome:
    """A home, and a workspace. `purposes`: those that have a model."""

    def __init__(
        self,
        folder: Path,
        server: MediaServer | None = None,
        *,
        purposes: tuple[str, ...] = ALL,
        key: str = KEY,
        general: str = "",
        more: str = "",
    ) -> None:
        self.home, self.workspace = folder / "home", folder / "workspace"
        self.home.mkdir()
        self.workspace.mkdir()
        url = "http://127.0.0.1:9/v1" if server is None else server.url
        lines = [f'{purpose} = "here:{purpose}-1"' for purpose in purposes]
        (self.home / "config.toml").write_text(
            "\n".join(
                (
                    general,
                    f'model = "here:chat"\n[providers.here]\nbase_url = "{url}"',
                    f'api_key = "{key}"\n[models.auxiliary]',
                    *lines,
                    more,
                )
            )
        )

    async def call(self, tool: str, /, **arguments: Any) -> Ended:
        """Run a tool in a new session."""
        async with asyncio.timeout(PATIENCE), self.app() as app:
            session = await app.open()
            async for event in session.run(tool, json.dumps(arguments), attended=False):
                if isinstance(event, ev.CallFinished):
                    log = await app.store.events(session.session_id)
                    usage = [fact for fact in log if isinstance(fact, ev.UsageRecorded)]
                    return Ended(event, usage)
        raise AssertionError("the call has no end")

    async def script(self, code: str) -> Any:
        """Run a script; return what it passed to `finish`."""
        ended = await self.call("execute_code", code=code)
        assert ended.value["exit_code"] == 0, ended.value
        return ended.value["result"]

    def app(self) -> Keryx:
        return Keryx(home=self.home, workspace=self.workspace)

    def files(self) -> dict[str, bytes]:
        """Return what is in the workspace."""
        return {
            str(path.relative_to(self.workspace)): path.read_bytes()
            for path in sorted(self.workspace.rglob("*"))
            if path.is_file()
        }
