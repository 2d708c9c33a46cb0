"""The local place without confinement: children run as the host does, under its warden."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from keryx.aio.capture import OutputSink
from keryx.aio.scope import Scope
from keryx.aio.warden import Warden
from keryx.messages import NO_NEEDS, Needs
from keryx.ports.place import Process


class OpenPlace:
    """Starts processes that may do whatever the host's user may."""

    def __init__(self, warden: Warden) -> None:
        self._warden = warden

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str,
        scope: Scope | None = None,
        output: OutputSink | None = None,
        stdin: bool = False,
        granted: Needs = NO_NEEDS,
    ) -> Process:
        del granted  # nothing is withheld
        return await self._warden.spawn(
            argv, env=env, cwd=cwd, scope=scope, output=output, stdin=stdin
        )
