"""Checks the toolsets of the configuration, as far as that is possible without the tools."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from keryx.config.schema import FRONT_ENDS, ConfigurationError, ProfileConfig

SET_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def check_sets(
    sets: Mapping[str, tuple[str, ...]], profiles: Mapping[str, ProfileConfig], path: Path
) -> Mapping[str, tuple[str, ...]]:
    """Return the sets if all names can be used; `ConfigurationError` names one that cannot."""
    for name, profile in profiles.items():
        for front_end in profile.toolsets:
            if front_end not in FRONT_ENDS:
                place = f" in [profiles.{name}.toolsets]"
                problem = unknown_name("front end", front_end, FRONT_ENDS, place)
                raise ConfigurationError(f"{path}: {problem}")
    for name in sets:
        if name in FRONT_ENDS:
            raise ConfigurationError(
                f"{path}: [toolsets] names sets of tools, and {name!r} is a front end; write what "
                f"it gives to new sessions in [profiles.default.toolsets]"
            )
        if SET_NAME.fullmatch(name) is None:
            raise ConfigurationError(
                f"{path}: the name {name!r} in [toolsets] cannot be used; choose up to 64 letters, "
                "digits, `_` and `-`"
            )
    if cycle := _cycle(sets):
        raise ConfigurationError(
            f"{path}: a toolset in [toolsets] contains itself: {' > '.join(cycle)}; "
            "remove one of these names"
        )
    return sets


def _cycle(sets: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Return a chain of sets that ends where it began; empty if there is none."""
    finished: set[str] = set()
    for start in sets:
        path, members = [start], [iter(sets[start])]
        while path:
            name = next(members[-1], None)
            if name is None:
                finished.add(path.pop())
                members.pop()
            elif name in path:
                return [*path[path.index(name) :], name]
            elif name in sets and name not in finished:
                path.append(name)
                members.append(iter(sets[name]))
    return []


def unknown_name(kind: str, name: str, names: Sequence[str], place: str) -> str:
    """Return an error text for a name that does not exist, with the nearest one that does."""
    import difflib  # noqa: PLC0415 (only a wrong name needs it)

    close = difflib.get_close_matches(name, names, n=1)
    advice = f'did you mean "{close[0]}"?' if close else f"there are {', '.join(names)}"
    return f'unknown {kind} "{name}"{place}; {advice}'
