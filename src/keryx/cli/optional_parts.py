"""`keryx doctor --install NAME`: installs what an optional part of Keryx needs.

The packages of a part are read from the metadata of the installed Keryx, so an editable checkout
stays as it is. Every command is shown before it runs, and nothing runs as root without saying so.
"""

from __future__ import annotations

import importlib
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from keryx import config
from keryx.aio.loops import run_loop
from keryx.app.runtime import Runtime
from keryx.cli.main import FAILED, USAGE, unknown
from keryx.config import Config, user_home
from keryx.config.installers import installer_environment
from keryx.errors import SpawnError, UserMustActError
from keryx.tools.browser.requirements import find_chromium

PACKAGE: Final = "keryx"
BROWSER: Final = "playwright"
"""The package that needs a Chromium."""
LONGEST_NAME: Final = 40
DONE: Final = 0

# -P: a folder that somebody works in must not provide the program.
_PYTHON: Final = (sys.executable, "-P", "-m")
_REQUIREMENT: Final = re.compile(r"\s*(?P<name>[\w.-]+)\s*(?:\[(?P<extras>[^\]]*)\])?(?P<rest>.*)")
_EXTRA: Final = re.compile(r"""(?:\s+and\s+)?extra\s*==\s*["'](?P<name>[\w.-]+)["']""")


@dataclass(frozen=True, slots=True)
class Step:
    """One command that installs something."""

    argv: tuple[str, ...]
    what: str

    @property
    def shown(self) -> str:
        return shlex.join(self.argv)


@dataclass(frozen=True, slots=True)
class Requirement:
    """A package, as pip takes it."""

    name: str
    text: str
    is_conditional: bool
    """Whether it is needed only on some systems."""


def install(name: str, *, home: str | None, is_agreed: bool) -> int:
    """Install a part after the person agreed; return the exit code of the command."""
    parts = part_names()
    if name not in parts:
        print(
            f"keryx doctor: {unknown('part', name[:LONGEST_NAME], parts)}",
            file=sys.stderr,
        )
        return USAGE
    loaded = config.load(home)
    requirements = requirements_of(name)
    steps, advice = _steps(requirements, loaded)
    _announce(steps)
    if steps and not is_agreed and not _agrees():
        return FAILED
    if not run_loop(_run_all(steps, installer_environment(loaded.environment))):
        return FAILED
    return _report(name, requirements, advice, loaded)


def part_names() -> list[str]:
    """Return the names of all optional parts; `UserMustActError` if Keryx is not a package here."""
    return sorted(_distribution().metadata.get_all("Provides-Extra") or ())


def requirements_of(part: str) -> list[Requirement]:
    """Return the packages that this part needs, also through other parts that it names."""
    requirements: dict[str, Requirement] = {}
    waiting, seen = [part], set[str]()
    while waiting:
        extra = waiting.pop()
        seen.add(extra)
        for text in _distribution().requires or ():
            head, _, marker = text.partition(";")
            match = _REQUIREMENT.fullmatch(head)
            if match is None or extra not in _EXTRA.findall(marker):
                continue
            if match["name"].lower() == PACKAGE:
                others = {other.strip() for other in (match["extras"] or "").split(",")}
                waiting += sorted(others - seen)
                continue
            condition = _EXTRA.sub("", marker).strip()
            whole = f"{head.strip()}; {condition}" if condition else head.strip()
            requirements[whole] = Requirement(match["name"], whole, bool(condition))
    return list(requirements.values())


def _distribution() -> metadata.Distribution:
    try:
        return metadata.distribution(PACKAGE)
    except metadata.PackageNotFoundError as error:
        raise UserMustActError(
            "this Keryx is not installed as a package, so its optional parts are unknown; install "
            "it with: python -m pip install --editable FOLDER"
        ) from error


# -- what to run


def _steps(requirements: Sequence[Requirement], loaded: Config) -> tuple[list[Step], str]:
    """Return the commands to run, and what the person has to do besides."""
    if find_spec("pip") is None:
        raise UserMustActError(_without_pip(requirements))
    pip = (*_PYTHON, "pip", "install", "--no-input", "--disable-pip-version-check")
    packages = tuple(requirement.text for requirement in requirements)
    steps = [Step((*pip, *packages), "Python packages")]
    if not any(requirement.name.lower() == BROWSER for requirement in requirements):
        return steps, ""
    if _has_chromium(loaded):
        return steps, ""
    if loaded.confinement == "off":
        command = (*_PYTHON, "playwright", "install", "chromium")
        return [*steps, Step(command, "Chromium, in your own folder")], ""
    apt = shutil.which("apt-get", path="/usr/bin:/bin")
    if apt is not None and os.geteuid() == 0:
        command = (apt, "install", "--yes", "--no-install-recommends", "chromium")
        return [*steps, Step(command, "Chromium, for all users")], ""
    how = "run: sudo apt-get install chromium" if apt else "use the packages of your system"
    return steps, f"the browser tools need a Chromium that is installed for all users; {how}"


def _has_chromium(loaded: Config) -> bool:
    is_confined = loaded.confinement != "off"
    return find_chromium(user_home(loaded.environment), confined=is_confined) is not None


def _without_pip(requirements: Iterable[Requirement]) -> str:
    packages = shlex.join([requirement.text for requirement in requirements])
    return (
        f"the Python of Keryx ({sys.executable}) has no pip; get it with "
        f"`{sys.executable} -m ensurepip --upgrade` (on Debian: apt install python3-pip), or "
        f"install with uv: uv pip install --python {sys.executable} {packages}"
    )


def _announce(steps: Sequence[Step]) -> None:
    as_root = " as root" if os.geteuid() == 0 else ""
    for step in steps:
        print(f"{step.what}{as_root}:\n  {step.shown}", flush=True)


def _agrees() -> bool:
    if not sys.stdin.isatty():
        print(
            "keryx doctor: nothing was installed: there is no terminal to ask at; "
            "run the commands yourself, or pass --yes",
            file=sys.stderr,
        )
        return False
    try:
        answer = input("Run this? [y/N] ")
    except EOFError:
        answer = ""
    if answer.strip().lower() in ("y", "yes"):
        return True
    print("nothing was installed", file=sys.stderr)
    return False


# -- running it


class _Screen:
    """Passes the output of a command on as it comes."""

    def feed(self, stream: str, data: bytes) -> None:
        target = sys.stderr if stream == "stderr" else sys.stdout
        target.flush()
        target.buffer.write(data)
        target.buffer.flush()


async def _run_all(steps: Iterable[Step], environment: Mapping[str, str]) -> bool:
    """Run the commands one after another; return whether all of them succeeded."""
    async with Runtime() as runtime:
        folder = await runtime.bridge.to_thread(Path.cwd)
        for step in steps:
            try:
                process = await runtime.warden.spawn(
                    step.argv, env=environment, cwd=str(folder), output=_Screen()
                )
            except SpawnError as error:
                print(f"keryx doctor: {step.argv[0]} cannot be started: {error}", file=sys.stderr)
                return False
            async with process:
                ended = await process.wait()
            if ended.code != DONE:
                how = (
                    f"exit code {ended.code}" if ended.signal is None else f"signal {ended.signal}"
                )
                print(
                    f"keryx doctor: this command ended with {how}: {step.shown}; "
                    "its output says why",
                    file=sys.stderr,
                )
                return False
    return True


def _report(name: str, requirements: Sequence[Requirement], advice: str, loaded: Config) -> int:
    """Check what is installed now, and say it; return the exit code."""
    importlib.invalidate_caches()
    missing = [
        requirement.text
        for requirement in requirements
        if not requirement.is_conditional and not _is_installed(requirement.name)
    ]
    if missing:
        print(f"keryx doctor: still missing: {', '.join(missing)}", file=sys.stderr)
        return FAILED
    needs_chromium = any(requirement.name.lower() == BROWSER for requirement in requirements)
    if needs_chromium and not _has_chromium(loaded):
        advice = advice or "no Chromium was found after the installation; see `keryx doctor`"
        print(f"keryx doctor: {advice}", file=sys.stderr)
        return FAILED
    print(f"{name} is installed; a running `keryx serve` uses it after a restart")
    return DONE


def _is_installed(package: str) -> bool:
    try:
        metadata.distribution(package)
    except metadata.PackageNotFoundError:
        return False
    return True
