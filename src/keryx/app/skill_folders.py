"""Where the skills of a profile are: in a folder of its own, and in the one of all profiles."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from keryx.config import DEFAULT, Config
from keryx.folder_names import folder_name

SKILLS: Final = "skills"
"""The folder of skills in the home, and in the folder of a profile."""
PROFILES: Final = "profiles"
"""The folder in the home with a folder for each profile."""


def skill_folders(config: Config, profile: str) -> tuple[Path, ...]:
    """Return the folders with the skills of a profile, its own first: it wins over the other."""
    return _folders(config.settings_home, profile if profile in config.profiles else DEFAULT)


@cache  # every turn looks there
def _folders(home: Path, profile: str) -> tuple[Path, ...]:
    return home / PROFILES / folder_name(profile) / SKILLS, home / SKILLS
