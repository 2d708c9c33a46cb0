"""Say what works on this machine, what protects it, and how to get what is missing."""

from __future__ import annotations

import argparse
import importlib.util
import platform
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from keryx import config
from keryx.aio.loops import run_loop
from keryx.app.host.homes.host_address import new_tmp
from keryx.app.memory_hosting.memory_check import check_memory
from keryx.app.models import Models
from keryx.app.named_sets import with_named_sets
from keryx.app.own_tools import TOOLSET, load_now, names_in_use
from keryx.app.runtime import Runtime
from keryx.app.services.places import Places
from keryx.app.tools import Tools
from keryx.cli.main import USAGE
from keryx.cli.optional_parts import install
from keryx.cli.values import folder
from keryx.config import Config, ConfigurationError
from keryx.errors import KeryxError, ModelError
from keryx.sandbox.policy import Limits
from keryx.tools.files.searching import find_ripgrep
from keryx.tools.shell.terminal import find_shell

GOOD, PARTLY, BAD = "✓", "!", "✗"

_PART: Final = re.compile(r"keryx\[(\w+)\]")
"""An optional part, in a text that says what is missing."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    mark: str
    subject: str
    result: str
    hints: tuple[str, ...] = ()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workspace", type=folder, default=".", help="the folder to check")
    parser.add_argument(
        "--install", metavar="NAME", help="install what an optional part needs: web, browser, all"
    )
    parser.add_argument("--yes", action="store_true", help="with --install: do not ask")


def run(options: argparse.Namespace) -> int:
    """Print all checks; exit code 1 if something that is needed is broken."""
    if options.install is not None:
        return install(options.install, home=options.home, is_agreed=options.yes)
    if options.yes:
        print("keryx doctor: --yes belongs to --install NAME", file=sys.stderr)
        return USAGE
    findings = run_loop(_check(options.home, options.workspace))
    for finding in findings:
        print(f"{finding.mark} {finding.subject:<14} {finding.result}")
        for hint in finding.hints:
            print(f"  {'':<14} - {hint}")
    return int(any(finding.mark == BAD for finding in findings))


async def _check(home: str | None, workspace: Path) -> list[Finding]:
    findings = [Finding(GOOD, "python", f"{platform.python_version()} on {platform.platform()}")]
    try:
        loaded = config.load(home)
    except KeryxError as error:
        return [*findings, Finding(BAD, "configuration", str(error))]
    async with Runtime() as runtime:
        findings += await runtime.bridge.to_thread(lambda: list(_on_disk(loaded)))
        findings.append(_model(loaded))
        findings += await _memory(runtime, loaded)
        findings.append(await _confinement(runtime, loaded, workspace))
        findings.append(_limits())
    return findings


def _on_disk(loaded: Config) -> Iterator[Finding]:
    home = loaded.home
    # A home that does not exist yet is created below its nearest existing parent.
    existing = next(folder for folder in (home, *home.parents) if folder.exists())
    ok = _can_write(existing)
    hints = () if ok else ("choose another with KERYX_HOME, or correct its permissions",)
    yield Finding(GOOD if ok else BAD, "home", str(home), hints)
    yield Finding(GOOD, "shell", find_shell().program)
    try:
        yield Finding(GOOD, "search", find_ripgrep("/usr/local/bin:/usr/bin:/bin"))
    except KeryxError as error:
        yield Finding(PARTLY, "search", "no ripgrep", (str(error),))
    yield _tools(loaded)
    fast = importlib.util.find_spec("uvloop") is not None
    yield Finding(GOOD if fast else PARTLY, "event loop", "uvloop" if fast else "asyncio's own")


def _tools(loaded: Config) -> Finding:
    """Return how many tools work here, and what the others need."""
    built_in, needs = Tools.built_in(loaded), Tools.missing(loaded)
    own, faults = load_now(loaded.home, names_in_use(built_in))
    try:
        sets = with_named_sets(built_in.plus(TOOLSET, own), loaded).sets
    except ConfigurationError as error:
        return Finding(BAD, "tools", str(error), faults)
    count = sum(map(len, sets.values()))
    hints = (*map(_with_command, needs), *faults, *loaded.mcp.problems)
    return Finding(
        PARTLY if hints else GOOD, "tools", f"{count} in {', '.join(filter(sets.get, sets))}", hints
    )


def _with_command(need: str) -> str:
    """Add the command that installs the optional part that a text about a missing thing names."""
    parts = ["browser"] if need.startswith("the browser") else _PART.findall(need)
    return "".join([need, *(f" (or: keryx doctor --install {part})" for part in parts)])


def _can_write(folder: Path) -> bool:
    try:
        probe = folder / ".keryx-doctor"
        probe.touch()
        probe.unlink()
    except OSError:
        return False
    return True


def _model(loaded: Config) -> Finding:
    models = Models(loaded)
    try:
        models.check(models.default)
    except ModelError as error:
        return Finding(PARTLY, "model", error.message, (error.hint,))
    return Finding(GOOD, "model", models.default)


async def _memory(runtime: Runtime, loaded: Config) -> list[Finding]:
    """Return what of the memory works; nothing if no provider is configured."""
    if not loaded.memory.providers:
        return []
    try:
        check = await check_memory(runtime, loaded)
    except KeryxError as error:
        return [Finding(BAD, "memory", str(error))]
    mark = BAD if check.is_broken else PARTLY if check.problems else GOOD
    names = "it cannot be used" if check.is_broken else ", ".join(check.usable)
    return [Finding(mark, "memory", names or "no provider works", check.problems)]


async def _confinement(runtime: Runtime, loaded: Config, workspace: Path) -> Finding:
    places = Places(runtime, loaded, loaded.home, new_tmp())
    try:
        confined = await places.of("doctor", workspace, read_only=False).confinement()
    except KeryxError as error:
        return Finding(BAD, "confinement", str(error))
    finally:
        await places.close()
    if confined is None:
        hint = 'commands can do everything that you can; set confinement = "on" in config.toml'
        return Finding(PARTLY, "confinement", "off", (hint,))
    hints = (*(f"a command {gap}" for gap in confined.gaps), *advice_on(confined.gaps))
    mark = {"full": GOOD, "partial": PARTLY}.get(confined.level, BAD)
    return Finding(mark, "confinement", confined.level, hints)


def _limits() -> Finding:
    """Return the limits of commands, and what is not limited."""
    limits = Limits()
    bounded = f"{limits.processes} processes, {(limits.memory or 0) >> 30} GiB of memory"
    hints = (
        "disk space is not limited; give Keryx a disk quota or a disk of its own",
        "files in memory are not counted: /dev/shm up to half of the memory, memfd any amount",
    )
    return Finding(GOOD, "limits", bounded, hints)


_NAMESPACES: Final = (
    "allow user namespaces: kernel.unprivileged_userns_clone=1 on Debian, "
    "kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu; in a container, let it make them"
)
_LANDLOCK: Final = "use a kernel with Landlock (5.13 or later; lsm=...,landlock when it boots)"
_ADVICE: Final = {
    "can read and write all files": f"{_NAMESPACES}; or {_LANDLOCK}",
    "can connect to the sockets": _NAMESPACES,
    "can see the names of files": _NAMESPACES,
    "can empty files": _NAMESPACES,
    "can see other processes": _NAMESPACES,
    "can signal other processes": _NAMESPACES,
    "can look into other processes": f"{_NAMESPACES}; or {_LANDLOCK}",
    "can use the network": _NAMESPACES,
    "can connect to the abstract sockets": _NAMESPACES,
    "can use the System V shared memory": _NAMESPACES,
    "can start processes faster": "run Keryx as an ordinary user, or on a kernel of 6.14 or later",
    "can make programs that run": "let Keryx use seccomp: containers may forbid it",
    "can open sockets of every family": "let Keryx use seccomp: containers may forbid it",
    "can make calls of the kernel": "let Keryx use seccomp: containers may forbid it",
    "can outlive a call": "let Keryx use seccomp: containers may forbid it",
    "can read hidden files of": "work in a folder that holds no secrets of yours",
    "can read files of": "run Keryx as a user of its own, who may not read them either",
    "may know": "remove the second name of that file, or work in another folder",
    "can do all that the user can": "this system has no confinement; use Linux, or a container",
}
"""What to do about a gap, by its first words."""


def advice_on(gaps: Iterable[str]) -> tuple[str, ...]:
    """Return what to do about these gaps, without repetitions."""
    texts = (text for gap in gaps for start, text in _ADVICE.items() if gap.startswith(start))
    return tuple(f"to close this: {text}" for text in dict.fromkeys(texts))
