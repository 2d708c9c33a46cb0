"""`write_file`: replaces a whole file atomically, and only one that the session has read."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec

from keryx.errors import ToolFailedError
from keryx.ports.effects import NO_EFFECTS, Effects, writes
from keryx.ports.files import Stamp
from keryx.ports.store import blob_hash
from keryx.ports.tool import Complete, Exact, Risk
from keryx.ports.tool_context import ToolContext
from keryx.tools.files.content import decode, line_counts, sized
from keryx.tools.files.edits import (
    Edit,
    FileBefore,
    read_before,
    recorder,
    refuse_stale,
    replace_all,
)
from keryx.tools.files.file_access import writing_risk
from keryx.tools.files.scripts import encoding
from keryx.tools.function import tool

MAX_COMPARED: Final = 1024 * 1024
"""The largest file, in bytes, whose lines are counted and compared."""


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
    last_stamp = files.last_seen(target)
    before = read_before(target, name, last_stamp)
    form = _form_read(before, last_stamp) if context.nested else None
    data, encoding_name = _encoded(content, form, name)
    new_hash = blob_hash(data)
    fields = {"path": name, "size": len(data), "encoding": encoding_name, "new": before is None}
    if before is not None:
        refuse_stale(files, target, name, before)
        if files.last_seen(target) is None and before.size and not overwrite:
            raise ToolFailedError(
                f"{name} exists, and you have not read it; read it first, or say overwrite=true. "
                "Nothing was done."
            )
        if before.hash == new_hash:
            files.seen(target, msgspec.structs.replace(before.stamp, encoding=form))
            return _result(context, f"{name} holds exactly this already", **fields, changed=False)
    # The rest is short: it is finished even if a steer arrives.
    context.token.raise_if_cancelled()
    record = recorder(context)
    replace_all(files, [Edit(target, name, before, data, after_hash=new_hash)], record)
    if context.nested and (stamp := files.last_seen(target)) is not None:
        files.seen(target, msgspec.structs.replace(stamp, encoding=form or encoding_name))
    return _result(context, _summary(name, before, content, len(data)), **fields, changed=True)


def _form_read(before: FileBefore | None, last_stamp: Stamp | None) -> str | None:
    """Return the form in which a script has read the file; in it the text gives the same bytes."""
    if before is None or last_stamp is None:
        return None
    return last_stamp.encoding or encoding.form_of(before.data)


def _encoded(text: str, form: str | None, name: str) -> tuple[bytes, str]:
    """Return the new bytes, in the encoding of the file that a script has read."""
    try:
        return encoding.encoded(text, form)
    except UnicodeEncodeError as error:
        if error.encoding == "utf-8":
            raise ToolFailedError(f"the content cannot be UTF-8: {error}") from error
        raise ToolFailedError(
            f"{name} is {error.encoding} text, and the content cannot be that: {error}; to change "
            "its encoding, write it in the script itself, with open(). Nothing was done."
        ) from error


def _result(context: ToolContext, text: str, **fields: Any) -> Complete:
    """Return a sentence for a model; for a script also the fields."""
    return Complete(Exact({**fields, "text": text}) if context.nested else text)


def _summary(name: str, before: FileBefore | None, text: str, size: int) -> str:
    summary = f"{name}: {sized(size)} written"
    if size <= MAX_COMPARED:
        lines = text.count("\n") + (not text.endswith("\n") and bool(text))
        summary = f"{name}: {lines} line{'' if lines == 1 else 's'}, {sized(size)} written"
    if before is None:
        return f"{summary}, new"
    old = (
        None
        if before.data is None or max(before.size, size) > MAX_COMPARED
        else decode(before.data)
    )
    if old is None:
        return f"{summary} over {sized(before.size)}"
    added, removed = line_counts("\n".join(old.lines), text.removesuffix("\n"))
    return f"{summary}; lines +{added} -{removed}"
