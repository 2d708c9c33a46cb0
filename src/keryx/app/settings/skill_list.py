"""The skills of a person and of trusted folders, and those that cannot be used, with the reason.

It uses the disk: call it in a thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from keryx.app.skill_folders import SKILLS, skill_folders
from keryx.app.trust.content import read_content
from keryx.config import Config
from keryx.tools.skills.catalog import Skill, read_skills


class SkillEntry(msgspec.Struct, frozen=True):
    name: str
    description: str
    folder: str
    workspace: str | None
    """The trusted folder that brings it along; None: it is in the home."""
    profile: str | None
    """The profile whose own it is; None: all profiles have it."""


class SkillList(msgspec.Struct, frozen=True):
    """`folder` is where a person puts skills of their own."""

    folder: str
    skills: tuple[SkillEntry, ...]
    problems: tuple[str, ...]


def list_skills(config: Config, trusted: Sequence[str]) -> SkillList:
    """Return all skills. `trusted` are the folders that are trusted."""
    folder = config.settings_home / SKILLS
    shared, problems = read_skills(folder)
    skills = [_entry(skill) for skill in shared]
    for profile in sorted(config.profiles):
        own, faults = read_skills(skill_folders(config, profile)[0])
        skills += [_entry(skill, profile=profile) for skill in own]
        problems += faults
    for workspace in trusted:
        content = read_content(Path(workspace), config.environment)
        if content is not None:
            problems += content.problems
            skills += [_entry(skill, workspace=workspace) for skill, _ in content.skills]
    return SkillList(str(folder), tuple(skills), tuple(problems))


def _entry(skill: Skill, *, workspace: str | None = None, profile: str | None = None) -> SkillEntry:
    return SkillEntry(skill.name, skill.description, str(skill.folder), workspace, profile)
