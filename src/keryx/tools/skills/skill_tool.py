"""`skill`: gives a model the instructions of a skill, and its files to the session's commands.

The files are copied to where attachments are: commands can read and execute them there, and cannot
change them. The home itself stays hidden.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from keryx.aio.scope import CancellationToken
from keryx.errors import ToolFailedError
from keryx.ports.effects import uses
from keryx.ports.files import UPLOADS
from keryx.ports.tool import Risk, Tool
from keryx.ports.tool_context import ToolContext
from keryx.tools.function import tool
from keryx.tools.skills.catalog import FILE, READ_FLAGS, Skill, read_skills

MOST_FILES: Final = 500
# Bytes of all files of a skill. They are read into memory, and each session gets a copy.
MAX_SIZE: Final = 20_000_000


class SkillFile(msgspec.Struct, frozen=True):
    """One file of a skill, by its path inside the folder."""

    name: str
    data: bytes
    is_executable: bool


OtherSkills = Callable[[], Sequence[tuple[Skill, Sequence[SkillFile]]]]
"""Reads skills from elsewhere, with their files; `ToolFailedError` if they may not be used."""


def skill_tool(folders: Sequence[Path], others: OtherSkills | None = None) -> Tool:
    """Return the tool for the skills of these folders, the first before the next, and others."""

    @tool(effects=uses("skills", writes=False), replay="safe", risk=Risk("none", changes=False))
    def skill(name: str, context: ToolContext) -> Any:
        """Load a skill: instructions for a special task, with files and scripts.

        The system prompt lists the skills. Load one before you begin with a task that fits it.

        Args:
            name: The name of the skill.
        """
        return _load(folders, others, name, context)

    return skill


def _load(
    folders: Sequence[Path], others: OtherSkills | None, name: str, context: ToolContext
) -> Any:
    chosen, files = _find(folders, others, name, context.token)
    target = _copy(chosen, files, context)
    paths = [f"{target}/{file.name}" for file in files if file.name != FILE]
    if context.nested:
        return {
            "name": chosen.name,
            "description": chosen.description,
            "instructions": chosen.body,
            "folder": target,
            "files": paths,
        }
    listing = "\n".join(paths) or "none"
    return (
        f"The skill {chosen.name}. Its folder is {target}; read-only, for commands and read_file. "
        f"Relative paths below are inside it.\nOther files:\n{listing}\n\n{chosen.body}"
    )


def _find(
    folders: Sequence[Path], others: OtherSkills | None, name: str, token: CancellationToken
) -> tuple[Skill, list[SkillFile]]:
    skills, _ = read_skills(*folders)
    for skill in skills:
        if skill.name == name:
            return skill, list(read_files(skill.folder, token))
    for skill, files in () if others is None else others():
        skills.append(skill)
        if skill.name == name:
            return skill, list(files)
    names = ", ".join(skill.name for skill in skills) or "none"
    raise ToolFailedError(f"there is no skill {name!r}; there are: {names}")


def read_files(folder: Path, token: CancellationToken | None = None) -> Iterator[SkillFile]:
    """Read all files below the folder. Links, pipes and hidden names are left out."""
    count = size = 0
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if token is not None:
                token.raise_if_cancelled()
            file = None if name.startswith(".") else _read(Path(root, name), folder)
            if file is None:
                continue
            count, size = count + 1, size + len(file.data)
            if count > MOST_FILES or size > MAX_SIZE:
                raise ToolFailedError(
                    f"the skill has more than {MOST_FILES} files or {MAX_SIZE} bytes; "
                    "a person must make it smaller"
                )
            yield file


def _read(path: Path, folder: Path) -> SkillFile | None:
    try:
        descriptor = os.open(path, READ_FLAGS)
    except OSError:  # a link, or a file that has just been removed
        return None
    with open(descriptor, "rb") as source:  # noqa: PTH123 (an open descriptor, no path)
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            return None
        data = source.read(MAX_SIZE + 1)
    # A name that is not UTF-8 could not be told to a model.
    name = os.fsencode(path.relative_to(folder)).decode(errors="replace")
    return None if "\ufffd" in name else SkillFile(name, data, bool(mode & stat.S_IXUSR))


def _copy(chosen: Skill, files: list[SkillFile], context: ToolContext) -> str:
    """Write the files to the session's folder of attachments; return the path for commands.

    The name contains a hash of the content: a copy is never changed while a command uses it.
    """
    digest = hashlib.sha256()
    for file in files:
        digest.update(
            f"{len(file.name)} {file.name} {len(file.data)} {file.is_executable}".encode()
        )
        digest.update(file.data)
    path = f"${UPLOADS}/skill-{chosen.name}-{digest.hexdigest()[:8]}"
    target = context.files.resolve(path, write=False)
    if target.is_dir():
        return path
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        for file in files:
            context.token.raise_if_cancelled()
            copy = part / file.name
            copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            copy.write_bytes(file.data)
            copy.chmod(0o700 if file.is_executable else 0o600)
        part.rename(target)
    except BaseException as error:
        shutil.rmtree(part, ignore_errors=True)
        if target.is_dir():  # another call was faster
            return path
        if isinstance(error, OSError):
            raise ToolFailedError(f"the skill's files cannot be copied: {error}") from error
        raise
    return path
