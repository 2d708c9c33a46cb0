"""The local place: a session's commands on this machine, confined as its policy says."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec

from keryx.aio.bridge import Bridge
from keryx.aio.capture import OutputSink
from keryx.aio.scope import Scope
from keryx.messages import NO_NEEDS, Needs
from keryx.ports.files import UPLOADS
from keryx.ports.place import NothingSharedError, PrivateFolder, Process
from keryx.sandbox.policy import Limits, OwnersOnly, Policy, owners_only
from keryx.warden import Confinement, Warden

SECRETS_HOLD: Final = 60.0
"""Seconds."""

Mode = Literal["on", "required", "off"]
"""on: as far as this machine allows. required: fully, or not at all. off: not."""


class SystemSecrets:
    """What only owners may read of the system's folders; looked up now and then, in a thread."""

    def __init__(self) -> None:
        self._found = OwnersOnly()
        self._looked_at = -math.inf

    def find(self) -> OwnersOnly:
        if time.monotonic() - self._looked_at > SECRETS_HOLD:
            self._found = owners_only()
            self._looked_at = time.monotonic()
        return self._found


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """What the children of every session of a host are kept to."""

    mode: Mode = "on"
    user_home: Path = Path("/")
    hidden: tuple[Path, ...] = ()
    """What nobody may see, beside the user's secrets: the home of the host."""
    readable: tuple[Path, ...] = ()
    limits: Limits = msgspec.field(default_factory=Limits)
    secrets: SystemSecrets = msgspec.field(default_factory=SystemSecrets)


class LocalPlace:
    """Starts a session's processes in its workspace. Belongs to the host's loop.

    A policy is built once for each set of grants; its keeper stays warm.
    """

    def __init__(
        self,
        warden: Warden,
        bridge: Bridge,
        bounds: Bounds,
        *,
        workspace: Path,
        tmp: Callable[[], Path] | None = None,
        uploads: Callable[[], Path] | None = None,
        read_only: bool = False,
    ) -> None:
        """`tmp` makes the private folder for temporary files, in a thread; None: in memory.

        `uploads` likewise makes the folder of what people attached. With `read_only` the workspace
        cannot be written, whatever is granted.
        """
        self._warden = warden
        self._bridge = bridge
        self._bounds = bounds
        self._workspace = workspace
        self._tmp = tmp
        self._uploads = uploads
        self._read_only = read_only
        self._policies: dict[Needs, asyncio.Future[dict[str, object]]] = {}

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
        if self._bounds.mode == "off":
            if self._uploads is not None:
                env = {**env, UPLOADS: str(await self._bridge.to_thread(self._uploads))}
            return await self._warden.spawn(
                argv, env=env, cwd=cwd, scope=scope, output=output, stdin=stdin
            )
        policy = await self._policy(granted)
        confined = await self._warden.confinement(policy)
        # The user's own folder is not theirs to see; caches and the like go where they may write.
        own = {**env, "TMPDIR": confined.tmp, "HOME": confined.tmp}
        if confined.uploads:
            own[UPLOADS] = confined.uploads
        return await self._warden.spawn(
            argv, env=own, cwd=cwd, scope=scope, output=output, stdin=stdin, policy=policy
        )

    async def private(self) -> PrivateFolder:
        if self._tmp is None:
            raise NothingSharedError("this place was made without a folder of its own")
        here = await self._bridge.to_thread(self._tmp)
        if self._bounds.mode == "off":
            return PrivateFolder(here, str(here))
        confined = await self._warden.confinement(await self._policy(NO_NEEDS))
        return PrivateFolder(here, confined.tmp)

    async def confinement(self) -> Confinement | None:
        """How far children are confined here; None if that is switched off."""
        if self._bounds.mode == "off":
            return None
        return await self._warden.confinement(await self._policy(NO_NEEDS))

    async def _policy(self, granted: Needs) -> dict[str, object]:
        found = self._policies.get(granted)
        if found is None:
            found = self._policies[granted] = asyncio.get_running_loop().create_future()
            try:
                found.set_result(await self._bridge.to_thread(self._build, granted))
            except BaseException as error:
                del self._policies[granted]
                found.set_exception(error)
                found.exception()  # seen, also if nobody else waits
                raise
        return await asyncio.shield(found)

    def _build(self, granted: Needs) -> dict[str, object]:
        """Looks at the disk, so it runs in a thread."""
        bounds = self._bounds
        return Policy.build(
            self._workspace,
            home=bounds.user_home,
            writable=granted.writes,
            readable=(*bounds.readable, *granted.reads),
            hidden=bounds.hidden,
            tmp=None if self._tmp is None else self._tmp(),
            uploads=None if self._uploads is None else self._uploads(),
            read_only=self._read_only,
            network=granted.network,
            limits=bounds.limits,
            required=bounds.mode == "required",
            owned=bounds.secrets.find(),
        ).wire()
