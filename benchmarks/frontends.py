"""What the terminal and the gateway add: the first prompt, a long reply, an update, a stop.

The chat runs in a pseudo-terminal of its own. The gateway is the real command; it talks to the Bot
API server of the tests, which runs here, as the model server does.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import select
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.cli.commands import COMMAND, environment, model_server
from tests.gateway.bot_api import BotApi
from tests.gateway.chat_home import configure, last_text

from keryx.testing.modelserver import Call, ModelServer, ReceivedRequest, Reply

FIRST_PROMPT_LIMIT: Final = 0.35
REPLY_LIMIT: Final = 2.0
UPDATE_LIMIT: Final = 0.010
STOP_LIMIT: Final = 0.300
ROUNDS: Final = 9
UPDATES: Final = 60
TOKENS: Final = 10_000
PERSON: Final = 7
PATIENCE: Final = 60.0
WORK: Final = "{ echo works; exec sleep 100; } > fifo"
PROMPT: Final = b">\x1b[0m"
CONNECTED: Final = b"/help"
"""Stands below the prompt once the chat has a host. What is typed before is kept."""


class Chat:
    """`keryx chat` in a pseudo-terminal."""

    def __init__(self, home: Path, *words: str) -> None:
        self.started = time.perf_counter()
        self._home = home
        pid, self._terminal = pty.fork()
        if pid == 0:
            env = environment(home) | {"TERM": "xterm-256color", "LANG": "C.UTF-8"}
            os.execve(COMMAND, [COMMAND, *words], env)
        self.pid = pid
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))

    def wait(self, shown: bytes) -> float:
        """Read until it shows that; return how long that was after the start."""
        text = b""
        while shown not in text:
            ready, _, _ = select.select([self._terminal], [], [], PATIENCE)
            if not ready:
                raise TimeoutError(f"{shown!r} is not in {text!r}")
            text += os.read(self._terminal, 65536)
        return time.perf_counter() - self.started

    def type(self, text: bytes) -> None:
        os.write(self._terminal, text)

    def cpu_seconds(self) -> float:
        """The CPU time of its process so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        os.kill(self.pid, signal.SIGTERM)
        while True:
            try:
                if not os.read(self._terminal, 65536):
                    break
            except OSError:  # the other end is closed
                break
        os.waitpid(self.pid, 0)
        os.close(self._terminal)


def prose(tokens: int) -> str:
    """Markdown of that many tokens: paragraphs with emphasis, and now and then a list or code."""
    words = [f"word{number % 97}" if number % 11 else "**bold**" for number in range(tokens)]
    paragraphs: list[str] = []
    for at in range(0, tokens, 100):
        line = " ".join(words[at : at + 100])
        paragraphs.append(f"- {line}" if at % 700 == 0 else line)
    return "\n\n".join(paragraphs) + "\n\nThe end."


def measure_first_prompt(folder: Path) -> None:
    home = folder / "first"
    with model_server(home, {"text": "Hello."}):
        times: list[float] = []
        connected: list[float] = []
        for _ in range(ROUNDS + 1):
            chat = Chat(home, "chat")
            times.append(chat.wait(PROMPT))
            connected.append(chat.wait(CONNECTED))
            chat.close()
    bare: list[float] = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", ""], check=True)
        bare.append(time.perf_counter() - started)
    # The first one reads the files of the program from the disk.
    say("keryx chat to the first prompt", statistics.median(times[1:]), FIRST_PROMPT_LIMIT, "s")
    print(
        f"  bare python {statistics.median(bare):.3f} s; slowest {max(times[1:]):.3f} s; "
        f"with a host after {statistics.median(connected[1:]):.3f} s"
    )


def measure_reply(folder: Path) -> None:
    long, short = prose(TOKENS), "Short. The end."
    chunk = len(long) // TOKENS + 1

    def chat_cpu(text: str) -> float:
        home = folder / "reply"
        with model_server(home, {"text": text, "chunk": chunk, "pace": 0.0005}):
            chat = Chat(home, "chat")
            chat.wait(CONNECTED)
            chat.type(b"Tell me.\r")
            chat.wait(b"The end.")
            seconds = chat.cpu_seconds()
            chat.close()
        return seconds

    def run_cpu(text: str) -> float:
        """`keryx run` prints the reply as it comes, into a file."""
        home = folder / "reply"
        with (
            model_server(home, {"text": text, "chunk": chunk, "pace": 0.0005}),
            (folder / "printed").open("w") as printed,
        ):
            process = subprocess.Popen(
                [COMMAND, "run", "Tell me."], env=environment(home), stdout=printed
            )
            _, _, used = os.wait4(process.pid, 0)
        return used.ru_utime + used.ru_stime

    def extra(measure: Callable[[str], float]) -> float:
        return statistics.median(measure(long) - measure(short) for _ in range(5))

    shown, printed = extra(chat_cpu), extra(run_cpu)
    ratio = shown / printed
    verdict = "met" if ratio <= REPLY_LIMIT else "MISSED"
    print(
        f"a reply of {TOKENS:,} tokens: shown {shown:.2f} s CPU, printed {printed:.2f} s, "
        f"ratio {ratio:.2f}; limit {REPLY_LIMIT}: {verdict}"
    )


@asynccontextmanager
async def gateway(folder: Path, api: BotApi, server: ModelServer) -> AsyncGenerator[None]:
    configure(folder / "home", api, server)
    process = await asyncio.create_subprocess_exec(
        COMMAND,
        "gateway",
        "--workspace",
        str(folder / "workspace"),
        env=environment(folder / "home"),
        stdout=asyncio.subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        await process.wait()


async def measure_gateway(folder: Path, fifo: Path) -> None:
    requests: asyncio.Queue[tuple[str, float]] = asyncio.Queue()

    def answer(request: ReceivedRequest) -> Reply:
        requests.put_nowait((last_text(request), time.perf_counter()))
        if last_text(request) == "work":
            return Reply(calls=(Call("terminal", {"command": WORK}),))
        return Reply(text="Done.")

    async with (
        BotApi() as api,
        ModelServer(answer, keeps_asked=False) as server,
        gateway(folder, api, server),
    ):
        waits: list[float] = []
        for number in range(UPDATES):
            started = time.perf_counter()
            text = f"message {number}"
            api.say(PERSON, text)
            while (request := await asyncio.wait_for(requests.get(), PATIENCE))[0] != text:
                pass  # one for the title
            waits.append(request[1] - started)
            await api.wait(lambda number=number: api.texts(PERSON).count("Done.") == number + 1)
        stops = [await measure_stop(api, fifo) for _ in range(ROUNDS)]
    # The first ones load what a gateway and a session need.
    say("gateway: update to model request", statistics.median(waits[10:]), UPDATE_LIMIT, "ms")
    print(f"  the first one {waits[0] * 1e3:.1f} ms, later at most {max(waits[10:]) * 1e3:.1f} ms")
    say("gateway: Stop to the command's end", statistics.median(stops), STOP_LIMIT, "ms")
    print(f"  slowest {max(stops) * 1e3:.1f} ms")


async def measure_stop(api: BotApi, fifo: Path) -> float:
    """Return the time from a press on Stop to the end of the command that the turn runs.

    The command writes a line into the fifo and holds it open: its end is the end of the file.
    """
    api.say(PERSON, "work")
    shown = await api.wait(lambda: [sent for sent in api.sent(PERSON) if "Stop" in sent.buttons])
    status = shown[0]
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    file = os.fdopen(await loop.run_in_executor(None, os.open, fifo, os.O_RDONLY))
    pipe, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), file)
    await asyncio.wait_for(reader.readline(), PATIENCE)
    started = time.perf_counter()
    api.press(PERSON, status, status.buttons["Stop"])
    await asyncio.wait_for(reader.read(), PATIENCE)
    seconds = time.perf_counter() - started
    pipe.close()
    await api.wait(lambda: "Stop" not in status.buttons)
    return seconds


def say(name: str, seconds: float, limit: float, unit: str) -> None:
    scale = 1e3 if unit == "ms" else 1.0
    verdict = "met" if seconds <= limit else "MISSED"
    print(f"{name:<36} {seconds * scale:.3f} {unit}; limit {limit * scale:g} {unit}: {verdict}")


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="keryx-frontends-") as path:
        folder = Path(path)
        measure_first_prompt(folder)
        measure_reply(folder)
        workspace = folder / "gateway" / "workspace"
        workspace.mkdir(parents=True)
        os.mkfifo(workspace / "fifo")
        asyncio.run(measure_gateway(folder / "gateway", workspace / "fifo"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
