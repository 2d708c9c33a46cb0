"""`patch`: several files changed by one text, all of them or none."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec

from keryx.errors import ToolFailedError
from keryx.ports.effects import NO_EFFECTS, Effects, writes
from keryx.ports.files import Files
from keryx.ports.tool import Complete, Exact, Risk
from keryx.ports.tool_context import ToolContext
from keryx.tools.files import content, safe_open
from keryx.tools.files.edits import (
    Edit,
    FileBefore,
    read_before,
    recorder,
    refuse_stale,
    replace_all,
)
from keryx.tools.files.file_access import writing_risk
from keryx.tools.files.patch.marked import is_marked, read_marked
from keryx.tools.files.patch.matching import apply
from keryx.tools.files.patch.sections import PatchError, Section, paths_named
from keryx.tools.files.patch.unified import is_unified, read_unified
from keryx.tools.function import tool

MAX_REPORT: Final = 20_000
"""The most characters of a report about failures."""


def _effects(args: Any) -> Effects:
    paths = paths_named(args.patch)
    return writes(*paths) if paths else NO_EFFECTS


def _preview(args: Any) -> str:
    return ", ".join(paths_named(args.patch))


def _risk(args: Any, workspace: Path) -> Risk:
    return writing_risk(paths_named(args.patch), workspace)


@tool(effects=_effects, risk=_risk, replay="never", preview=_preview)
def patch(patch: str, context: ToolContext) -> Complete:
    """Change, add, delete or move files with one patch: all of it is done, or nothing.

    Write it like this, or as a unified diff:

    *** Begin Patch
    *** Update File: path/of/file.py
    @@ class Name
     three lines of context above, as they are in the file
    -line to remove
    +line to add
     three lines of context below
    *** Add File: path/of/new.py
    +every line begins with a plus
    *** Delete File: path/of/old.py
    *** End Patch

    `*** Move to: new/path` after an Update line renames the file. An @@ line is needed only if
    the context alone fits in several places. A file that changed since you read it is refused.

    Args:
        patch: The patch.
    """
    plan = _Plan(context.files)
    for section in _sections(patch):
        try:
            plan.add(section)
        except ToolFailedError as error:
            plan.failures.append(str(error))
    if plan.failures:
        report = "\n\n".join(plan.failures)
        raise ToolFailedError(
            f"the patch does not fit, and nothing was done.\n{report[:MAX_REPORT]}"
        )
    edits = plan.edits()
    # The rest is short: it is finished even if a steer arrives.
    context.token.raise_if_cancelled()
    if edits:
        replace_all(context.files, edits, recorder(context))
    text = "\n".join(plan.summary)
    if context.nested:
        return Complete(Exact({"files": [edit.name for edit in edits], "text": text}))
    return Complete(text)


def _sections(text: str) -> list[Section]:
    lines = text.split("\n")
    if all(line.endswith("\r") for line in lines[:-1]):
        text = "\n".join(line.removesuffix("\r") for line in lines)
    try:
        if is_marked(text):
            return read_marked(text)
        if is_unified(text):
            return read_unified(text)
    except PatchError as error:
        raise ToolFailedError(f"{error}. Nothing was done.") from error
    raise ToolFailedError(
        "this is no patch: it has neither `*** Update File: path` nor the `--- path` and "
        "`+++ path` of a unified diff. Nothing was done."
    )


class _PlannedFile(msgspec.Struct):
    """The planned content of one file."""

    name: str
    before: FileBefore | None
    data: bytes | None
    mode: int | None = None


class _Plan(msgspec.Struct):
    """Collects the new content of all files in memory, section by section."""

    files: Files
    failures: list[str] = msgspec.field(default_factory=list[str])
    summary: list[str] = msgspec.field(default_factory=list[str])
    _planned: dict[Path, _PlannedFile] = msgspec.field(default_factory=dict[Path, _PlannedFile])

    def add(self, section: Section) -> None:
        path = self.files.resolve(section.path, write=True)
        file = self._file(path)
        if section.action == "add":
            self._create(file, section)
        elif file.data is None:
            raise ToolFailedError(f"{file.name} does not exist; use `*** Add File:` to make it")
        elif section.action == "delete":
            self._delete(file, path, section)
        else:
            self._update(file, section)

    def edits(self) -> list[Edit]:
        return [
            Edit(path, file.name, file.before, file.data, file.mode)
            for path, file in self._planned.items()
            if file.data != (None if file.before is None else file.before.data)
        ]

    def _file(self, path: Path) -> _PlannedFile:
        file = self._planned.get(path)
        if file is None:
            name = self.files.name(path)
            before = read_before(path, name)
            if before is not None:
                refuse_stale(self.files, path, name, before)
                if before.data is None:
                    raise ToolFailedError(
                        f"{name} has {content.sized(before.size)}, too much to be patched; the "
                        f"limit is {content.sized(safe_open.MAX_WHOLE)}"
                    )
            file = _PlannedFile(name, before, None if before is None else before.data)
            self._planned[path] = file
        return file

    def _create(self, file: _PlannedFile, section: Section) -> None:
        if file.data is not None:
            raise ToolFailedError(f"{file.name} exists already; use `*** Update File:`")
        lines = [line for hunk in section.hunks for line in hunk.new]
        ends_with_newline = not any(hunk.new_lacks_newline for hunk in section.hunks)
        file.data = ("\n".join(lines) + ("\n" if ends_with_newline and lines else "")).encode()
        self.summary.append(f"added {file.name}: {len(lines)} lines")

    def _delete(self, file: _PlannedFile, path: Path, section: Section) -> None:
        if section.hunks:
            self._apply(file, section)
            if file.data:
                raise ToolFailedError(f"{file.name}: the patch deletes it but not all of its lines")
        elif file.data and self.files.last_seen(path) is None:
            raise ToolFailedError(
                f"{file.name}: you have not read it; read it before you delete it"
            )
        file.data = None
        self.summary.append(f"deleted {file.name}")

    def _update(self, file: _PlannedFile, section: Section) -> None:
        if not section.hunks and section.move_to is None:
            raise ToolFailedError(
                f"{file.name}: the patch has no changes for it; add a hunk or `*** Move to:`"
            )
        counts = self._apply(file, section) if section.hunks else ""
        if section.move_to is None:
            self.summary.append(f"changed {file.name}{counts}")
            return
        target = self._file(self.files.resolve(section.move_to, write=True))
        if target.data is not None:
            raise ToolFailedError(f"{target.name} exists already; {file.name} cannot move there")
        target.data, file.data = file.data, None
        target.mode = file.mode if file.before is None else file.before.mode
        self.summary.append(f"moved {file.name} to {target.name}{counts}")

    def _apply(self, file: _PlannedFile, section: Section) -> str:
        assert file.data is not None
        text = content.decode(file.data)
        if text is None:
            raise ToolFailedError(f"{file.name} is not text, it cannot be patched")
        applied = apply(text, section.hunks)
        if applied.failures:
            raise ToolFailedError(
                "\n".join(f"{file.name}, {failure}" for failure in applied.failures)
            )
        file.data = applied.data
        notes = "".join(f"\n  {note}" for note in applied.notes)
        return f": +{applied.added} -{applied.removed}{notes}"
