"""The skills of a person and of trusted folders, and those that cannot be used, with the reason.

It uses the disk: call it in a thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from keryx.app.tools import SKILLS
from keryx.app.trust.content import read_content
from keryx.config import Config
from keryx.tools.skills.catalog import read_skills


class SkillEntry(msgspec.Struct, frozen=True):
    name: str
    description: str
    folder: str
    workspace: str | None
    """The trusted folder that brings it along; None: it is in the home."""


class SkillList(msgspec.Struct, frozen=True):
    """`folder` is where a person puts skills of their own."""

    folder: str
    skills: tuple[SkillEntry, ...]
    problems: tuple[str, ...]


def list_skills(config: Config, trusted: Sequence[str]) -> SkillList:
    """Return all skills. `trusted` are the folders that are trusted."""
    folder = config.settings_home / SKILLS
    own, problems = read_skills(folder)
    skills = [SkillEntry(skill.name, skill.description, str(skill.folder), None) for skill in own]
    for workspace in trusted:
        content = read_content(Path(workspace), config.environment)
        if content is not None:
            problems += content.problems
            skills += [
                SkillEntry(skill.name, skill.description, str(skill.folder), workspace)
                for skill, _ in content.skills
            ]
    return SkillList(str(folder), tuple(skills), tuple(problems))
