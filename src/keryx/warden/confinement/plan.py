"""What a private root is to hold, planned from a policy: pure, and nothing is mounted here.

Where paths lie in one another the deeper one decides. So what is hidden is hidden in whatever is
granted above it, and what is granted below a hidden folder is there.
"""

from __future__ import annotations

import os
from typing import Any

TMP = "/tmp"  # noqa: S108 (the name inside; what is there is private)
UPLOADS = "/run/keryx/uploads"


class UnmountableError(Exception):
    """The root cannot be built as the policy says."""


def wishes(policy: Any) -> dict[str, str]:
    """What the policy wants at which path; `plan` says what comes of it."""
    wanted = dict.fromkeys(policy["readable"], "read")
    wanted.update((path, "write") for path in policy["writable"])
    wanted[policy["workspace"]] = "read" if policy["read_only"] else "write"
    if "/" in wanted:
        raise UnmountableError("the whole file system cannot be granted; choose a folder in it")
    for path in policy["hidden"]:
        if path == policy["workspace"] or wanted.get(path) == "write":
            raise UnmountableError(f"{path!r} must stay hidden; choose another folder")
    if policy["workspace"] != TMP and wanted.get(TMP) != "write":
        wanted[TMP] = "tmp"
    if policy["uploads"] is not None:
        wanted[UPLOADS] = "uploads"
    wanted.update((path, "hide") for path in policy["hidden"])
    return wanted


def plan(policy: Any) -> dict[str, str]:
    """What happens at which path, parents first.

    read, write: the folder or file is there. tmp, uploads: the session's own is there. list: the
    folder is there with what was in it, one by one, without what is hidden. hide: something empty
    covers it. pin: it is there, and cannot be renamed.

    A cover lies on what is there, and slips off when another program puts something else in its
    place. So what can only be read is listed. A cover is for where new files must appear: in what
    can be written, and in the workspace.
    """
    wanted = wishes(policy)
    planned: dict[str, str] = {}
    for path in sorted(wanted):
        kind, (above, grant) = wanted[path], enclosing(planned, path)
        if kind == "hide":
            if above in ("", "hide", "tmp"):
                continue  # there is nothing to hide
            if above in ("read", "list") and grant != policy["workspace"]:
                planned.update((folder, "list") for folder in (grant, *between(grant, path)))
                continue
            planned.update((folder, "pin") for folder in between(grant, path))
        elif kind == above or (above in ("write", "pin") and kind != "tmp"):
            continue
        planned[path] = kind
    return dict(sorted(planned.items()))


def enclosing(planned: dict[str, str], path: str) -> tuple[str, str]:
    """The kind of the nearest planned path above, and that path; empty if there is none."""
    while path != "/":
        path = os.path.dirname(path)  # noqa: PTH120 (importing pathlib would double the start)
        if path in planned:
            return planned[path], path
    return "", ""


def between(above: str, path: str) -> list[str]:
    """The folders between two paths.

    Each becomes a mount point of its own, because those cannot be renamed: else a hidden path
    could be moved, by renaming a folder above it, to where the next keeper does not look.
    """
    found: list[str] = []
    path = os.path.dirname(path)  # noqa: PTH120 (same)
    while path != above:
        found.append(path)
        path = os.path.dirname(path)  # noqa: PTH120 (same)
    return found
