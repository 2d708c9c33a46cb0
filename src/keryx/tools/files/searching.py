"""`search_files`: runs ripgrep in the session's place; its matches are bounded and sorted.

The tool waits in a thread, because it reads the disk; the process and its output are on the loop.
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
from keryx.ports.tool import Exact
from keryx.ports.tool_context import ToolContext
from keryx.tools.files import safe_open
from keryx.tools.files.file_access import reading_risk
from keryx.tools.files.reading import reads_path
from keryx.tools.files.scripts import searching as script_searching
from keryx.tools.function import tool
from keryx.tools.ripgrep_output import RipgrepOutput

MAX_OUTPUT: Final = 90_000
"""The most bytes of matches: the limit of one result, with room for notes."""
MAX_COLUMNS: Final = 400
"""The most characters that are shown of a line."""

_ERROR_CODE: Final = 2  # ripgrep's exit code after an error, even if there were matches
_NUMBERED_LINE: Final = re.compile(rb"(\d+)([:-])(.*)", re.DOTALL)
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
    limit: Annotated[int, msgspec.Meta(ge=1, le=2_000)] = script_searching.Default.LIMIT,
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
    with safe_open.readable_errors(name):
        is_folder = safe_open.is_folder(target, name)
    root = target if is_folder else target.parent
    _check(pattern, glob, kind)
    if kind == "names":
        options = _names(pattern, literal=literal, ignore_case=ignore_case)
    else:
        options = _contents(pattern, literal=literal, ignore_case=ignore_case, around=around)
    program = find_ripgrep(context.environment.get("PATH", os.defpath))
    options += [*_filters(glob, hidden=hidden), *_hidden_globs(files, root)]
    matches = _new_output(context, limit, kind, around)
    options += [*matches.options, "--", "." if is_folder else f"./{target.name}"]
    context.from_thread(_run, context, [program, *_COMMON, *options], str(root), matches)
    matches.drop_forbidden(lambda path: _may_be_shown(files, root / os.fsdecode(path)))
    return matches.result(lambda path: files.name(root / os.fsdecode(path)), pattern)


def _new_output(
    context: ToolContext, limit: int, kind: str, around: int
) -> _MatchText | script_searching.MatchValues:
    if context.nested:
        return script_searching.MatchValues(limit, names=kind == "names")
    return _MatchText(limit, b"\0" if kind == "names" else b"\n", around)


_COMMON: Final = ("--no-config", "--color=never", "--null", "--no-require-git")


def _check(pattern: str, glob: str | None, kind: str) -> None:
    if "\0" in pattern or "\0" in (glob or ""):
        raise ToolFailedError(
            "a pattern cannot hold a NUL character; write \\x00 to search for one"
        )
    if kind == "names" and glob and not glob.startswith("!"):
        raise ToolFailedError("to search for names, say it all in the pattern, without a glob")


def _contents(pattern: str, *, literal: bool, ignore_case: bool, around: int) -> list[str]:
    options = [f"--regexp={pattern}", "--line-number", "--with-filename", "--no-heading"]
    options += [f"--max-columns={MAX_COLUMNS}", "--max-columns-preview"]
    options += ["--fixed-strings"] if literal else []
    options += ["--ignore-case"] if ignore_case else []
    return [*options, f"--context={around}"] if around else options


def _names(pattern: str, *, literal: bool, ignore_case: bool) -> list[str]:
    if literal or _GLOB.search(pattern) is None:
        pattern = f"{'**/' if '/' in pattern else ''}*{_escaped(pattern)}*"
    if ignore_case and "[" not in pattern:
        pattern = re.sub("[^\\W\\d_]", _either_case, pattern)
    return ["--files", *_matching(pattern)]


def _either_case(letter: re.Match[str]) -> str:
    return f"[{letter[0].lower()}{letter[0].upper()}]"


def _escaped(text: str) -> str:
    """Return a glob that matches exactly this text."""
    return re.sub(r"([*?{}\[\]\\])", r"\\\1", text)


def _filters(glob: str | None, *, hidden: bool) -> list[str]:
    options = _matching(glob) if glob else []
    return [*options, "--hidden", "--no-ignore", "--glob=!.git"] if hidden else options


def _matching(glob: str) -> list[str]:
    """Return options for files that match the glob. A plain `--glob` would include files that git
    ignores; a file type does not, but it matches names without their folders only."""
    if glob.startswith("!") or "/" in glob:
        return [f"--glob={glob}"]
    return [f"--type-add=asked:{glob}", "--type=asked"]


def _hidden_globs(files: Files, root: Path) -> list[str]:
    """Return options that exclude hidden trees. They come last, because the last glob wins."""
    inside = (tree.relative_to(root) for tree in files.hidden if tree.is_relative_to(root))
    return [f"--glob=!/{_escaped(str(tree))}" for tree in inside]


@functools.cache
def _installed() -> str | None:
    """Return the program of the package `ripgrep`, if it is installed."""
    from importlib import metadata  # noqa: PLC0415 (slow to load, and only a search needs it)

    try:
        package_files = metadata.files("ripgrep") or ()
    except metadata.PackageNotFoundError:
        return None
    programs = (Path(str(file.locate())) for file in package_files if file.name == "rg")
    return next((os.path.realpath(file) for file in programs if file.is_file()), None)


def find_ripgrep(search: str) -> str:
    """Return the path of ripgrep; the one that was installed with Keryx comes first."""
    program = _installed() or shutil.which("rg", path=search)
    if program is None:
        raise ToolFailedError(
            "ripgrep is not installed here, so nothing can be searched; the user can install it "
            "with `pip install ripgrep`. Until then use list_files and read_file."
        )
    return program


def _may_be_shown(files: Files, path: Path) -> bool:
    """Return whether the path has no links, and the file is not hidden under another name."""
    try:
        return files.resolve(str(path), write=False) == path
    except ToolFailedError:
        return False


async def _run(
    context: ToolContext,
    argv: Sequence[str],
    cwd: str,
    matches: _MatchText | script_searching.MatchValues,
) -> None:
    process = await context.place.spawn(argv, cwd=cwd, output=matches)
    async with process:
        matches.stop_when_full(process.kill)
        exit_ = await process.wait()
    if exit_.code is None and not matches.full:
        raise ToolFailedError(f"ripgrep was killed by signal {exit_.signal}; search again")
    matches.failed = exit_.code == _ERROR_CODE


class _Line(msgspec.Struct, frozen=True):
    path: bytes
    number: int
    is_match: bool
    """False for a line of context."""
    text: str


class _MatchText(RipgrepOutput):
    """The matches as text for a model."""

    options = ()

    def __init__(self, limit: int, separator: bytes, around: int) -> None:
        # With context, each match has the lines around it and a separator line.
        max_lines = limit * (2 * around + 2) if around else limit
        super().__init__(separator, max_lines, MAX_OUTPUT)
        self._limit = limit
        self._separator = separator
        self._matches: dict[bytes, list[_Line]] = {}

    def drop_forbidden(self, is_allowed: Callable[[bytes], bool]) -> None:
        """Drop files that may not be shown. ripgrep follows no symbolic links, but a link may have
        replaced a folder after the check, and ripgrep does not recognize second names of files."""
        self._matches = {path: lines for path, lines in self._parse().items() if is_allowed(path)}

    def result(self, name: Callable[[bytes], str], pattern: str) -> str:
        """Return all matches as text for a model."""
        errors = self.errors()
        text: list[str] = []
        for path, lines in sorted(self._matches.items()):
            text.append(name(path))
            text += [
                f"  {line.number}{':' if line.is_match else '-'} {line.text}" for line in lines
            ]
        if not text:
            text.append(f"nothing found for {pattern!r}")
        if self.full:
            text.append("[there is more; narrow the pattern, the path or the glob]")
        if errors:
            text.append(f"[not everything could be searched: {errors}]")
        return "\n".join(text)

    def _parse(self) -> dict[bytes, list[_Line]]:
        """Return the lines by file, up to the limit of matches; names have no lines."""
        *records, _ = bytes(self.data).split(self._separator)
        if self._separator == b"\0":
            return {path.removeprefix(b"./"): [] for path in records[: self._limit]}
        lines: dict[bytes, list[_Line]] = {}
        count = 0
        for line in filter(None, map(_parse_line, records)):
            count += line.is_match
            if count > self._limit:
                self.full = True
                break
            lines.setdefault(line.path, []).append(line)
        return lines


def _parse_line(record: bytes) -> _Line | None:
    path, zero, numbered_line = record.partition(b"\0")
    match = _NUMBERED_LINE.match(numbered_line) if zero else None
    if match is None:
        return None
    number, sign, data = match.groups()
    text = data.decode(errors="replace").removesuffix("\r")
    return _Line(path.removeprefix(b"./"), int(number), sign == b":", text)
