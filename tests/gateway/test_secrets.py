"""The token of a bot is in no log, no file, no error and no chat."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.bot_api import TOKEN, BotApi, Fault
from tests.gateway.chat_home import ANN, chatting

pytestmark = pytest.mark.promise("chat.2")

PROGRAM = """
import logging
from keryx.cli.logs import redact_logs, report_in_lines
report_in_lines()
redact_logs({"TELEGRAM_BOT_TOKEN": "123456:secret-of-a-bot"})
try:
    raise OSError("no route to https://api.example.com/bot123456:secret-of-a-bot/getMe")
except OSError:
    logging.getLogger("aiohttp.client").exception("failed: %s", "bot123456:secret-of-a-bot")
"""


async def test_whatever_fails_the_token_is_written_nowhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.WARNING, "markdown_it")
    faults = {
        "getMe": ["hang before", "html", "500", "reset after"],
        "sendMessage": ["hang after"],
        "editMessageText": ["hang before", "html"],
        "getUpdates": ["reset before", "html", "500"],
        "getFile": ["hang before", "reset after", "html"],
    }

    def fault(method: str, _: dict[str, Any]) -> Fault | None:
        kinds: list[Any] = faults.get(method, [])
        return kinds.pop(0) if kinds else None

    photo = [{"file_id": "p", "file_unique_id": "p", "width": 1, "height": 1, "file_size": 5}]
    async with chatting(tmp_path, api=BotApi(fault=fault)) as (api, _, _):
        api.files["p"] = b"image"
        api.lost_files.add("p")
        api.say(ANN, "Hello")
        api.say(ANN, "", photo=photo)
        await api.wait(lambda: any("does not have this file any more" in t for t in api.texts(ANN)))
        await api.wait(lambda: "You said: Hello" in "".join(api.texts(ANN)))
    assert not any(faults.values())
    assert caplog.text
    assert TOKEN not in caplog.text
    assert not any(TOKEN in text for text in api.texts(ANN))
    for file in (tmp_path / "home").rglob("gateway.db*"):
        assert TOKEN.encode() not in file.read_bytes()


def test_a_command_prints_no_secret_whoever_logs_it() -> None:
    words = [sys.executable, "-c", PROGRAM]
    printed = subprocess.run(words, capture_output=True, text=True, check=True).stderr
    assert "secret-of-a-bot" not in printed
    assert printed.count("[redacted: TELEGRAM_BOT_TOKEN]") == 2
