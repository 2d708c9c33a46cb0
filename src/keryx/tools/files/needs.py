"""What file calls need beyond the workspace, judged by the paths that they name.

Only by how they are written: the disk is not asked here. A link that leads out of the workspace
is refused when the call looks.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from keryx.messages import Needs
from keryx.ports.tool import Risk
from keryx.tools.files.patch.sections import paths_named


def risk_of_reading(args: Any, workspace: Path) -> Risk:
    outside = _outside([args.path], workspace)
    if not outside:
        return Risk("none", changes=False)
    why = f"reads outside the workspace: {', '.join(outside)}"
    return Risk("low", why, outside, Needs(reads=outside), changes=False)


def risk_of_writing(args: Any, workspace: Path) -> Risk:
    return _writing([args.path], workspace)


def risk_of_patching(args: Any, workspace: Path) -> Risk:
    return _writing(paths_named(args.patch), workspace)


def _writing(paths: Sequence[str], workspace: Path) -> Risk:
    outside = _outside(paths, workspace)
    if not outside:
        return Risk("low", "changes files of the workspace")
    why = f"writes outside the workspace: {', '.join(outside)}"
    return Risk("high", why, outside, Needs(writes=outside))


def _outside(paths: Sequence[str], workspace: Path) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for path in paths:
        plain = os.path.normpath(workspace / path)
        if not Path(plain).is_relative_to(workspace):
            found[plain] = None
    return tuple(found)
