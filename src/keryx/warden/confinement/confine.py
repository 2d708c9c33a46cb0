"""Confinement: puts up all walls that this machine allows, once, and reports the gaps.

A policy is a plain object, as it came over the socket. A wall that cannot be put up is an error:
a keeper serves behind exactly the walls that it reports, or not at all. Which walls this machine
allows is tried out before.

The level is `full` without any gap, `none` without namespaces and Landlock, else `partial`.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from . import gaps, kernel, landlock, limits, namespaces, plan, root, seccomp, watch

__all__ = ["confine", "find_walls", "limits", "namespaces", "report", "root", "seccomp", "watch"]

# The policy's list of walls to leave out, for tests; "landlock 5" means version 5 at most.
WITHOUT = "without"

DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts")


class Report(NamedTuple):
    """How far a keeper is confined, and the paths of its children's own folders."""

    level: str
    gaps: list[str]
    tmp: str
    uploads: str


_namespace_kinds: list[frozenset[str]] = []


def find_walls(policy: Any) -> gaps.Walls:
    """Return the walls that are possible for a policy; namespaces are tried out once."""
    without = policy.get(WITHOUT, ())
    if not _namespace_kinds:
        _namespace_kinds.append(namespaces.find_kinds())
    kinds = _namespace_kinds[0].difference(without)
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
    filters = "seccomp" not in without and seccomp.is_available()
    return gaps.Walls(kinds, abi, most_pids, nproc, filters)


def report(policy: Any, walls: gaps.Walls) -> Report:
    all_gaps = gaps.find_gaps(policy, walls)
    level = "partial" if walls.kinds or walls.landlock else "none"
    tmp = plan.TMP if walls.mounts else policy["tmp"] or plan.TMP
    uploads = plan.UPLOADS if walls.mounts else policy["uploads"] or ""
    return Report(level if all_gaps else "full", all_gaps, tmp, uploads)


def confine(policy: Any, walls: gaps.Walls) -> None:
    """Put the walls up around this process; with `walls.pids` it is an init process already."""
    plan.plan(policy)  # raises for a policy that no wall could enforce
    limits.offer_to_oom_killer()
    kernel.leave_keyring()
    if walls.mounts:
        if not walls.pids:
            namespaces.enter_user_namespace()
        namespaces.enter_others(set(walls.kinds))
        limits.open_all_files()
        root.Root(policy, own_processes=walls.pids, most_pids=walls.most_pids).build()
    # Only now: set earlier, a user namespace would apply it to all processes of the user.
    limits.bound_self(policy["limits"], walls.nproc)
    kernel.drop_privileges()
    if walls.landlock:
        grants = inside_grants(policy) if walls.mounts else outside_grants(policy)
        tcp = bool(policy["network"]) or "net" in walls.kinds
        landlock.restrict(grants, walls.landlock, tcp=tcp)
    kernel.refuse_tracing()
    if walls.seccomp:
        # Either wall limits a debugger to the session's own processes, where it is useful.
        seccomp.restrict(tracing=walls.pids or bool(walls.landlock))


def inside_grants(policy: Any) -> list[tuple[str, int]]:
    """Return the rights in a private root: the mounts' rights again, as a second defence."""
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
    """Return the rights where there is no private root: all files of the machine are there."""
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
            granted += readable_around(path, hidden)
    return granted


def readable_around(path: str, hidden: list[str]) -> list[tuple[str, int]]:
    """Return rights to read a tree without its hidden paths: Landlock rules can only grant."""
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
        granted += readable_around(f"{path.rstrip('/')}/{name}", inside)
    return granted


def is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")
