"""What a session changed on the disk: shown as a diff, and taken back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from keryx.aio.bridge import Bridge
from keryx.engine.desk import Changing, Keep
from keryx.engine.turns.reverts import logged_changes
from keryx.errors import ToolFailedError, UserMustActError
from keryx.ports.files import FileChange, Files
from keryx.ports.store import Store
from keryx.tools.files.changes import diff, revert
from keryx.tools.files.space import FileSpace


async def open_files(
    bridge: Bridge,
    workspace: str,
    keep: Keep,
    changing: Changing,
    *,
    readable: Sequence[Path] = (),
    hidden: Sequence[Path] = (),
) -> Files:
    """What a session may touch in this workspace."""
    make = partial(
        FileSpace,
        Path(workspace),
        keep=keep,
        changing=changing,
        readable=readable,
        hidden=hidden,
    )
    return await bridge.to_thread(make)


async def revert_files(bridge: Bridge, files: Files, changes: Sequence[FileChange]) -> None:
    """Make the files what they were; `UserMustActError` names what stands in the way."""

    def record(made: Sequence[FileChange]) -> None:
        bridge.from_thread(files.changing, made, None)

    try:
        await bridge.to_thread(revert, files, changes, record)
    except ToolFailedError as error:
        raise UserMustActError(str(error)) from error


async def diff_of(bridge: Bridge, store: Store, session_id: str, workspace: str) -> str:
    """All that the session changed, against what is there now."""
    changes = await logged_changes(store, session_id)
    files = await open_files(bridge, workspace, _nothing, _no_changes)
    return await bridge.to_thread(diff, files, changes)


async def _nothing(data: bytes) -> str:
    raise AssertionError(f"{len(data)} bytes to keep, from one who only looks")


async def _no_changes(changes: Sequence[FileChange], call_id: str | None) -> None:
    raise AssertionError(f"{len(changes)} changes by {call_id}, from one who only looks")
