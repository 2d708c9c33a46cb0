"""`write_file`: a whole file at once, atomically, and never over what the session has not seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec

from keryx.errors import ToolFailedError
from keryx.ports.effects import NO_EFFECTS, Effects, writes
from keryx.ports.files import Stamp
from keryx.ports.store import blob_hash
from keryx.ports.tool import Complete, Exact, Risk, ToolContext
from keryx.tools.files.content import decode, line_counts, sized
from keryx.tools.files.edits import Before, Edit, look, recorder, refuse_stale, replace_all
from keryx.tools.files.file_access import writing_risk
from keryx.tools.files.scripts import encoding
from keryx.tools.function import tool

COUNTED: Final = 1024 * 1024
"""Bytes up to which lines are counted and compared."""


def _writes_path(args: Any) -> Effects:
    return NO_EFFECTS if "\0" in args.path else writes(args.path)


def _risk(args: Any, workspace: Path) -> Risk:
    return writing_risk([args.path], workspace)


@tool(effects=_writes_path, risk=_risk, replay="never")
def write_file(
    path: str, content: str, context: ToolContext, *, overwrite: bool = False
) -> Complete:
    """Write a whole text file (UTF-8), new or in place of an old one; makes missing folders.

    A file that exists must have been read with read_file before, and not have changed since. To
    change a part of a file, use patch.

    Args:
        path: The file, relative to the workspace or absolute.
        content: All that the file is to hold.
        overwrite: Replace a file that you have not read.
    """
    files = context.files
    target = files.resolve(path, write=True)
    name = files.name(target)
    last = files.last_seen(target)
    before = look(target, name, last)
    form = _form(before, last) if context.nested else None
    data, used = _encoded(content, form, name)
    hashed = blob_hash(data)
    facts = {"path": name, "size": len(data), "encoding": used, "new": before is None}
    if before is not None:
        refuse_stale(files, target, name, before)
        if files.last_seen(target) is None and before.size and not overwrite:
            raise ToolFailedError(
                f"{name} exists, and you have not read it; read it first, or say overwrite=true. "
                "Nothing was done."
            )
        if before.hash == hashed:
            files.seen(target, msgspec.structs.replace(before.stamp, encoding=form))
            return _result(context, f"{name} holds exactly this already", **facts, changed=False)
    # From here on it is short, and is finished even if a steer comes.
    context.token.raise_if_cancelled()
    record = recorder(context)
    replace_all(files, [Edit(target, name, before, data, after_hash=hashed)], record)
    if context.nested and (now := files.last_seen(target)) is not None:
        files.seen(target, msgspec.structs.replace(now, encoding=form or used))
    return _result(context, _told(name, before, content, len(data)), **facts, changed=True)


def _form(before: Before | None, last: Stamp | None) -> str | None:
    """How a script has read what is there: written back so, it becomes the same bytes again."""
    if before is None or last is None:
        return None
    return last.encoding or encoding.form_of(before.data)


def _encoded(text: str, form: str | None, name: str) -> tuple[bytes, str]:
    """What is to be written, in the encoding of what a script has read there."""
    try:
        return encoding.encoded(text, form)
    except UnicodeEncodeError as error:
        if error.encoding == "utf-8":
            raise ToolFailedError(f"the content cannot be UTF-8: {error}") from error
        raise ToolFailedError(
            f"{name} is {error.encoding} text, and the content cannot be that: {error}; to change "
            "its encoding, write it in the script itself, with open(). Nothing was done."
        ) from error


def _result(context: ToolContext, text: str, **facts: Any) -> Complete:
    """A sentence for a model; facts as well for a script."""
    return Complete(Exact({**facts, "text": text}) if context.nested else text)


def _told(name: str, before: Before | None, text: str, size: int) -> str:
    said = f"{name}: {sized(size)} written"
    if size <= COUNTED:
        lines = text.count("\n") + (not text.endswith("\n") and bool(text))
        said = f"{name}: {lines} line{'' if lines == 1 else 's'}, {sized(size)} written"
    if before is None:
        return f"{said}, new"
    old = None if before.data is None or max(before.size, size) > COUNTED else decode(before.data)
    if old is None:
        return f"{said} over {sized(before.size)}"
    added, removed = line_counts("\n".join(old.lines), text.removesuffix("\n"))
    return f"{said}; lines +{added} -{removed}"
