"""One platform at work: its inbox, its conversations, its answers and its outbox."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from keryx.aio.clock import Clock
from keryx.aio.scope import Scope
from keryx.app.host_client import HostClient
from keryx.errors import KeryxError
from keryx.gateway.delivery.outbox import Outbox
from keryx.gateway.lanes import Lanes
from keryx.gateway.people import Access
from keryx.gateway.platforms import ConfiguredPlatform
from keryx.gateway.talk.answers import Answers
from keryx.gateway.talk.performer import Performer
from keryx.gateway.talk.planner import Planner
from keryx.gateway.tuning import Tuning
from keryx.sqlite_file import SqliteFile


class Channel:
    """Belongs to one loop; `run` it, then `close` it."""

    def __init__(
        self,
        configured: ConfiguredPlatform,
        host_client: HostClient,
        file: SqliteFile,
        scope: Scope,
        *,
        read_blob: Callable[[str], Awaitable[bytes | None]],
        workspace: str,
        tuning: Tuning,
        on_failure: Callable[[Channel, KeryxError], object],
    ) -> None:
        """`on_failure`: called when the platform cannot go on until a person acts."""
        self.platform = platform = configured.platform
        clock = scope.clock
        self._outbox = Outbox(
            platform,
            file,
            scope,
            read_blob=read_blob,
            on_failure=lambda error: on_failure(self, error),
            pace=tuning.pace,
        )
        self._answers = Answers(
            platform, host_client, file, self._outbox, scope, streaming=configured.streaming
        )
        planner = Planner(
            platform,
            host_client,
            file,
            _access(configured, file, clock),
            clock,
            sessions_by=configured.sessions_by,
            workspace=workspace,
        )
        self._performer = Performer(platform.name, host_client, file, planner, clock)
        self._lanes = Lanes(
            platform,
            file,
            scope,
            planner=planner,
            performer=self._performer,
            answers=self._answers,
            outbox=self._outbox,
            pace=tuning.pace,
            join_window=tuning.join_window,
        )

    async def run(self) -> None:
        """Serve the platform until cancelled; what an earlier process left is done first."""
        await self.platform.start()
        await self._performer.end_mixed_turns(self.platform.account)
        await self._outbox.start()
        await self._answers.start()
        await self._lanes.start()
        await self.platform.receive(self._lanes.take)

    async def close(self) -> None:
        await self._lanes.close()
        await self._answers.close()
        await self._outbox.close()
        await self.platform.close()


def _access(configured: ConfiguredPlatform, file: SqliteFile, clock: Clock) -> Access:
    return Access(
        file,
        clock,
        configured.platform.name,
        configured.allowed,
        configured.budget,
        owners=configured.owners,
    )
