"""What tests of whole hosts share: a model server, the command line, checks of logs.

Run as `python -m tests.app.hosts ACTION HOME`, it is a host in a process of its own, for tests
that take something away from a whole process, and says each result as one line of JSON. With words
behind it, it is the command `keryx` in such a process.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import IO, Any, Final, TypeVar

from keryx import NO_EFFECTS, Keryx, tool
from keryx import events as ev
from keryx.aio.loops import new_loop, run_loop
from keryx.app import SessionHandle, TurnHandle, TurnResult
from keryx.cli import run, sessions
from keryx.cli.main import main
from keryx.errors import KeryxError
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply, history_of
from keryx.models.servers.providers import ROWS
from keryx.ports.model import Model, ModelRequest
from keryx.testing.modelserver import ModelServer, ReceivedRequest, Reply

PATIENCE: Final = 20.0  # long enough for any machine; only reached by a test that fails
HANG: Final = 5.0  # a child that waits so long for what never comes says so, instead of hanging
KEY: Final = "sk-very-secret-0123456789"
NOBODY: Final = 65534
ROOT: Final = Path(__file__).parent.parent.parent
LOADED: Final = (run, sessions)  # here, because a process without rights may not be able to
LATE: Final = (
    "encodings.utf_8_sig",
    "keryx.app.memory_hosting.memory_check",
    "keryx.cli.doctor",
    "keryx.cli.memory",
    "keryx.memory.providers.notes.provider",
    "keryx.memory.service",
    "keryx.tools.toolsets",
    "tomllib",
)
COMMAND: Final = str(Path(sys.executable).with_name("keryx"))


# -- a model server and a host that asks it


class Answers:
    """Gives the replies that are lined up, each once; then what is to be said always."""

    def __init__(self, *replies: Reply, always: Reply | None = None) -> None:
        self.lined_up = deque(replies)
        self.always = always

    def __call__(self, request: ReceivedRequest) -> Reply:
        if self.lined_up:
            return self.lined_up.popleft()
        assert self.always is not None, "the server was asked more often than the test expects"
        return self.always


def configure(home: Path, url: str, api: str = "chat") -> None:
    home.mkdir(exist_ok=True)
    provider = f'[providers.openai]\nbase_url = "{url}"\napi_key = "{KEY}"\nformat = "{api}"\n'
    (home / "config.toml").write_text(provider)


@asynccontextmanager
async def talking(
    home: Path,
    server: ModelServer,
    model: str | Model = "openai:test-model",
    api: str = "chat",
) -> AsyncGenerator[tuple[Keryx, SessionHandle]]:
    """A host with one session, configured to ask that server."""
    configure(home, server.url if api == "chat" else server.url_of(api), api)
    async with Keryx(model=model, tools=[add], workspace=home, home=home) as app:
        yield app, await app.open()


@tool(effects=NO_EFFECTS)
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@asynccontextmanager
async def closing(events: AsyncIterator[ev.Event]) -> AsyncGenerator[AsyncIterator[ev.Event]]:
    """A stream that is let go of at once, also by who leaves it in the middle."""
    try:
        yield events
    finally:
        assert isinstance(events, AsyncGenerator)
        await events.aclose()


# -- waiting for a turn, never longer than a test may

E = TypeVar("E", bound=ev.Event)


async def result_of(turn: TurnHandle) -> TurnResult:
    async with asyncio.timeout(PATIENCE):
        return await turn.result()


async def cancelled(turn: TurnHandle) -> TurnResult:
    async with asyncio.timeout(PATIENCE):
        result = await turn.cancel()
    assert isinstance(result, TurnResult)
    assert result.outcome == "cancelled"
    return result


async def first(turn: TurnHandle, kind: type[E]) -> E:
    """Wait by event for the turn's first of that kind."""
    async with asyncio.timeout(PATIENCE), closing(turn.events()) as events:
        async for event in events:
            if isinstance(event, kind):
                return event
    raise AssertionError(f"the turn ended without {kind.__name__}")


async def until_shown(turn: TurnHandle, text: str, *, call: bool = False) -> None:
    """Wait by event until so much of the reply has come, with a call's arguments or without."""
    seen, has_call = "", False
    async with asyncio.timeout(PATIENCE), closing(turn.events()) as events:
        async for event in events:
            match event:
                case ev.TextDelta():
                    seen += event.text
                case ev.ArgumentsDelta():
                    has_call = True
                case ev.StepSnapshot():
                    seen, has_call = event.text, bool(event.calls)
                case _:
                    continue
            if seen == text and has_call == call:
                return


# -- logs


def check_log(log: Sequence[ev.LoggedEvent]) -> None:
    """No gap, no duplicate, one end for each turn, and nothing of a turn after its end."""
    assert [event.seq for event in log] == list(range(1, len(log) + 1))
    over: set[str] = set()
    started: set[str] = set()
    for event in log:
        turn_id = None if isinstance(event, ev.TurnUndone) else getattr(event, "turn_id", None)
        assert turn_id not in over, f"{ev.type_of(event)} follows the end of its turn"
        if isinstance(event, ev.TurnStarted):
            assert event.turn_id not in started
            started.add(event.turn_id)
        elif isinstance(event, ev.TurnFinished):
            over.add(event.turn_id)
    assert started <= over, "every turn that started has its end"


# -- the command line, as a person uses it


def _environment(home: Path) -> dict[str, str]:
    env = {**os.environ, "KERYX_HOME": str(home)}
    keys = (variable for row in ROWS.values() for variable in row.keys)
    for name in (*keys, "OPENAI_BASE_URL", "KERYX_MODEL"):
        env.pop(name, None)
    return env


def _command(home: Path, words: Sequence[str], bereft: str | None) -> list[str]:
    if bereft is None:
        return [COMMAND, *words]
    return [sys.executable, "-m", "tests.app.hosts", bereft, str(home), *words]


def keryx(home: Path, *words: str, bereft: str | None = None) -> subprocess.CompletedProcess[str]:
    """The command; `bereft` names what is taken away from its process first."""
    return subprocess.run(
        _command(home, words, bereft),
        capture_output=True,
        text=True,
        check=False,
        env=_environment(home),
        cwd=ROOT,
        timeout=PATIENCE,
    )


async def keryx_beside(home: Path, *words: str, bereft: str | None = None) -> tuple[int, str, str]:
    """The same, while this loop goes on: exit code, stdout, stderr."""
    process = start(home, words, bereft)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        async with asyncio.timeout(PATIENCE):
            out, err = await asyncio.gather(_read(process.stdout), _read(process.stderr))
    except BaseException:
        process.kill()
        raise
    finally:
        process.wait()
    return process.returncode, out, err


def start(home: Path, words: Sequence[str], bereft: str | None = None) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        _command(home, words, bereft),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_environment(home),
        cwd=ROOT,
    )


async def wait_for_output(process: subprocess.Popen[bytes], part: bytes) -> None:
    """Wait until it has written this to stderr, which is closed then."""
    assert process.stderr is not None
    async with _reader(process.stderr) as reader:
        await reader.readuntil(part)


async def _read(pipe: IO[bytes]) -> str:
    async with _reader(pipe) as reader:
        return (await reader.read()).decode()


@asynccontextmanager
async def _reader(pipe: IO[bytes]) -> AsyncGenerator[asyncio.StreamReader]:
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, pipe)
    try:
        yield reader
    finally:
        transport.close()


def one_clear_line(stderr: str) -> str:
    """What a person is told: one line, and no traceback."""
    (line,) = stderr.splitlines()
    assert line.startswith("keryx: ")
    return line


# -- a host in a process of its own


@contextmanager
def open_folder() -> Generator[Path]:
    """A folder that a user without rights can come to, for root may write everywhere."""
    with tempfile.TemporaryDirectory(prefix="home-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        folder.chmod(0o755)


def said_by(action: str, home: Path) -> list[Any]:
    """All that a host in a process of its own says, to its own end."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.app.hosts", action, str(home)],
        capture_output=True,
        check=False,
        cwd=ROOT,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stderr) == (0, b""), done.stderr.decode()
    return [json.loads(line) for line in done.stdout.splitlines()]


def say(value: object) -> None:
    os.write(1, json.dumps(value).encode() + b"\n")


async def say_how(work: Awaitable[Any]) -> None:
    """Say what came of it: a value's name, an error's name and text, or that nothing ever came."""
    try:
        value = await asyncio.wait_for(work, HANG)
    except TimeoutError:
        say(["hangs", ""])
    except KeryxError as error:
        say([type(error).__name__, str(error)])
    else:
        say(["", type(value).__name__])


def let_files_grow(most: int | None) -> None:
    """Files may not grow past a bound, as on a disk that is full; None: as much as before."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard if most is None else most, hard))


def filling(request: ModelRequest) -> ScriptedReply:
    """Asks once for the tool that fills the disk."""
    if len(history_of(request)) == 1:
        return ScriptedReply(text="Let me look.", calls=[ScriptedCall("look")])
    return ScriptedReply(text="I have looked.")


def log_size(home: Path) -> int:
    return (home / "keryx.db-wal").stat().st_size


async def fill_the_disk_in_a_turn(home: Path) -> None:
    """The disk is full when the result of a call is to be written, the first time."""
    looked: list[str] = []

    @tool(effects=NO_EFFECTS, replay="safe")
    async def look() -> str:
        """Look at much."""
        if not looked:
            let_files_grow(log_size(home))
        looked.append("much " * 20_000)
        return looked[-1]

    async with Keryx(model=ScriptedModel(filling), tools=[look], home=home) as app:
        session = await app.open()
        turn = await session.send("Look")
        await say_how(turn.result())
        await say_how(_drained(turn.events()))
        await say_how(_drained(session.events()))
        await say_how(turn.cancel())
        await say_how(session.send("Are you there?"))
        let_files_grow(None)
        log = await app.store.events(session.session_id)
        say([ev.type_of(event) for event in log])
        await say_how(_talk_again(app, session.session_id))


async def _drained(events: AsyncIterator[ev.Event]) -> None:
    async for _ in events:
        pass


async def _talk_again(app: Keryx, session_id: str) -> None:
    session = await app.open(session_id)
    await (await session.send("And now?")).result()


async def fill_the_disk_before_a_send(home: Path) -> None:
    """The disk is full when a message is to be accepted."""
    async with Keryx(model="scripted:demo", home=home) as app:
        session = await app.open()
        await (await session.send("first")).result()
        let_files_grow(log_size(home))
        await say_how(session.send("second", key="second"))
        let_files_grow(None)
        await say_how(_talk_again(app, session.session_id))


async def start_without_space(home: Path) -> None:
    """Nothing at all can be written."""
    let_files_grow(0)
    await say_how(Keryx(model="scripted:demo", home=home).__aenter__())


def without_space() -> None:
    let_files_grow(0)


def with_little_space() -> None:
    """Enough to start, not enough for a long reply."""
    let_files_grow(300_000)


def without_rights() -> None:
    # What is loaded later must be there already: the interpreter may lie in a folder of root's.
    for name in LATE:
        importlib.import_module(name)
    if os.geteuid() == 0:
        os.setuid(NOBODY)


ACTIONS: Final[dict[str, Callable[[Path], Coroutine[Any, Any, None]]]] = {
    action.__name__: action
    for action in (fill_the_disk_in_a_turn, fill_the_disk_before_a_send, start_without_space)
}
BEREFT: Final = {what.__name__: what for what in (without_space, with_little_space, without_rights)}


def _main(action: str, home: str, *words: str) -> int:
    if action in ACTIONS:
        run_loop(ACTIONS[action](Path(home)))
        return 0
    new_loop().close()  # loaded while it may be read
    BEREFT[action]()
    return main(words)


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
