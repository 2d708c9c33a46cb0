"""Plans the content of a private root from a policy. It is pure: nothing is mounted here.

If one path lies in another, the deeper path decides. So a hidden path is hidden also inside a
granted folder, and a granted path is there also inside a hidden folder.
"""

from __future__ import annotations

import os
from typing import Any

TMP = "/tmp"  # noqa: S108 (the name inside; what is there is private)
UPLOADS = "/run/keryx/uploads"


class UnmountableError(Exception):
    """The root cannot be built as the policy says."""


def requested_paths(policy: Any) -> dict[str, str]:
    """Return what the policy says about each path; `plan` resolves paths inside others."""
    requested = dict.fromkeys(policy["readable"], "read")
    requested.update((path, "write") for path in policy["writable"])
    requested[policy["workspace"]] = "read" if policy["read_only"] else "write"
    if "/" in requested:
        raise UnmountableError("the whole file system cannot be granted; choose a folder in it")
    for path in policy["hidden"]:
        if path == policy["workspace"] or requested.get(path) == "write":
            raise UnmountableError(f"{path!r} must stay hidden; choose another folder")
    if policy["workspace"] != TMP and requested.get(TMP) != "write":
        requested[TMP] = "tmp"
    if policy["uploads"] is not None:
        requested[UPLOADS] = "uploads"
    requested.update((path, "hide") for path in policy["hidden"])
    return requested


def plan(policy: Any) -> dict[str, str]:
    """Return what is mounted at each path, parents first.

    read, write: the folder or file itself. tmp, uploads: the session's own folder. list: a new
    folder with the entries of the old one, each mounted by itself, without the hidden ones.
    hide: an empty cover. pin: the folder itself, as a mount point that cannot be renamed.

    A cover is lost when another program replaces the file below it. So read-only folders with
    hidden paths are listed. Covers are used where new files must appear: in writable folders and
    in the workspace.
    """
    requested = requested_paths(policy)
    planned: dict[str, str] = {}
    for path in sorted(requested):
        kind, (kind_above, grant) = requested[path], enclosing(planned, path)
        if kind == "hide":
            if kind_above in ("", "hide", "tmp"):
                continue  # the path is not visible there
            if kind_above in ("read", "list") and grant != policy["workspace"]:
                planned.update(
                    (folder, "list") for folder in (grant, *folders_between(grant, path))
                )
                continue
            planned.update((folder, "pin") for folder in folders_between(grant, path))
        elif kind == kind_above or (kind_above in ("write", "pin") and kind != "tmp"):
            continue
        planned[path] = kind
    return dict(sorted(planned.items()))


def enclosing(planned: dict[str, str], path: str) -> tuple[str, str]:
    """Return the kind and path of the nearest planned path above; empty if there is none."""
    while path != "/":
        path = os.path.dirname(path)  # noqa: PTH120 (importing pathlib would double the start)
        if path in planned:
            return planned[path], path
    return "", ""


def folders_between(ancestor: str, path: str) -> list[str]:
    """Return the folders between two paths.

    Each becomes a mount point, because mount points cannot be renamed: else a child could rename
    a folder above a hidden path, and the next keeper would not hide the moved path.
    """
    folders: list[str] = []
    path = os.path.dirname(path)  # noqa: PTH120 (same)
    while path != ancestor:
        folders.append(path)
        path = os.path.dirname(path)  # noqa: PTH120 (same)
    return folders
