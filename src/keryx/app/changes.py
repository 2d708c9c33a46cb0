"""What a session changed on the disk: shown as a diff, and taken back."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

from keryx.aio.bridge import Bridge
from keryx.engine.aside.reverts import logged_changes
from keryx.engine.desk import Changing, Keep
from keryx.errors import ToolFailedError, UserMustActError
from keryx.ports.files import FileChange, Files
from keryx.ports.store import Store


def open_files(
    workspace: str,
    keep: Keep,
    changing: Changing,
    *,
    readable: Sequence[Path] = (),
    hidden: Sequence[Path] = (),
    uploads: Path | None = None,
) -> Files:
    """What a session may touch in this workspace. Asks the disk."""
    space = importlib.import_module("keryx.tools.files.space")
    made: Files = space.FileSpace(
        Path(workspace),
        keep=keep,
        changing=changing,
        readable=readable,
        hidden=hidden,
        uploads=uploads,
    )
    return made


async def revert_files(
    bridge: Bridge, opened: Callable[[], Files], changes: Sequence[FileChange]
) -> None:
    """Make the files what they were; `UserMustActError` names what stands in the way."""

    def work() -> None:
        files = opened()

        def record(made: Sequence[FileChange]) -> None:
            bridge.from_thread(files.changing, made, None)

        _changes().revert(files, changes, record)

    try:
        await bridge.to_thread(work)
    except ToolFailedError as error:
        raise UserMustActError(str(error)) from error


async def diff_of(bridge: Bridge, store: Store, session_id: str, workspace: str) -> str:
    """All that the session changed, against what is there now."""
    changes = await logged_changes(store, session_id)
    return await bridge.to_thread(
        lambda: _changes().diff(open_files(workspace, _nothing, _no_changes), changes)
    )


def _changes() -> ModuleType:
    """Loaded with the first diff or revert."""
    return importlib.import_module("keryx.tools.files.changes")


async def _nothing(data: bytes) -> str:
    raise AssertionError(f"{len(data)} bytes to keep, from one who only looks")


async def _no_changes(changes: Sequence[FileChange], call_id: str | None) -> None:
    raise AssertionError(f"{len(changes)} changes by {call_id}, from one who only looks")
