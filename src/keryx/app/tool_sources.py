"""Loads tools that people wrote from one file, or from the entry points of packages.

Everything here runs in a thread. What cannot be loaded is described, never raised.
"""

from __future__ import annotations

import importlib
import itertools
import os
import stat
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final, cast

import msgspec

from keryx.app.tools import TOOL_PARTS, as_tool
from keryx.errors import InvalidToolError
from keryx.ports.tool import Tool

ENTRY_POINTS: Final = "keryx.tools"
# Bytes. Hand-written code is far smaller; a larger file is something else.
MAX_SIZE: Final = 1_000_000
MAX_ERROR: Final = 400
"""The most characters of an error's text in a warning."""

# Non-blocking: opening a pipe would wait for a writer. No links: what a link names may belong to
# somebody else, and so may the folder that it is in.
_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_module_numbers: Final = itertools.count(1)


class Source(msgspec.Struct, frozen=True):
    """A file or an entry point, with the tools in it, or with the reason why it has none."""

    label: str
    tools: tuple[Tool, ...] = ()
    fault: str = ""
    module: str = ""


def load_file(path: Path) -> tuple[Source]:
    """Execute the file as a module with a name of its own, and return the tools in it."""
    name = f"keryx_own_tools_{next(_module_numbers)}_{path.stem}"
    module = ModuleType(name)
    module.__file__ = str(path)
    try:
        code = compile(_read_source(path), str(path), "exec", dont_inherit=True)
        # Dataclasses and others look for the module of a class by its name.
        sys.modules[name] = module
        exec(code, module.__dict__)  # noqa: S102 (the user wrote this file to be executed)
        return (Source(str(path), tuple(_tools_of(module)), module=name),)
    except BaseException as error:  # noqa: BLE001 (user code may raise anything)
        sys.modules.pop(name, None)
        _raise_interrupt(error)
        return (Source(str(path), fault=_reason(error, str(path))),)


def _read_source(path: Path) -> bytes:
    """Read what was checked: the checks and the reading use the same open file."""
    try:
        file = os.open(path, _FLAGS)
    except OSError as error:
        if path.is_symlink():
            raise InvalidToolError("it is a link; replace it by the file that it names") from error
        raise
    with open(file, "rb") as source:  # noqa: PTH123 (an open descriptor, no path)
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise InvalidToolError("it is not a file")
        if fault := exposure(path, status):
            raise InvalidToolError(fault.removeprefix(f"{path} "))
        if status.st_size > MAX_SIZE:
            raise InvalidToolError(f"it has more than {MAX_SIZE} bytes; divide it")
        return source.read(MAX_SIZE)


def _tools_of(module: ModuleType) -> Iterator[Tool]:
    """Yield what `__all__` names; without `__all__`, every tool that the file itself defines."""
    exported: object = getattr(module, "__all__", None)
    if exported is None:
        values = [
            (name, value)
            for name, value in vars(module).items()
            if not name.startswith("_") and _is_tool_of(module, value)
        ]
    else:
        values = [(name, getattr(module, name)) for name in cast("Iterable[str]", exported)]
    if not values:
        raise InvalidToolError(
            "it has no tools; write @tool above a function, or name functions in __all__"
        )
    for tool in dict.fromkeys(as_tool(name, value) for name, value in values):
        if tool.isolation == "process":
            raise InvalidToolError(
                f'{tool.name!r} has isolation="process", which needs code that another process can '
                'import; use isolation="thread", or install it as a package with an entry point'
            )
        yield tool


def _is_tool_of(module: ModuleType, value: object) -> bool:
    if isinstance(value, type | ModuleType) or not all(hasattr(value, part) for part in TOOL_PARTS):
        return False
    source: object = getattr(value, "__wrapped__", type(value))
    return getattr(source, "__module__", None) == module.__name__


def load_packages() -> tuple[Source, ...]:
    """Load the entry points of the group `keryx.tools`, once for a process."""
    if not _has_entry_points(sys.path):
        return ()
    metadata: Any = importlib.import_module("importlib.metadata")
    points = sorted(metadata.entry_points(group=ENTRY_POINTS), key=lambda point: point.name)
    return tuple(_load_package(point) for point in points)


def _has_entry_points(folders: Sequence[str]) -> bool:
    """Return whether an installed package may have such entry points.

    The library for this takes longer than a host needs to start, and nearly nobody has any.
    """
    group = ENTRY_POINTS.encode()
    for folder in folders:
        try:
            with os.scandir(folder or ".") as entries:
                names = [entry.name for entry in entries]
        except OSError:  # a zip file, or nothing
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info")):
                try:
                    # No `Path`: for a hundred packages it takes longer than the reading.
                    with open(f"{folder}/{name}/entry_points.txt", "rb") as file:  # noqa: PTH123 (see above)
                        text = file.read()
                except OSError:  # most packages have none
                    continue
                if group in text:
                    return True
    return False


def _load_package(point: Any) -> Source:
    distribution = getattr(point.dist, "name", "a package")
    label = f"the entry point {point.name!r} of {distribution}"
    try:
        value: object = point.load()
        values = cast("Sequence[object]", value) if isinstance(value, list | tuple) else (value,)
        return Source(label, tuple(as_tool(point.value, value) for value in values))
    except BaseException as error:  # noqa: BLE001 (code of others may raise anything)
        _raise_interrupt(error)
        return Source(label, fault=_reason(error, ""))


def _raise_interrupt(error: BaseException) -> None:
    """Raise the interrupt of a person at the terminal; only the main thread gets one."""
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and isinstance(error, KeyboardInterrupt):
        raise error


def _reason(error: BaseException, path: str) -> str:
    """Return what an import raised, and in which line of the file."""
    text = " ".join(str(error).split())[:MAX_ERROR]
    if isinstance(error, InvalidToolError):
        return text
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            line = trace.tb_lineno
        trace = trace.tb_next
    place = f" in line {line}" if line else ""
    return f"{type(error).__name__}{place}: {text}" if text else f"{type(error).__name__}{place}"


def exposure(path: Path, status: os.stat_result) -> str:
    """Return why code in this file or folder may be somebody else's; empty: it is the user's."""
    if stat.S_ISLNK(status.st_mode):
        return f"{path} is a link; replace it by what it names"
    if status.st_uid != os.geteuid():
        return f"{path} belongs to another user; make a copy of your own"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"{path} can be changed by other users; run `chmod go-w {path}`"
    return ""
