"""`keryx serve` as a person starts it, in a process of its own that can be killed and come back."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from keryx.testing.modelserver import MODEL
from tests.cli.commands import COMMAND, environment

PATIENCE = 30.0
"""Only reached by a test that fails."""


class PageServer:
    """A server over one home, at one port from its first start on."""

    def __init__(
        self,
        folder: Path,
        model_url: str | None,
        *,
        allowed_host: str | None = None,
        words: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """With no address of a model, none is configured. `words` are further flags."""
        self._variables = variables or {}
        self.workspace = folder / "workspace"
        self.url = ""
        self.link = ""
        self.listens = ""
        self._home = folder / "home"
        self._temporary = folder / "tmp"
        self._model_url = model_url
        self._more = (*(() if allowed_host is None else ("--allow-host", allowed_host)), *words)
        self._log = folder / "serve.log"
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self.workspace.mkdir()
        self._temporary.mkdir()

    @property
    def home(self) -> Path:
        return self._home

    @property
    def said(self) -> str:
        """What it printed as errors."""
        return self._log.read_text()

    def configure(self, text: str) -> None:
        """What is to stand in its configuration, before it starts."""
        self._home.mkdir()
        (self._home / "config.toml").write_text(text)

    async def start(self) -> None:
        self._process = self._spawn()
        behind = "--url" in self._more
        urls = [line.split()[-1] for line in await self._lines(3 if behind else 2)]
        self.url, self.link, self.listens = urls[0], urls[1], urls[2 if behind else 0]
        self._port = int(self.listens.rstrip("/").rpartition(":")[2])

    def _spawn(self) -> subprocess.Popen[bytes]:
        env = environment(self._home) | {"TMPDIR": str(self._temporary), **self._variables}
        if self._model_url is not None:
            env |= {
                "OPENAI_BASE_URL": self._model_url,
                "OPENAI_API_KEY": "a-key",
                "KERYX_MODEL": f"openai:{MODEL}",
            }
        words = ["serve", "--port", str(self._port), "--workspace", str(self.workspace)]
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [COMMAND, *words, *self._more], env=env, stdout=subprocess.PIPE, stderr=log
            )

    async def kill(self) -> None:
        """As a crash does it: nothing is told, nothing is saved."""
        await self._end(signal.SIGKILL)

    async def stop(self) -> None:
        """As Ctrl+C does it. Nothing of it is left in the folder for temporary files."""
        if self._process is not None:
            await self._end(signal.SIGTERM)
            assert list(self._temporary.iterdir()) == []

    async def _lines(self, count: int) -> list[str]:
        assert self._process is not None
        assert self._process.stdout is not None
        output = self._process.stdout
        read = b""
        while read.count(b"\n") < count:
            await _readable(output.fileno())
            more = os.read(output.fileno(), 4096)
            assert more, f"keryx serve ended: {self.said}"
            read += more
        return read.decode().splitlines()[:count]

    async def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        assert process is not None
        descriptor = os.pidfd_open(process.pid)
        try:
            process.send_signal(number)
            await _readable(descriptor)
        finally:
            os.close(descriptor)
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


async def _readable(descriptor: int) -> None:
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await asyncio.wait_for(ready.wait(), PATIENCE)
    finally:
        loop.remove_reader(descriptor)
