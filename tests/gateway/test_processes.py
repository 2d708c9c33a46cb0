"""The gateway as people start it: by itself, in `keryx serve`, and beside the host of a home."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from keryx import Keryx
from keryx.config import ConfigurationError, load
from keryx.testing.modelserver import ModelServer
from tests.gateway.bot_api import BotApi
from tests.gateway.chat_home import ANN, PATIENCE, ROOT, configure, echo
from tests.server.served_host import in_thread


def words(command: str, home: Path) -> list[str]:
    workspace = str(home.parent / "workspace")
    port = ["--port", "0"] if command == "serve" else []
    start = [sys.executable, "-m", "keryx", command]
    return [*start, "--home", str(home), "--workspace", workspace, *port]


def environment(*folders: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": ":".join(map(str, [*folders, ROOT / "src", ROOT]))}


@contextmanager
def running(command: str, home: Path) -> Generator[subprocess.Popen[str]]:
    with subprocess.Popen(
        words(command, home),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=environment(),
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """End it as Ctrl+C does; return its code and what it printed."""
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


def run(command: str, home: Path, *folders: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words(command, home),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        cwd=ROOT,
        env=environment(*folders),
    )


@pytest.mark.promise("chat.4")
async def test_serve_runs_the_gateway_and_only_one_process_does(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with BotApi() as api, ModelServer(echo) as server:
        configure(home, api, server)
        with running("serve", home) as process:
            api.say(ANN, "Hello")
            await api.wait(lambda: api.texts(ANN) == ["You said: Hello"])
            second = await in_thread(run, "gateway", home)
            assert second.returncode != 0
            assert "runs in another process already, such as `keryx serve`" in second.stderr
            code, out, err = await in_thread(ended, process)
    assert (code, err) == (0, "")
    assert "The gateway serves: telegram" in out


@pytest.mark.promise("chat.4")
async def test_the_gateway_attaches_to_the_host_of_another_process(tmp_path: Path) -> None:
    home, workspace = tmp_path / "home", tmp_path / "workspace"
    async with BotApi() as api, ModelServer(echo) as server:
        configure(home, api, server)
        async with Keryx(home=home, workspace=workspace) as app:
            assert app.host_client.local_host is not None
            with running("gateway", home) as process:
                api.say(ANN, "Hello")
                await api.wait(lambda: api.texts(ANN) == ["You said: Hello"])
                (row,) = await app.store.sessions()
                turn = await (await app.open(row.session_id)).send("from here")
                assert (await turn.result()).text == "You said: from here"
                api.say(ANN, "and back")
                await api.wait(lambda: "You said: and back" in api.texts(ANN))
                code, out, err = await in_thread(ended, process)
    assert (code, err) == (0, "")
    assert "The gateway serves: telegram" in out
    assert len(server.asked) == 3


@pytest.mark.promise("chat.6")
async def test_without_aiogram_the_command_says_what_to_install(tmp_path: Path) -> None:
    home, shadow = tmp_path / "home", tmp_path / "shadow"
    (shadow / "aiogram").mkdir(parents=True)
    (shadow / "aiogram" / "__init__.py").write_text("raise ImportError('not installed')\n")
    async with BotApi() as api, ModelServer(echo) as server:
        configure(home, api, server)
        result = await in_thread(run, "gateway", home, shadow)
    assert result.returncode != 0
    assert "Telegram needs aiogram; install it with: pip install 'keryx[telegram]'" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.promise("chat.6")
@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ("[gateway]\nprot = 1", '"prot" in [gateway]; did you mean "port"?'),
        (
            '[gateway.telegram]\nstreeming = "off"',
            '"streeming" in [gateway.telegram]; did you mean "streaming"?',
        ),
        (
            '[gateway.webhook]\nurl = "https://example.com"\nsecert = "x"',
            '"secert" in [gateway.webhook]; did you mean "secret"?',
        ),
        ('[gateway.telegram]\nmode = "webhook"', "webhook_url is missing; write one such as"),
        ("[gateway.telegram]\nturns_per_day = 0", "turns_per_day"),
        ("[gateway.telegram]\nowner = [-100]", "owner"),
        ('[gateway.telegram]\nowner = ["ann"]', "owner"),
        ("[gateway.telegram]\nowner = 7", "owner"),
        ('[gateway.webhook]\nurl = "https://example.com"\nowner = [""]', "owner"),
    ],
)
def test_a_misspelt_setting_is_refused_with_a_suggestion(
    tmp_path: Path, lines: str, problem: str
) -> None:
    (tmp_path / "config.toml").write_text(f"{lines}\n")
    with pytest.raises(ConfigurationError) as raised:
        load(tmp_path, {})
    assert problem in str(raised.value)
