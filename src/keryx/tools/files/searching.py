"""`search_files`: ripgrep, run in the session's place, its findings bounded and put in order.

The tool waits in a thread, for it asks the disk; the process and its output live on the loop.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from keryx.errors import ToolFailedError
from keryx.ports.files import Files
from keryx.ports.tool import Exact, ToolContext
from keryx.tools.files import safe_open
from keryx.tools.files.file_access import reading_risk
from keryx.tools.files.reading import reads_path
from keryx.tools.files.scripts import searching as script_searching
from keryx.tools.function import tool

SHOWN: Final = 90_000
"""Bytes of findings that are taken at most: what one result may hold, with room for notes."""
COLUMNS: Final = 400
"""Characters of a line that are shown; the rest of a longer one is left out."""
ERRORS: Final = 4_000
"""Bytes of ripgrep's complaints that are kept."""

_SOME_ERROR: Final = 2  # ripgrep's exit code if something went wrong, whatever else it found
_FOUND: Final = re.compile(rb"(\d+)([:-])(.*)", re.DOTALL)
_GLOB: Final = re.compile(r"[*?\[{]")


@tool(effects=reads_path, risk=reading_risk, replay="safe")
def search_files(
    pattern: str,
    context: ToolContext,
    path: str = ".",
    kind: Literal["contents", "names"] = "contents",
    glob: str | None = None,
    *,
    ignore_case: bool = False,
    literal: bool = False,
    hidden: bool = False,
    around: Annotated[int, msgspec.Meta(ge=0, le=20)] = 0,
    limit: Annotated[int, msgspec.Meta(ge=1, le=2_000)] = script_searching.Unsaid.LIMIT,
) -> str | Exact:
    """Search for lines by a regular expression, or for files by name. Skips what git ignores.

    Args:
        pattern: For contents a regular expression (ripgrep's, without look-around); for names a
            glob such as *.py or src/**/test_*, or a part of the name.
        path: The folder or file to search in, relative to the workspace or absolute.
        kind: What to search: the contents of files, or their names.
        glob: For contents, only files like this, such as *.py; !*.py for all others.
        ignore_case: Take upper and lower case as the same.
        literal: Take the pattern as plain text, not as an expression.
        hidden: Also search hidden and ignored files.
        around: How many lines before and after each found line to show.
        limit: How many findings to show at most.
    """
    files = context.files
    target = files.resolve(path, write=False)
    name = files.name(target)
    with safe_open.telling(name):
        is_folder = safe_open.is_folder(target, name)
    root = target if is_folder else target.parent
    _check(pattern, glob, kind)
    if kind == "names":
        asked = _names(pattern, literal=literal, ignore_case=ignore_case)
    else:
        asked = _contents(pattern, literal=literal, ignore_case=ignore_case, around=around)
    program = find_ripgrep(context.environment.get("PATH", os.defpath))
    argv = [program, *_COMMON, *asked, *_filters(glob, hidden=hidden), *_kept_out(files, root)]
    findings = _findings(context, limit, kind, around)
    argv += [*findings.options, "--", "." if is_folder else f"./{target.name}"]
    context.from_thread(_run, context, argv, str(root), findings)
    findings.keep(lambda found: _may_be_shown(files, root / os.fsdecode(found)))
    return findings.told(lambda found: files.name(root / os.fsdecode(found)), pattern)


def _findings(
    context: ToolContext, limit: int, kind: str, around: int
) -> _Findings | script_searching.Findings:
    if context.nested:
        return script_searching.Findings(limit, names=kind == "names")
    return _Findings(limit, b"\0" if kind == "names" else b"\n", around)


_COMMON: Final = ("--no-config", "--color=never", "--null", "--no-require-git")


def _check(pattern: str, glob: str | None, kind: str) -> None:
    if "\0" in pattern or "\0" in (glob or ""):
        raise ToolFailedError(
            "a pattern cannot hold a NUL character; write \\x00 to search for one"
        )
    if kind == "names" and glob and not glob.startswith("!"):
        raise ToolFailedError("to search for names, say it all in the pattern, without a glob")


def _contents(pattern: str, *, literal: bool, ignore_case: bool, around: int) -> list[str]:
    asked = [f"--regexp={pattern}", "--line-number", "--with-filename", "--no-heading"]
    asked += [f"--max-columns={COLUMNS}", "--max-columns-preview"]
    asked += ["--fixed-strings"] if literal else []
    asked += ["--ignore-case"] if ignore_case else []
    return [*asked, f"--context={around}"] if around else asked


def _names(pattern: str, *, literal: bool, ignore_case: bool) -> list[str]:
    if literal or _GLOB.search(pattern) is None:
        pattern = f"{'**/' if '/' in pattern else ''}*{_escaped(pattern)}*"
    if ignore_case and "[" not in pattern:
        pattern = re.sub("[^\\W\\d_]", _either_case, pattern)
    return ["--files", *_only(pattern)]


def _either_case(letter: re.Match[str]) -> str:
    return f"[{letter[0].lower()}{letter[0].upper()}]"


def _escaped(text: str) -> str:
    """As a glob that means just this text."""
    return re.sub(r"([*?{}\[\]\\])", r"\\\1", text)


def _filters(glob: str | None, *, hidden: bool) -> list[str]:
    asked = _only(glob) if glob else []
    return [*asked, "--hidden", "--no-ignore", "--glob=!.git"] if hidden else asked


def _only(glob: str) -> list[str]:
    """Only files like this. A plain `--glob` would bring back what git ignores; a type does not,
    but it sees names without their folders."""
    if glob.startswith("!") or "/" in glob:
        return [f"--glob={glob}"]
    return [f"--type-add=asked:{glob}", "--type=asked"]


def _kept_out(files: Files, root: Path) -> list[str]:
    """Hidden trees below the folder, said last, for the last word counts."""
    inside = (tree.relative_to(root) for tree in files.hidden if tree.is_relative_to(root))
    return [f"--glob=!/{_escaped(str(tree))}" for tree in inside]


@functools.cache
def _installed() -> str | None:
    """The program that came with the package `ripgrep`."""
    from importlib import metadata  # noqa: PLC0415 (slow to load, and only a search asks for it)

    try:
        listed = metadata.files("ripgrep") or ()
    except metadata.PackageNotFoundError:
        return None
    found = (Path(str(file.locate())) for file in listed if file.name == "rg")
    return next((os.path.realpath(file) for file in found if file.is_file()), None)


def find_ripgrep(search: str) -> str:
    """Where ripgrep is; the one that came with Keryx first."""
    found = _installed() or shutil.which("rg", path=search)
    if found is None:
        raise ToolFailedError(
            "ripgrep is not installed here, so nothing can be searched; the user can install it "
            "with `pip install ripgrep`. Until then use list_files and read_file."
        )
    return found


def _may_be_shown(files: Files, path: Path) -> bool:
    """Whether a file is where its path says, and is none that is hidden under another name."""
    try:
        return files.resolve(str(path), write=False) == path
    except ToolFailedError:
        return False


async def _run(
    context: ToolContext,
    argv: Sequence[str],
    cwd: str,
    findings: _Findings | script_searching.Findings,
) -> None:
    process = await context.place.spawn(argv, cwd=cwd, output=findings)
    async with process:
        findings.stop_when_full(process.kill)
        ended = await process.wait()
    if ended.code is None and not findings.full:
        raise ToolFailedError(f"ripgrep was killed by signal {ended.signal}; search again")
    findings.failed = ended.code == _SOME_ERROR


class _Line(msgspec.Struct, frozen=True):
    path: bytes
    number: int
    found: bool
    text: str


class _Findings:
    """Takes what ripgrep prints until there is enough of it."""

    options = ()

    def __init__(self, limit: int, separator: bytes, around: int) -> None:
        self._limit = limit
        self._separator = separator
        # A finding comes with the lines around it and a line between.
        self._most = limit * (2 * around + 2) if around else limit
        self._data = bytearray()
        self._errors = bytearray()
        self._counted = 0
        self._found: dict[bytes, list[_Line]] = {}
        self._stop: Callable[[], None] | None = None
        self.full = False
        self.failed = False

    def stop_when_full(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        if self.full:
            stop()

    def feed(self, stream: str, data: bytes) -> None:
        if stream == "stderr":
            self._errors += data[: ERRORS - len(self._errors)]
            return
        if self.full:
            return
        self._data += data
        self._counted += data.count(self._separator)
        # One more than the limit tells that there are more.
        if self._counted > self._most or len(self._data) > SHOWN:
            self.full = True
            del self._data[SHOWN:]
            if self._stop is not None:
                self._stop()

    def keep(self, is_there: Callable[[bytes], bool]) -> None:
        """Drop what may not be shown. ripgrep follows no link that it sees, but one may have been
        swapped in after the path was checked; and it knows nothing of second names."""
        self._found = {path: lines for path, lines in self._parsed().items() if is_there(path)}

    def told(self, name: Callable[[bytes], str], pattern: str) -> str:
        """All findings, for a model to read."""
        errors = self._errors.decode(errors="replace").strip()
        if self.failed and not self._data:
            raise ToolFailedError(f"ripgrep could not search: {errors}")
        told: list[str] = []
        for path, lines in sorted(self._found.items()):
            told.append(name(path))
            told += [f"  {line.number}{':' if line.found else '-'} {line.text}" for line in lines]
        if not told:
            told.append(f"nothing found for {pattern!r}")
        if self.full:
            told.append("[there is more; narrow the pattern, the path or the glob]")
        if errors:
            told.append(f"[not everything could be searched: {errors}]")
        return "\n".join(told)

    def _parsed(self) -> dict[bytes, list[_Line]]:
        """The findings by file, as many as were asked for; names have no lines."""
        *whole, _ = bytes(self._data).split(self._separator)
        if self._separator == b"\0":
            return {path.removeprefix(b"./"): [] for path in whole[: self._limit]}
        found: dict[bytes, list[_Line]] = {}
        count = 0
        for line in filter(None, map(_parsed, whole)):
            count += line.found
            if count > self._limit:
                self.full = True
                break
            found.setdefault(line.path, []).append(line)
        return found


def _parsed(raw: bytes) -> _Line | None:
    path, zero, rest = raw.partition(b"\0")
    match = _FOUND.match(rest) if zero else None
    if match is None:
        return None
    number, sign, text = match.groups()
    shown = text.decode(errors="replace").removesuffix("\r")
    return _Line(path.removeprefix(b"./"), int(number), sign == b":", shown)
