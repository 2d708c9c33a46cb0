"""What the tests of the gateway share: a home with a bot, a model server, and gateways in it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, cast

from keryx import Keryx
from keryx.errors import KeryxError
from keryx.gateway.gateway import Gateway, running_gateway
from keryx.gateway.tuning import Tuning
from keryx.testing.modelserver import ModelServer, ReceivedRequest, Reply
from tests.gateway.bot_api import TOKEN, BotApi
from tests.gateway.gateway_program import FAST
from tests.server.served_host import in_thread

ROOT = Path(__file__).parent.parent.parent
PATIENCE = 30.0
ANN, BEN, EVE = 7, 8, 666
GROUP = -100


def last_text(request: ReceivedRequest) -> str:
    """What the person said last."""
    for message in reversed(request.body["messages"]):
        if message["role"] == "user":
            content: Any = message["content"]
            parts = cast(
                "list[dict[str, Any]]",
                content if isinstance(content, list) else [{"type": "text", "text": content}],
            )
            texts = [str(part["text"]) for part in parts if part["type"] == "text"]
            lines = [
                line
                for text in texts
                for line in text.strip().splitlines()
                if not line.startswith(("[attached", "[workspace"))
            ]
            return lines[-1] if lines else ""
    return ""


def echo(request: ReceivedRequest) -> Reply:
    return Reply(text=f"You said: {last_text(request)}")


def configure(
    home: Path,
    api: BotApi,
    server: ModelServer,
    *,
    extra: str = "",
    images: str = "*",
    **settings: Any,
) -> None:
    """`extra`: further tables; `images`: which models see; `settings`: of the bot."""
    home.mkdir(exist_ok=True)
    (home.parent / "workspace").mkdir(exist_ok=True)
    settings = {"token": TOKEN, "api_url": api.url, "allow": [ANN, BEN], **settings}
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    (home / "config.toml").write_text(
        'model = "openai:test-model"\n'
        f'[providers.openai]\nbase_url = "{server.url}"\napi_key = "k"\nimages = ["{images}"]\n'
        f"{extra}\n[gateway.telegram]\n" + "\n".join(lines) + "\n"
    )


@asynccontextmanager
async def chatting(
    path: Path,
    answer: Callable[[ReceivedRequest], Reply] = echo,
    *,
    api: BotApi | None = None,
    tuning: Tuning = FAST,
    **settings: Any,
) -> AsyncGenerator[tuple[BotApi, Gateway, Keryx]]:
    """A gateway in this process, with its own host."""
    models = ("test-model", "other-model")
    async with api or BotApi() as bot_api, ModelServer(answer, models=models) as server:
        configure(path / "home", bot_api, server, **settings)
        workspace = str(path / "workspace")
        async with (
            Keryx(home=path / "home", workspace=workspace) as app,
            running_gateway(app.host_client, workspace=workspace, tuning=tuning) as gateway,
        ):
            yield bot_api, gateway, app


async def failure_of(gateway: Gateway) -> KeryxError:
    """Wait until a platform cannot go on."""
    failures: asyncio.Queue[KeryxError] = asyncio.Queue()
    gateway.on_failure(failures.put_nowait)
    async with asyncio.timeout(PATIENCE):
        return await failures.get()


class GatewayProcesses:
    """Runs gateways of one home, one after another, each in a process of its own."""

    def __init__(self, program: subprocess.Popen[str]) -> None:
        self._program = program

    @contextmanager
    def killed_at_the_end(self) -> Generator[None]:
        self._order("0")
        try:
            yield
        finally:
            self._order("kill")

    async def run_for(self, writes: int) -> None:
        """Run one that dies after it has stored something that often, or once it rests."""
        self._order(str(writes))
        async with asyncio.timeout(PATIENCE):
            await in_thread(self._order, "wait")

    def _order(self, word: str) -> None:
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        self._program.stdin.write(f"{word}\n")
        self._program.stdin.flush()
        assert self._program.stdout.readline() == "done\n"


@contextmanager
def gateway_processes(home: Path) -> Generator[GatewayProcesses]:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.gateway.gateway_program", str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
            "TMPDIR": str(home.parent / "workspace"),  # a killed process leaves a folder behind
        },
    ) as program:
        yield GatewayProcesses(program)
