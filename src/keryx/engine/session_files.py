"""The files of one session: open workspaces, logged changes, and attachments."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from keryx.engine.log.fold import Fold
from keryx.engine.log.log_writer import LogWriter
from keryx.errors import UserMustActError
from keryx.events import FilesChanged
from keryx.messages import File, Image
from keryx.ports.files import Attachments, FileChange, Files
from keryx.ports.store import Blob, Store, blob_hash

StoreBlob = Callable[[bytes], Awaitable[str]]
"""Stores a blob with the session's next commit; returns its hash."""
LogChanges = Callable[[Sequence[FileChange], str | None], Awaitable[None]]
"""Logs file changes of a call, before they are made on the disk."""
OpenWorkspace = Callable[[str, str, StoreBlob, LogChanges], Files]
"""Opens the files of a workspace for a session: session id, workspace. Reads the disk."""


class SessionFiles:
    """Opens workspaces and stores attachments, so that the log knows of every change."""

    def __init__(
        self,
        fold: Fold,
        log: LogWriter,
        store: Store,
        open_workspace: OpenWorkspace | None,
        attachments: Attachments | None,
    ) -> None:
        self._fold = fold
        self._log = log
        self._store = store
        self._open_workspace = open_workspace
        self._attachments = attachments
        self._workspaces: dict[str, Files] = {}

    @property
    def can_open(self) -> bool:
        """Whether the host has files at all."""
        return self._open_workspace is not None

    def open(self, workspace: str) -> Files:
        """Return the files of this workspace. Reads the disk, so call it in a thread."""
        files = self._workspaces.get(workspace)
        if files is None:
            assert self._open_workspace is not None
            log_changes = partial(self._log_changes, workspace)
            opened = self._open_workspace(
                self._fold.session_id, workspace, self._store_blob, log_changes
            )
            # Two threads may open it; the first one wins.
            files = self._workspaces.setdefault(workspace, opened)
        return files

    async def _store_blob(self, data: bytes) -> str:
        blob = Blob(blob_hash(data), data)
        self._log.keep(blob)
        return blob.hash

    async def _log_changes(
        self, workspace: str, changes: Sequence[FileChange], call_id: str | None
    ) -> None:
        """Log file changes. Committed before the files are renamed, so that no change is lost."""
        by_person = call_id is None or call_id in self._fold.person_calls
        turn = None if by_person else self._fold.turn
        for change in changes:
            if change.before is not None:
                await self._store_blob(change.before)
            self._log.record(
                FilesChanged,
                turn_id=None if turn is None else turn.turn_id,
                call_id=call_id,
                path=str(change.path),
                before=change.before_hash,
                after=change.after_hash,
                kept=change.can_be_undone,
                workspace=workspace,
            )
        await self._log.wait_durable()

    async def store_attachments(self, attachments: Sequence[Image | File]) -> None:
        """Store the attachments of a message; `UserMustActError` if one was not uploaded."""
        uploads = self._attachments
        for part in attachments:
            data = None if uploads is None else await uploads.uploaded(part.blob)
            if data is not None:
                await self._store_blob(data)
            elif await self._store.blob(part.blob) is None:
                raise UserMustActError(f"there is no upload {part.blob[:12]}…; upload it again")

    async def prepare_attachments(self, attachments: Sequence[Image | File]) -> None:
        """Make the attachments of the next request available to the model and its tools."""
        if attachments and self._attachments is not None:
            await self._log.wait_durable()
            await self._attachments.prepare(self._fold.session_id, attachments)

    async def load_media(self, parts: Sequence[Image | File]) -> None:
        """Make what calls returned available to the model."""
        if parts and self._attachments is not None:
            await self._log.wait_durable()
            await self._attachments.load(parts)
