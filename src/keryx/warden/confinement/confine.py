"""Confinement: puts up all walls that can stand here, once, and says which gaps are left.

A policy is a plain object, as it came over the socket. Whatever a wall needs and does not get is
an error: a keeper serves behind exactly the walls that it reports, or not at all. Which walls
can stand is found out before, by trying.

No gap at all is `full`, neither namespaces nor Landlock is `none`, and all between is `partial`.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from . import gaps, kernel, landlock, limits, namespaces, plan, root, seccomp, watch

__all__ = ["confine", "find_walls", "limits", "namespaces", "report", "root", "seccomp", "watch"]

# Where a policy is tried without a wall, this names what is left out; "landlock 5" is version 5.
WITHOUT = "without"

DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts")


class Report(NamedTuple):
    """How far a keeper is confined, and where its children find their own folders."""

    level: str
    gaps: list[str]
    tmp: str
    uploads: str


_found: list[frozenset[str]] = []


def find_walls(policy: Any) -> gaps.Walls:
    """The walls that can stand for a policy; what the machine allows is tried once."""
    without = policy.get(WITHOUT, ())
    if not _found:
        _found.append(namespaces.find_kinds())
    kinds = _found[0].difference(without)
    if not {"userns", "mounts"}.isdisjoint(without):
        kinds = kinds.difference(namespaces.KINDS)
    abi = 0 if "landlock" in without else landlock.version()
    for name in without:
        if name.startswith("landlock "):
            abi = min(abi, int(name.split()[1]))
    if policy["network"]:
        kinds = kinds.difference({"net"})
    most_pids = limits.most_pids(policy["limits"]) if "pids" in kinds else 0
    nproc = limits.nproc_limit(policy["limits"], own_user_namespace=bool(kinds))
    if "bounds" in without:
        most_pids = nproc = 0
    filters = "seccomp" not in without and seccomp.is_there()
    return gaps.Walls(kinds, abi, most_pids, nproc, filters)


def report(policy: Any, walls: gaps.Walls) -> Report:
    found = gaps.find_gaps(policy, walls)
    level = "partial" if walls.kinds or walls.landlock else "none"
    tmp = plan.TMP if walls.mounts else policy["tmp"] or plan.TMP
    uploads = plan.UPLOADS if walls.mounts else policy["uploads"] or ""
    return Report(level if found else "full", found, tmp, uploads)


def confine(policy: Any, walls: gaps.Walls) -> None:
    """Put the walls up around this process; with `walls.pids` it is an init already."""
    plan.plan(policy)  # refuses what no wall could keep
    limits.offer_to_oom_killer()
    kernel.leave_keyring()
    if walls.mounts:
        if not walls.pids:
            namespaces.enter_user_namespace()
        namespaces.enter_others(set(walls.kinds))
        limits.open_all_files()
        root.Root(policy, own_processes=walls.pids, most_pids=walls.most_pids).build()
    # Only now: a user namespace takes the limit on processes over for all of the user's.
    limits.bound_self(policy["limits"], walls.nproc)
    kernel.drop_privileges()
    if walls.landlock:
        grants = inside_grants(policy) if walls.mounts else outside_grants(policy)
        tcp = bool(policy["network"]) or "net" in walls.kinds
        landlock.restrict(grants, walls.landlock, tcp=tcp)
    kernel.refuse_tracing()
    if walls.seccomp:
        # Both keep a debugger among the children of the session, and there it is of use.
        seccomp.restrict(tracing=walls.pids or bool(walls.landlock))


def inside_grants(policy: Any) -> list[tuple[str, int]]:
    """Rights in a private root: the same once more, should a mount not be what it seems."""
    rights = {
        **dict.fromkeys(("read", "list", "uploads"), landlock.READ),
        **dict.fromkeys(("write", "tmp"), landlock.WRITE),
        "pin": landlock.READ if policy["read_only"] else landlock.WRITE,
    }
    planned = plan.plan(policy).items()
    granted = [(path, rights[kind]) for path, kind in planned if kind in rights]
    device = [("/dev", landlock.DEVICE), ("/dev/shm", landlock.WRITE)]  # noqa: S108 (private)
    return [("/", landlock.LIST), ("/proc", landlock.READ), *device, *granted]


def outside_grants(policy: Any) -> list[tuple[str, int]]:
    """Rights among all files of the machine."""
    hidden = [path for path in policy["hidden"] if os.path.lexists(path)]
    granted = [("/proc", landlock.READ)]
    granted += ((f"/dev/{name}", landlock.DEVICE) for name in DEVICES)
    workspace = () if policy["read_only"] else (policy["workspace"],)
    for path in (*workspace, *policy["writable"], policy["tmp"]):
        if path is None:
            continue
        inside = [name for name in hidden if is_below(name, path)]
        if inside:
            raise plan.UnmountableError(
                f"{path!r} holds {inside[0]!r}, which must stay hidden; that needs namespaces, "
                "which this machine does not allow. Choose another folder, or allow user namespaces"
            )
        granted.append((path, landlock.WRITE))
    for path in (*policy["readable"], policy["workspace"], policy["uploads"]):
        if path is not None:
            granted += around(path, hidden)
    return granted


def around(path: str, hidden: list[str]) -> list[tuple[str, int]]:
    """The right to read a tree but for what is hidden: Landlock can only add."""
    inside = [name for name in hidden if is_below(name, path)]
    if not inside:
        return [(path, landlock.READ)]
    if path in inside:
        return []
    granted = [(path, landlock.LIST)]
    try:
        names = os.listdir(path)  # noqa: PTH208 (importing pathlib would double the start)
    except OSError:
        return granted
    for name in names:
        granted += around(f"{path.rstrip('/')}/{name}", inside)
    return granted


def is_below(path: str, above: str) -> bool:
    return path == above or path.startswith(f"{above.rstrip('/')}/")
