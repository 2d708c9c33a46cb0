"""The local place: a session's commands run on this machine, confined by its policy."""

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

SECRETS_REFRESH: Final = 60.0
"""Seconds after which the system's folders are searched again."""

Mode = Literal["on", "required", "off"]
"""on: confine as far as this machine allows. required: fully, or refuse. off: do not confine."""


class SystemSecrets:
    """The paths in the system's folders that only owners may read, refreshed from time to time."""

    def __init__(self) -> None:
        self._paths = OwnersOnly()
        self._refreshed_at = -math.inf

    def owners_only_paths(self) -> OwnersOnly:
        if time.monotonic() - self._refreshed_at > SECRETS_REFRESH:
            self._paths = owners_only()
            self._refreshed_at = time.monotonic()
        return self._paths


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """The confinement settings for the children of every session of a host."""

    mode: Mode = "on"
    user_home: Path = Path("/")
    hidden: tuple[Path, ...] = ()
    """Paths that no child may see, besides the user's secrets: the home of the host."""
    readable: tuple[Path, ...] = ()
    limits: Limits = msgspec.field(default_factory=Limits)
    secrets: SystemSecrets = msgspec.field(default_factory=SystemSecrets)


class LocalPlace:
    """Starts a session's processes in its workspace. Belongs to the host's loop.

    A policy is built once for each set of grants, so that its keeper is used again.
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
        """`tmp` creates the private folder for temporary files, in a thread; None: in memory.

        `uploads` likewise creates the folder of attached files. With `read_only` the workspace
        cannot be written, whatever is granted.
        """
        self._warden = warden
        self._bridge = bridge
        self._bounds = bounds
        self._workspace = workspace
        self._tmp = tmp
        self._uploads = uploads
        self._read_only = read_only
        self._policies: dict[Needs, dict[str, object]] = {}
        self._building: dict[Needs, asyncio.Future[None]] = {}
        """Policies that a task builds now."""

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
        # Children may not see the user's home; caches go to a folder that they may write.
        child_env = {**env, "TMPDIR": confined.tmp, "HOME": confined.tmp}
        if confined.uploads:
            child_env[UPLOADS] = confined.uploads
        return await self._warden.spawn(
            argv, env=child_env, cwd=cwd, scope=scope, output=output, stdin=stdin, policy=policy
        )

    async def private(self) -> PrivateFolder:
        if self._tmp is None:
            raise NothingSharedError("this place has no private folder")
        here = await self._bridge.to_thread(self._tmp)
        if self._bounds.mode == "off":
            return PrivateFolder(here, str(here))
        confined = await self._warden.confinement(await self._policy(NO_NEEDS))
        return PrivateFolder(here, confined.tmp)

    async def confinement(self) -> Confinement | None:
        """Return how far children are confined here; None if confinement is off."""
        if self._bounds.mode == "off":
            return None
        return await self._warden.confinement(await self._policy(NO_NEEDS))

    async def _policy(self, granted: Needs) -> dict[str, object]:
        while (policy := self._policies.get(granted)) is None:
            building = self._building.get(granted)
            if building is None:
                return await self._build_once(granted)
            # If that task fails or is cancelled, it gets the error, and this one tries.
            await asyncio.shield(building)
        return policy

    async def _build_once(self, granted: Needs) -> dict[str, object]:
        building = self._building[granted] = asyncio.get_running_loop().create_future()
        try:
            policy = self._policies[granted] = await self._bridge.to_thread(self._build, granted)
        finally:
            del self._building[granted]
            building.set_result(None)
        return policy

    def _build(self, granted: Needs) -> dict[str, object]:
        """Build the policy. This reads the file system, so it runs in a thread."""
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
            owned=bounds.secrets.owners_only_paths(),
        ).wire()
