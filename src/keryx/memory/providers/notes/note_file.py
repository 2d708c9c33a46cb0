"""One file of notes: read, merged and written so that no edit is lost. Blocking code.

A change is written beside the file and exchanged with it in one step. What was exchanged out is
compared with what had been read: if somebody saved the file in between, it is merged again. A
process that is killed leaves the state of this exchange behind, and the next one goes on. Where the
system cannot exchange files, the file is compared once more and then replaced: an edit in that
moment would be lost there.

Beside `user.md` there are `.user.md.lock`, `.user.md.base` (the record), `.user.md.draft` (content
that may not be whole) and `.user.md.swap` (the other side of the exchange).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from keryx.aio.renames import exchange, rename_to_free
from keryx.memory.providers.notes import names, record
from keryx.memory.providers.notes.merging import Edit
from keryx.memory.providers.notes.planning import Plan, Planner
from keryx.memory.providers.notes.record import Record, digest_of
from keryx.memory.providers.notes.safe_files import (
    BusyFileError,
    locked,
    open_folder,
    read_file,
    remove_file,
    write_file,
)
from keryx.ports.memory import Delivery, ItemRefusedError, Memory

MAX_READ: Final = 1_000_000
"""The longest file that is read. People may write more into it than agents."""
# Nobody saves a file so often within milliseconds, except a program that has gone mad.
MAX_ROUNDS: Final = 20


class NoteState(msgspec.Struct, frozen=True):
    """What a file says now, what people did to it, and an item that did not fit."""

    memories: tuple[Memory, ...] = ()
    pending: tuple[Edit, ...] = ()
    refused: ItemRefusedError | None = None


class NoteFile:
    """The file of one workspace, or the one about the user. Any thread may use it."""

    def __init__(self, root: Path, profile: str, workspace: str, wall: Callable[[], float]) -> None:
        self.name: Final = names.file_name(workspace)
        self._root = root
        self._folder_name = names.folder_of(profile)
        self._planner = Planner(self.name, profile, workspace, wall)
        self._lock, self._record, self._draft, self._swap = (
            f".{self.name}.{part}" for part in ("lock", "base", "draft", "swap")
        )

    @property
    def path(self) -> Path:
        return self._root / self._folder_name / self.name

    def signature(self) -> tuple[int, ...] | None:
        """Return what changes with the file; None: there is no file."""
        try:
            state = self.path.stat(follow_symlinks=False)
        except OSError:
            return None
        return state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns

    def read(self) -> NoteState:
        """Read the file and take in what people did; create nothing."""
        with open_folder(self._root, self._folder_name, create=False) as folder:
            if folder is None or not self._exists(folder):
                return NoteState()
        return self.apply(())

    def apply(self, deliveries: Sequence[Delivery]) -> NoteState:
        """Take in what people did, then apply these items in order."""
        with open_folder(self._root, self._folder_name, create=True) as folder:
            assert folder is not None
            with locked(folder, self._lock):
                state = self._recover(folder, record.load(folder, self._record))
                content = read_file(folder, self.name, MAX_READ, whole=True)
                plan = self._planner.plan(state, content, deliveries)
                state = self._write(folder, plan, content, state)
                return NoteState(state.written, state.pending, plan.refused)

    def settle(self, edits: Sequence[Edit]) -> None:
        """Drop edits that the memory knows now."""
        with open_folder(self._root, self._folder_name, create=True) as folder:
            assert folder is not None
            with locked(folder, self._lock):
                state = record.load(folder, self._record)
                if state is not None:
                    rest = tuple(edit for edit in state.pending if edit not in edits)
                    before = tuple(edit for edit in state.pending_before if edit not in edits)
                    new = msgspec.structs.replace(state, pending=rest, pending_before=before)
                    record.save(folder, self._record, new)

    def _exists(self, folder: int) -> bool:
        present = os.listdir(folder)
        return self.name in present or self._record in present

    # -- the exchange

    def _write(
        self, folder: int, plan: Plan, content: bytes | None, before: Record | None
    ) -> Record:
        if plan.content == content:
            finished = plan.record.finished()
            if finished != before:
                record.save(folder, self._record, finished)
            return finished
        self._prepare(folder, plan)
        return self._exchange(folder, plan.record)

    def _prepare(self, folder: int, plan: Plan) -> None:
        write_file(folder, self._draft, plan.content)
        record.save(folder, self._record, plan.record)
        os.rename(self._draft, self._swap, src_dir_fd=folder, dst_dir_fd=folder)

    def _exchange(self, folder: int, state: Record) -> Record:
        """Put the prepared content in the file's place, however often it changes meanwhile."""
        for _ in range(MAX_ROUNDS):
            plan = self._place(folder, state)
            if plan is None:
                return self._finish(folder, state)
            self._prepare(folder, plan)
            state = plan.record
        raise BusyFileError(f"{self.name} changes all the time; it is tried again later")

    def _place(self, folder: int, state: Record) -> Plan | None:
        """Exchange once; return a new plan if the file had changed."""
        try:
            is_exchanged = exchange(folder, self._swap, self.name)
        except FileNotFoundError:
            return self._place_anew(folder, state)
        if is_exchanged:
            return self._compare(folder, state)
        current = read_file(folder, self.name, MAX_READ, whole=True)
        if current is not None and digest_of(current) != state.seen:
            return self._planner.replan(state, current, None)
        os.replace(self._swap, self.name, src_dir_fd=folder, dst_dir_fd=folder)
        return None

    def _place_anew(self, folder: int, state: Record) -> Plan | None:
        """Put the content where no file is: there was none, or a person deleted it."""
        try:
            rename_to_free(folder, self._swap, self.name)
        except FileExistsError:
            return self._place(folder, state)
        return None

    def _compare(self, folder: int, state: Record) -> Plan | None:
        """Look at what was exchanged out; return a new plan if it is not what had been read."""
        content = read_file(folder, self._swap, MAX_READ, whole=True)
        if content is None or digest_of(content) == state.seen:
            return None
        current = read_file(folder, self.name, MAX_READ, whole=True)
        return self._planner.replan(state, content, current)

    def _finish(self, folder: int, state: Record) -> Record:
        remove_file(folder, self._swap)
        finished = state.finished()
        record.save(folder, self._record, finished)
        return finished

    # -- after a crash, or while another program was writing

    def _recover(self, folder: int, state: Record | None) -> Record | None:
        """Go on with an exchange that was not finished."""
        draft = read_file(folder, self._draft, MAX_READ)
        if draft is not None:
            if state is not None and digest_of(draft) == state.digest:
                os.rename(self._draft, self._swap, src_dir_fd=folder, dst_dir_fd=folder)
            else:
                remove_file(folder, self._draft)
        content = read_file(folder, self._swap, MAX_READ, whole=True)
        if content is None:
            return None if state is None else state.finished()
        if state is None:
            # Nobody knows any more what it was; a person may look into it.
            rename_to_free(folder, self._swap, f"{self.name}.{digest_of(content)[:8]}.old")
            return None
        if digest_of(content) == state.digest:
            return self._exchange(folder, state)
        plan = self._compare(folder, state)
        if plan is None:
            return self._finish(folder, state)
        self._prepare(folder, plan)
        return self._exchange(folder, plan.record)
