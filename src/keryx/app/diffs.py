"""What a session changed on the disk: shown as a diff, and taken back."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import ModuleType

from keryx.aio.bridge import Bridge
from keryx.app.tools import hidden_places
from keryx.config import Config
from keryx.engine.operations.reverts import logged_changes
from keryx.engine.session_context import Changing, Keep, Reverting
from keryx.errors import ToolFailedError, UserMustActError
from keryx.ports.files import FileChange, Files
from keryx.ports.store import Store


async def _nothing(data: bytes) -> str:
    raise AssertionError(f"{len(data)} bytes to keep, from one who only looks")


async def _no_changes(changes: Sequence[FileChange], call_id: str | None) -> None:
    raise AssertionError(f"{len(changes)} changes by {call_id}, from one who only looks")


def open_files(
    workspace: str,
    keep: Keep = _nothing,
    changing: Changing = _no_changes,
    *,
    readable: Sequence[Path] = (),
    hidden: Sequence[Path] = (),
    uploads: Path | None = None,
) -> Files:
    """What a session may touch in this workspace. Asks the disk."""
    space = importlib.import_module("keryx.tools.files.file_access")
    made: Files = space.FileAccess(
        Path(workspace),
        keep=keep,
        changing=changing,
        readable=readable,
        hidden=hidden,
        uploads=uploads,
    )
    return made


def read_start(path: Path, name: str, size: int) -> str:
    """The first bytes of a file, by its canonical path; `ToolFailedError` if it is none."""
    disk = importlib.import_module("keryx.tools.files.safe_open")
    with disk.readable_errors(name), disk.open_file(path, name) as file:
        data: bytes = file.read(0, size)
    return data.decode(errors="replace")


async def revert_files(bridge: Bridge, parts: Sequence[Reverting]) -> None:
    """Make the files what they were; `UserMustActError` names what stands in the way."""

    def work() -> None:
        reverts = [_changes().Revert(open_files(), changes) for open_files, changes in parts]
        _changes().check_all(reverts)
        for revert in reverts:
            revert.perform(partial(_record, bridge, revert.files))

    try:
        await bridge.to_thread(work)
    except ToolFailedError as error:
        raise UserMustActError(str(error)) from error


def _record(bridge: Bridge, files: Files, changes: Sequence[FileChange]) -> None:
    bridge.from_thread(files.changing, changes, None)


async def diff_of(bridge: Bridge, store: Store, session_id: str, config: Config) -> str:
    """All that the session changed, against what is there now; what is hidden is not shown."""
    logged = await logged_changes(store, session_id)
    hidden = hidden_places(config)
    workspaces = dict.fromkeys(each.workspace for each in logged)

    def work() -> str:
        return "".join(
            _changes().diff(
                open_files(workspace, hidden=hidden),
                [each.change for each in logged if each.workspace == workspace],
            )
            for workspace in workspaces
        )

    return await bridge.to_thread(work)


def _changes() -> ModuleType:
    """Loaded with the first diff or revert."""
    return importlib.import_module("keryx.tools.files.undo")
