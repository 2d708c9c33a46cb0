"""The files that a session changed: shows them as a diff, and reverts them."""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType

from keryx.aio.bridge import Bridge
from keryx.app.tools import hidden_places
from keryx.config import Config
from keryx.engine.operations.reverts import LoggedChange, file_change, logged_changes
from keryx.engine.session_context import WorkspaceRevert
from keryx.engine.session_files import LogChanges, StoreBlob
from keryx.errors import ToolFailedError, UserMustActError
from keryx.events import FilesChanged
from keryx.ports.files import FileChange, Files
from keryx.ports.store import Store

ToThread = Callable[[Callable[[], str]], Awaitable[str]]


async def _refuse_content(data: bytes) -> str:
    raise AssertionError(f"{len(data)} bytes to keep, through files that are opened for reading")


async def _refuse_changes(changes: Sequence[FileChange], call_id: str | None) -> None:
    raise AssertionError(
        f"{len(changes)} changes by {call_id}, through files that are opened for reading"
    )


def open_files(
    workspace: str,
    keep: StoreBlob = _refuse_content,
    changing: LogChanges = _refuse_changes,
    *,
    readable: Sequence[Path] = (),
    hidden: Sequence[Path] = (),
    uploads: Path | None = None,
) -> Files:
    """Return the access of a session to the files of a workspace. Reads the disk."""
    file_access = importlib.import_module("keryx.tools.files.file_access")
    files: Files = file_access.FileAccess(
        Path(workspace),
        keep=keep,
        changing=changing,
        readable=readable,
        hidden=hidden,
        uploads=uploads,
    )
    return files


def read_start(path: Path, name: str, size: int) -> str:
    """Return the start of a file, by its canonical path; `ToolFailedError` if it is not a file."""
    safe_open = importlib.import_module("keryx.tools.files.safe_open")
    with safe_open.readable_errors(name), safe_open.open_file(path, name) as file:
        data: bytes = file.read(0, size)
    return data.decode(errors="replace")


async def revert_files(bridge: Bridge, parts: Sequence[WorkspaceRevert]) -> None:
    """Revert changes of files; `UserMustActError` names the file that prevents it."""

    def work() -> None:
        reverts = [_undo().Revert(open_files(), changes) for open_files, changes in parts]
        _undo().check_all(reverts)
        for revert in reverts:
            revert.perform(partial(_record, bridge, revert.files))

    try:
        await bridge.to_thread(work)
    except ToolFailedError as error:
        raise UserMustActError(str(error)) from error


def _record(bridge: Bridge, files: Files, changes: Sequence[FileChange]) -> None:
    bridge.from_thread(files.changing, changes, None)


async def diff_of(bridge: Bridge, store: Store, session_id: str, config: Config) -> str:
    """Return a diff of the session's changes against the present files, without hidden files."""
    return await _diff(bridge.to_thread, await logged_changes(store, session_id), config)


async def diff_of_changes(
    to_thread: ToThread, store: Store, config: Config, events: Sequence[FilesChanged]
) -> str:
    """Return a diff of a few changes against the present files, without hidden files."""
    logged = [LoggedChange(event.workspace, await file_change(store, event)) for event in events]
    return await _diff(to_thread, logged, config)


async def _diff(to_thread: ToThread, logged: Sequence[LoggedChange], config: Config) -> str:
    hidden = hidden_places(config)
    workspaces = dict.fromkeys(entry.workspace for entry in logged)

    def work() -> str:
        return "".join(
            _undo().diff(
                open_files(workspace, hidden=hidden),
                [entry.change for entry in logged if entry.workspace == workspace],
            )
            for workspace in workspaces
        )

    return await to_thread(work)


def _undo() -> ModuleType:
    """Import the module with the first diff or revert."""
    return importlib.import_module("keryx.tools.files.undo")
