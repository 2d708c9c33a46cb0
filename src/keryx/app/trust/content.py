"""Reads what a workspace brings along: MCP servers, hooks and skills, and a digest of all of it.

The files may be anything: links, pipes, or as large as a disk. Nothing of them is used here. What
is hashed is what is used: every file is read once.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from keryx.errors import KeryxError, UserMustActError
from keryx.tools.hooks.settings import HookSettings, parse_hooks
from keryx.tools.mcp.settings import LARGEST_FILE, ServerList, decode_servers
from keryx.tools.skills.catalog import FILE, READ_FLAGS, Skill, parse_skill
from keryx.tools.skills.skill_tool import SkillFile, read_files

FOLDER: Final = ".keryx"
SERVERS: Final = ".mcp.json"
HOOKS: Final = f"{FOLDER}/hooks.toml"
SKILLS: Final = f"{FOLDER}/skills"
MOST_SKILLS: Final = 200


class WorkspaceContent(msgspec.Struct, frozen=True):
    """What a workspace brings along."""

    workspace: Path
    digest: str
    """Changes when any of the files does."""
    servers: ServerList = msgspec.field(default_factory=ServerList)
    hooks: tuple[HookSettings, ...] = ()
    skills: tuple[tuple[Skill, tuple[SkillFile, ...]], ...] = ()
    problems: tuple[str, ...] = ()
    """What cannot be used, and what to do."""

    @property
    def summary(self) -> str:
        """Return what there is, in words: `2 MCP servers and 1 hook`."""
        counts = (
            (len(self.servers.servers), "MCP server"),
            (len(self.hooks), "hook"),
            (len(self.skills), "skill"),
        )
        words = [f"{count} {noun}{'s' * (count > 1)}" for count, noun in counts if count]
        if not words:
            return "files that cannot be used"
        return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def has_content(workspace: Path) -> bool:
    """Return whether there may be something to read. Fast: every turn asks this."""
    return os.path.lexists(workspace / SERVERS) or os.path.lexists(workspace / FOLDER)


def read_content(workspace: Path, environment: Mapping[str, str]) -> WorkspaceContent | None:
    """Read everything; None: there is nothing. Blocking; never raises for what the files hold."""
    return _Reader(workspace, environment).read() if has_content(workspace) else None


class _Reader:
    """Reads one workspace."""

    def __init__(self, workspace: Path, environment: Mapping[str, str]) -> None:
        self._workspace, self._environment = workspace, environment
        self._digest = hashlib.sha256()
        self._problems: list[str] = []
        self._has_any = False

    def read(self) -> WorkspaceContent | None:
        servers = self._read_servers()
        hooks, skills = self._read_hooks(), self._read_skills()
        if not self._has_any:
            return None
        return WorkspaceContent(
            self._workspace,
            self._digest.hexdigest(),
            servers,
            hooks,
            skills,
            (*self._problems, *servers.problems),
        )

    def _read_servers(self) -> ServerList:
        data = self._file(SERVERS)
        if data is None:
            return ServerList()
        servers = decode_servers(data, str(self._workspace / SERVERS), self._environment)
        refused = [name for name, server in servers.servers.items() if server.is_unconfined]
        for name in refused:
            self._report(
                SERVERS,
                f"the MCP server {name!r} may not be unconfined; "
                "copy it to the mcp.json of your home to run it so",
            )
        usable = {name: value for name, value in servers.servers.items() if name not in refused}
        return ServerList(usable, servers.problems)

    def _read_hooks(self) -> tuple[HookSettings, ...]:
        data = self._file(HOOKS)
        if data is None:
            return ()
        try:
            content = tomllib.loads(data.decode())
            unknown = [name for name in content if name != "hooks"]
            if unknown:
                raise ValueError(f'unknown setting "{unknown[0]}"; there is only [[hooks]]')  # noqa: TRY301 (all faults end the same)
            return parse_hooks(content.get("hooks", []))
        except (ValueError, RecursionError) as error:
            self._report(HOOKS, f"its hooks are left out: {error}; correct it")
            return ()

    def _read_skills(self) -> tuple[tuple[Skill, tuple[SkillFile, ...]], ...]:
        root = self._workspace / SKILLS
        try:
            if not self._is_folder(FOLDER) or not self._is_folder(SKILLS):
                return ()
            names = sorted(name for name in os.listdir(root) if not name.startswith("."))  # noqa: PTH208 (only names)
        except OSError as error:
            self._report(SKILLS, f"it cannot be read: {error.strerror}; correct it")
            return ()
        if len(names) > MOST_SKILLS:
            self._report(SKILLS, f"it has more than {MOST_SKILLS} skills; remove some")
            return ()
        skills = [self._read_skill(root / name) for name in names]
        return tuple(skill for skill in skills if skill is not None)

    def _read_skill(self, folder: Path) -> tuple[Skill, tuple[SkillFile, ...]] | None:
        name = f"{SKILLS}/{folder.name}"
        try:
            if folder.is_symlink():
                raise UserMustActError("it is a link; replace it by a copy")
            if not folder.is_dir():
                return None
            files = tuple(read_files(folder))
            for file in files:
                self._hash(f"{name}/{file.name} {file.is_executable}", file.data)
            text = next((file.data for file in files if file.name == FILE), None)
            if text is None:
                raise UserMustActError(f"it has no readable {FILE}; write it")
            return parse_skill(folder, text.decode()), files
        except (KeryxError, OSError, UnicodeDecodeError) as error:
            self._report(name, f"the skill is left out: {error}")
            return None

    def _is_folder(self, name: str) -> bool:
        """Return whether this is a real folder. A link is reported: it may lead anywhere."""
        path = self._workspace / name
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            return False
        if stat.S_ISLNK(mode):
            self._report(name, "it is a link; replace it by a folder")
        return stat.S_ISDIR(mode)

    def _file(self, name: str) -> bytes | None:
        """Return the content of one file; None if there is none, or if it cannot be used."""
        path = self._workspace / name
        if name.startswith(FOLDER) and path.parent.is_symlink():
            return None  # the folder itself is reported
        try:
            descriptor = os.open(path, READ_FLAGS)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            reason = "it is a link" if path.is_symlink() else f"{error.strerror}"
            return self._report(name, f"it cannot be read: {reason}; replace it by a file")
        try:
            if fault := _fault_of(os.fstat(descriptor)):
                return self._report(name, fault)
            data = os.read(descriptor, LARGEST_FILE)
        finally:
            os.close(descriptor)
        self._hash(name, data)
        return data

    def _hash(self, name: str, data: bytes) -> None:
        self._has_any = True
        encoded = name.encode(errors="surrogateescape")
        self._digest.update(b"%d %d " % (len(encoded), len(data)))
        self._digest.update(encoded)
        self._digest.update(data)

    def _report(self, name: str, problem: str) -> None:
        """Note what cannot be used. It counts as content: a person should see it."""
        self._hash(f"{name}: {problem}", b"")
        self._problems.append(f"{self._workspace / name}: {problem}")


def _fault_of(status: os.stat_result) -> str:
    """Return why a file with this status is not read; empty if it is."""
    if not stat.S_ISREG(status.st_mode):
        return "it is not a file; replace it by one"
    if status.st_nlink > 1:
        return "it has a second name (a hard link); make a copy of it"
    if status.st_size > LARGEST_FILE:
        return f"it has more than {LARGEST_FILE} bytes; make it smaller"
    return ""
