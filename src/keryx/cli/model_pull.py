"""Download a model that runs on this machine, without a key and without a network."""

from __future__ import annotations

import sys

from keryx.aio.loops import run_loop
from keryx.app.runtime import Runtime
from keryx.cli.main import USAGE, unknown
from keryx.config import Config, load
from keryx.config.installers import installer_environment
from keryx.models.embedded.model_file import (
    GET_LIBRARY,
    LIBRARY,
    PROVIDER,
    PULLABLE,
    Pullable,
    library_folder,
)
from keryx.models.embedded.pull import pull

MEGABYTE = 1_000_000
LONGEST_NAME = 40


def run_pull(name: str, home: str | None) -> int:
    pullable = PULLABLE.get(name)
    if pullable is None:
        text = unknown("model", name[:LONGEST_NAME], PULLABLE)
        print(f"keryx models pull: {text}", file=sys.stderr)
        return USAGE
    config = load(home)
    run_loop(_pull(pullable, config))
    if library_folder() is None:
        print(
            f"keryx: it is stored, but to run it the package {LIBRARY} is missing; "
            f"run: {GET_LIBRARY}",
            file=sys.stderr,
        )
    return 0


async def _pull(pullable: Pullable, config: Config) -> None:
    progress = _Progress(pullable.name)
    async with Runtime() as runtime:
        try:
            path = await pull(
                pullable,
                config.home,
                warden=runtime.warden,
                bridge=runtime.bridge,
                env=installer_environment(config.environment),
                report=progress.show,
            )
        finally:
            progress.end()
    print(f"{PROVIDER}:{pullable.name} is ready: {path}")


class _Progress:
    """Shows how far the download is, on one line of a terminal; elsewhere only that it began."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._is_terminal = sys.stderr.isatty()
        self._last = ""

    def show(self, done: int, total: int) -> None:
        text = f"{self._name}: {done / MEGABYTE:.0f} of {total / MEGABYTE:.0f} MB"
        if self._is_terminal and text != self._last:
            print(f"\r{text}", end="", file=sys.stderr, flush=True)
        elif not self._is_terminal and not self._last:
            print(f"{self._name}: {total / MEGABYTE:.0f} MB are downloaded", file=sys.stderr)
        self._last = text

    def end(self) -> None:
        if self._is_terminal and self._last:
            print(file=sys.stderr)
