"""A session's files on a real disk, and its tools run through a real executor."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from keryx.aio.bridge import Bridge
from keryx.aio.clock import RealClock
from keryx.messages import CallOutcome
from keryx.ports.files import FileChange, Files
from keryx.ports.store import blob_hash
from keryx.ports.tool import Tool
from keryx.ports.tool_context import ToolContext
from keryx.tools.files import FileAccess, file_tools
from tests.engine.host import Host
from tests.tools.files.unprivileged import modes_count

Tree = dict[str, tuple[bytes, int, int]]


class Ledger:
    """Keeps blobs and changes, as a session's log does.

    A test can act at that instant: in a thread (`then`), and on the loop at the very end.
    """

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.commits: list[list[FileChange]] = []
        self.then: Callable[[], object] | None = None
        self.at_last: Callable[[], object] | None = None
        self.bridge: Bridge | None = None

    @property
    def changes(self) -> list[FileChange]:
        return [change for commit in self.commits for change in commit]

    async def keep(self, data: bytes) -> str:
        name = blob_hash(data)
        self.blobs[name] = data
        return name

    async def changing(self, changes: Sequence[FileChange], call_id: str | None) -> None:
        self.commits.append(list(changes))
        if self.then is not None:
            assert self.bridge is not None
            await self.bridge.to_thread(self.then)
        if self.at_last is not None:
            self.at_last()


class Unprivileged:
    """A tool to which the modes of files count, also if root runs the tests."""

    def __init__(self, tool: Tool) -> None:
        self._tool = tool

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tool, name)

    def invoke(self, args: Any, context: ToolContext) -> Any:
        with modes_count():
            return self._tool.invoke(args, context)


class FileSession:
    """A workspace, and short ways to use the tools in it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "workspace"
        self.outside = folder / "outside"
        self.root.mkdir()
        self.outside.mkdir()
        self.ledger = Ledger()
        self.files: Files = self.space()

    async def open(self) -> None:
        self.host = Host(self.root, RealClock())
        self.ledger.bridge = self.host.bridge
        self.environment = self.host.environment(
            *(cast(Tool, Unprivileged(tool)) for tool in file_tools())
        )
        self.use(self.files)

    async def grant(self, **trees: Sequence[Path]) -> None:
        """Let the session have other trees than the workspace alone."""
        self.use(await self.host.bridge.to_thread(lambda: self.space(**trees)))

    def use(self, files: Files) -> None:
        self.files = self.environment.files = files

    def space(self, **trees: Any) -> FileAccess:
        ledger = self.ledger
        return FileAccess(self.root, keep=ledger.keep, changing=ledger.changing, **trees)

    async def call(self, tool: str, **arguments: Any) -> CallOutcome:
        (outcome,) = await self.host.run(self.environment, self.host.call(tool, **arguments))
        return outcome

    async def done(self, tool: str, **arguments: Any) -> str:
        """The text of a call that must succeed."""
        outcome = await self.call(tool, **arguments)
        assert outcome.outcome == "completed", outcome.text
        return outcome.text

    async def refused(self, tool: str, **arguments: Any) -> str:
        """The text of a call that must fail and leave everything as it was."""
        before = self.tree()
        outcome = await self.call(tool, **arguments)
        assert outcome.outcome == "failed", outcome.text
        assert self.tree() == before
        return outcome.text

    def put(self, name: str, content: str | bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def text(self, name: str) -> str:
        return (self.root / name).read_bytes().decode()

    def read(self, path: Path) -> str:
        return path.read_text()

    def tree(self) -> Tree:
        """Every regular file's content, time and mode; folders by their names."""
        entries: Tree = {}
        for folder in (self.root, self.outside):
            for path in folder.rglob("*"):
                status = path.lstat()
                is_plain = path.is_file() and not path.is_symlink() and status.st_size < 1 << 30
                readable = is_plain and os.access(path, os.R_OK)
                data = path.read_bytes() if readable else b""
                moment = status.st_mtime_ns if is_plain else 0
                entries[str(path)] = (data, moment, status.st_mode)
        return entries

    async def close(self) -> None:
        await self.host.close()
