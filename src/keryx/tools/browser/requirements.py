"""What the browser tools need on this machine: the package playwright, and a Chromium."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Final

# Folders that confined processes can see.
_SYSTEM_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
_PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
_OTHERS: Final = (
    "/opt/google/chrome/chrome",
    "/opt/chromium/chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
# Where `playwright install chromium` puts it, below the user's home.
_CACHES: Final = (".cache/ms-playwright", "Library/Caches/ms-playwright")
_CACHED: Final = "chromium-*/chrome-*/chrome"


def find_chromium(home: Path | None = None, *, confined: bool = True) -> str | None:
    """Return the path of an installed Chromium; None if there is none. Reads the disk.

    Confined processes do not see the user's home, so one that lies there is no use to them.
    """
    for name in _PROGRAMS:
        path = shutil.which(name, path=_SYSTEM_PATH)
        if path is not None:
            return path
    candidates = [Path(path) for path in _OTHERS]
    if home is not None and not confined:
        for cache in _CACHES:
            candidates += sorted((home / cache).glob(_CACHED), reverse=True)
    return next((str(path) for path in candidates if path.is_file()), None)


def missing(home: Path | None = None, *, confined: bool = True) -> str | None:
    """Return what to install before the browser tools can be offered; None: nothing."""
    if find_spec("playwright") is None:
        return "pip install 'keryx[browser]'"
    if find_chromium(home, confined=confined) is None:
        return "install Chromium for all users (on Debian: apt install chromium)"
    return None
