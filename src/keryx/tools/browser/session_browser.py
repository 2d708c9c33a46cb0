"""The browser of one session as the host sees it: a worker process in the session's place.

The worker and Chromium are one process tree under the warden. It ends when the resource is dropped,
when the session is closed and when the host dies. A request that is cancelled gives control back at
once; the worker is told to stop it, and is killed if it does not.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from keryx.aio.capture import Capture
from keryx.aio.group import Group
from keryx.decoding import decode_json
from keryx.errors import KeryxError, ToolFailedError
from keryx.ports.place import Process
from keryx.ports.resources import ResourceContext
from keryx.rpc.framing import frame
from keryx.rpc.incoming_calls import CallError, PeerLostError
from keryx.rpc.pipe_transport import PipeTransport

T = TypeVar("T")

# Seconds. Python, the driver and Chromium take one to three together; a full machine needs more.
START: Final = 60.0
# The worker stops a page at once, or replaces it after some seconds. Nobody waits for that but the
# next call of the session.
SETTLE: Final = 10.0
_STDERR: Final = 4_000
# In the order in which they import each other; the last one is run.
_MODULES: Final = (
    "request_queue",
    "references",
    "downloads",
    "console_log",
    "chromium",
    "page_view",
    "actions",
    "main",
)
_PLAYWRIGHT: Final = "playwright"


class BrowserLostError(ToolFailedError):
    """The browser has ended; `begun` says whether it had begun what it was asked for."""

    def __init__(self, *, begun: bool) -> None:
        super().__init__(
            "the browser has ended: Chromium crashed, was killed, or could not be stopped. "
            "Open the page again with browser_navigate, which starts a new browser"
        )
        self.begun = begun


class BrowserSetup(msgspec.Struct, frozen=True):
    """What a browser is started with."""

    executable: str
    workspace: Path
    network: bool
    """Whether it may use the network."""
    environment: Mapping[str, str]
    tmp: str | None
    """The folder for its profile, as the place sees it; None: the place's own."""
    downloads: str
    """The name of the folder for downloads."""


class WorkerProgram(msgspec.Struct, frozen=True):
    """The worker's code: the text for `python -c`, and its first frame."""

    launcher: str
    modules: dict[str, str]
    path: tuple[str, ...]

    @classmethod
    def read(cls) -> WorkerProgram:
        """Read the files of the worker. Run it in a thread."""
        folder = Path(__file__).with_name("worker")
        sources = {name: (folder / f"{name}.py").read_text(encoding="utf-8") for name in _MODULES}
        launcher = (folder / "launcher.py").read_text(encoding="utf-8")
        return cls(launcher, sources, _playwright_path())

    @property
    def argv(self) -> tuple[str, ...]:
        # Isolated: the workspace and the environment do not decide what the worker imports.
        return (sys.executable, "-I", "-X", "utf8", "-c", self.launcher)

    def first_frame(self, setup: BrowserSetup) -> bytes:
        settings = {
            "executable": setup.executable,
            "downloads": str(setup.workspace / setup.downloads),
            "tmp": setup.tmp,
        }
        return frame(
            msgspec.json.encode({"modules": self.modules, "path": self.path, "settings": settings})
        )


class SessionBrowser:
    """A running browser with one page. Belongs to the host's loop."""

    def __init__(
        self, setup: BrowserSetup, context: ResourceContext, transport: PipeTransport
    ) -> None:
        self.setup: Final = setup
        self._transport = transport
        self._scope = context.scope.child("browser")
        self._group = Group(self._scope, on_error=lambda _name, _error: None)
        self._process: Process | None = None
        self._settling: asyncio.Task[None] | None = None
        self._is_ended = False
        self.begun: Final = asyncio.Event()
        """Set while the worker does a request."""

    @classmethod
    async def start(
        cls, setup: BrowserSetup, program: WorkerProgram, context: ResourceContext
    ) -> SessionBrowser:
        """Start the worker and Chromium; `ToolFailedError` says why that is not possible."""
        stderr = Capture(head=_STDERR // 2, tail=_STDERR // 2)
        browser = cls(setup, context, PipeTransport(context.scope, errors=stderr))
        try:
            async with asyncio.timeout(START):
                await browser._start(program, context)
        except TimeoutError as error:
            await browser.close()
            raise ToolFailedError(
                f"the browser did not start within {START:g} seconds; try again"
            ) from error
        except (CallError, PeerLostError, OSError) as error:
            await browser.close()
            raise ToolFailedError(
                f"the browser did not start: {error}. {_last_lines(stderr.text())}".rstrip(" .")
            ) from error
        except BaseException:
            await browser.close()
            raise
        return browser

    async def _start(self, program: WorkerProgram, context: ResourceContext) -> None:
        environment = dict(self.setup.environment)
        if self.setup.tmp is not None:
            environment["TMPDIR"] = self.setup.tmp
        self._process = await context.spawn(
            program.argv, env=environment, output=self._transport, stdin=True
        )
        await self._process.write(program.first_frame(self.setup))
        self._transport.attach(self._process)
        await self._transport.peer.call("start", b"{}")

    @property
    def is_lost(self) -> bool:
        """Whether it has ended, for whatever reason."""
        return self._is_ended or self._transport.peer.is_lost

    async def settled(self) -> None:
        """Wait until a request that was cancelled has ended in the page, or the browser has."""
        if self._settling is not None:
            await asyncio.wait([self._settling])

    async def request(self, method: str, answer_type: type[T], **params: Any) -> T:
        """Ask the worker for one action."""
        try:
            answer = await self._transport.peer.call(
                method, msgspec.json.encode(params), on_progress=self._begin
            )
        except asyncio.CancelledError:
            self._settle_in_background()
            raise
        except CallError as error:
            raise ToolFailedError(error.message) from error
        except PeerLostError as error:
            raise BrowserLostError(begun=self.begun.is_set()) from error
        finally:
            self.begun.clear()
        try:
            return decode_json(answer, answer_type)
        except msgspec.MsgspecError as error:
            raise ToolFailedError(f"the browser's answer cannot be read: {error}") from error

    def _begin(self, _: bytes) -> None:
        self.begun.set()

    def _settle_in_background(self) -> None:
        if not self.is_lost and not self._scope.is_cancelled:
            self._settling = self._group.start(self._settle(), name="settle the browser")

    async def _settle(self) -> None:
        """Wait for the worker's next answer: the request before it has ended then."""
        try:
            async with asyncio.timeout(SETTLE):
                await self._transport.peer.call("settle", b"{}")
        except (TimeoutError, KeryxError):
            await self._end_process()

    async def close(self) -> None:
        """End the worker, Chromium and all that they started."""
        await self._group.leave()
        await self._end_process()
        await self._transport.end()
        self._scope.close()

    async def _end_process(self) -> None:
        self._is_ended = True
        if self._process is not None:
            await self._process.__aexit__(None, None, None)


def _last_lines(text: str) -> str:
    return " ".join(line.strip() for line in text.splitlines()[-3:])[-500:]


def _playwright_path() -> tuple[str, ...]:
    """Return the folder that playwright is imported from, for a worker that would not find it."""
    spec = find_spec(_PLAYWRIGHT)
    if spec is None or spec.origin is None:
        raise ToolFailedError("the package playwright is missing: pip install 'keryx[browser]'")
    return (str(Path(spec.origin).parent.parent),)
