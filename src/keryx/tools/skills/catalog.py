"""Which skills there are: reads folders of skills, and writes the list for a model."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from keryx.errors import UserMustActError
from keryx.tools.skills.front_matter import read_front_matter

FILE: Final = "SKILL.md"
# Bytes. Instructions have some pages; a larger file is something else.
MAX_SIZE: Final = 200_000
# Characters of all names and descriptions: the model gets them in every request.
MAX_LIST: Final = 20_000
MAX_DESCRIPTION: Final = 1024
_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_LONGEST_NAME: Final = 64
# Non-blocking: opening a pipe would wait for a writer. A link may lead to a secret.
READ_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_HEADING: Final = (
    "Skills are instructions for special tasks. When a task fits a description, call the tool "
    "`skill` with its name first, and follow what it returns:"
)


class Skill(msgspec.Struct, frozen=True):
    """One skill: a folder with `SKILL.md`."""

    folder: Path
    name: str
    description: str
    body: str


def read_skills(*folders: Path) -> tuple[list[Skill], list[str]]:
    """Return the skills of these folders, and a warning for each that cannot be used.

    Of several skills of one name, that of the first folder counts. Reads the disk.
    """
    skills: dict[str, Skill] = {}
    warnings: list[str] = []
    for folder in folders:
        of_folder, faults = _read_folder(folder)
        skills = {skill.name: skill for skill in of_folder} | skills
        warnings += faults
    return sorted(skills.values(), key=lambda skill: skill.name), warnings


def _read_folder(folder: Path) -> tuple[list[Skill], list[str]]:
    skills: list[Skill] = []
    warnings: list[str] = []
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if not entry.name.startswith("."))
    except FileNotFoundError:
        return [], []
    except OSError as error:
        return [], [f"{folder} cannot be read: {error.strerror}; the turn runs without its skills"]
    for name in names:
        path = folder / name
        try:
            if path.is_dir():
                skills.append(read_skill(path))
        except (UserMustActError, OSError) as error:
            warnings.append(f"{path / FILE}: {error}; the skill is left out")
    return skills, warnings


def read_skill(folder: Path) -> Skill:
    """Read one skill; `UserMustActError` says what to correct."""
    if folder.is_symlink():
        raise UserMustActError("the folder is a link; replace it by a copy of what it names")
    return parse_skill(folder, _decoded(_read_bytes(folder / FILE)))


def parse_skill(folder: Path, text: str) -> Skill:
    """Return the skill with this text; `UserMustActError` says what to correct."""
    fields, body = read_front_matter(text)
    name, description = fields.get("name"), fields.get("description")
    if not name or not description:
        raise UserMustActError(
            "the front matter needs `name: ...` and `description: ...`; add them"
        )
    if _NAME.fullmatch(name) is None or len(name) > _LONGEST_NAME:
        raise UserMustActError(
            f"the name {name[:80]!r} has other characters than a-z, 0-9 and single dashes, or more "
            f"than {_LONGEST_NAME}; rename it"
        )
    if name != folder.name:
        raise UserMustActError(f"the name {name!r} is not that of its folder; rename one of them")
    if len(description) > MAX_DESCRIPTION:
        raise UserMustActError(
            f"the description has more than {MAX_DESCRIPTION} characters; shorten it"
        )
    return Skill(folder, name, " ".join(description.split()), body)


def _read_bytes(path: Path) -> bytes:
    try:
        file = os.open(path, READ_FLAGS)
    except FileNotFoundError:
        raise UserMustActError("there is no such file; write it, or remove the folder") from None
    except OSError as error:
        raise UserMustActError(f"it cannot be opened: {error.strerror}; correct it") from error
    with open(file, "rb") as source:  # noqa: PTH123 (an open descriptor, no path)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise UserMustActError("it is not a file; replace it")
        data = source.read(MAX_SIZE + 1)
    if len(data) > MAX_SIZE:
        raise UserMustActError(f"it has more than {MAX_SIZE} bytes; move parts to other files")
    return data


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise UserMustActError("it is not UTF-8; save it as UTF-8") from error


def list_for_model(skills: Sequence[Skill]) -> tuple[str, list[str]]:
    """Return the part of the prompt that lists the skills, and a warning if they are too many."""
    lines: list[str] = []
    size = 0
    for skill in skills:
        line = f"- {skill.name}: {skill.description}"
        size += len(line)
        if size > MAX_LIST:
            left_out = len(skills) - len(lines)
            warning = (
                f"{left_out} skills from {skill.name!r} on are not in the prompt, because all "
                f"descriptions together have more than {MAX_LIST} characters; shorten some"
            )
            return "\n".join([_HEADING, *lines]), [warning]
        lines.append(line)
    return "\n".join([_HEADING, *lines]) if lines else "", []
