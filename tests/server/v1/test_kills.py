"""A server that is killed or stopped: responses go on, and waiting calls take their results."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

from tests.server.served_host import PATIENCE, ROOT
from tests.server.v1.scripted_agent import CHAT_TOOL, RESPONSE_TOOL, WORDS

pytestmark = pytest.mark.promise("page20.33")


@contextmanager
def served(path: Path) -> Generator[tuple[Any, subprocess.Popen[str]]]:
    """The agent in a process of its own, and OpenAI's client of it."""
    (path / "workspace").mkdir(exist_ok=True)
    words = [sys.executable, "-m", "tests.server.v1.agent_program"]
    process = subprocess.Popen(
        [*words, str(path / "home"), str(path / "workspace")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        ready = json.loads(process.stdout.readline())
        url, token = ready["url"], ready["token"]
        with OpenAI(base_url=f"{url}v1", api_key=token, max_retries=0, timeout=PATIENCE) as client:
            yield client, process
    finally:
        process.kill()
        process.wait(PATIENCE)
        process.stdin.close()
        process.stdout.close()


def result(call_id: str) -> Any:
    return {"type": "function_call_output", "call_id": call_id, "output": "sunny"}


def test_a_kill_loses_no_response_and_no_waiting_call(tmp_path: Path) -> None:
    said: list[Any] = [{"role": "user", "content": "weather"}]
    early: list[Any] = []
    with served(tmp_path) as (client, process):
        chat = client.chat.completions.create(model="keryx", messages=said, tools=[CHAT_TOOL])
        waiting = client.responses.create(model="keryx", input="mixed", tools=[RESPONSE_TOOL])
        with client.responses.create(
            model="keryx", input="slowly", background=True, stream=True
        ) as stream:
            for event in stream:
                early.append(event)
                if sum(e.type == "response.output_text.delta" for e in early) == 5:
                    break
        process.kill()
    with served(tmp_path) as (client, process):
        # The reply was cut by the kill: it is asked for again, as a new item.
        name, last = early[0].response.id, early[-1].sequence_number
        rest = list(client.responses.retrieve(name, stream=True, starting_after=last))
        assert rest[-1].type == "response.completed"
        numbers = [event.sequence_number for event in (*early, *rest)]
        assert numbers == sorted(set(numbers))
        again = "".join(e.delta for e in rest if e.type == "response.output_text.delta")
        assert again == WORDS
        items = {e.item_id for e in rest if e.type == "response.output_text.delta"}
        assert items.isdisjoint({e.item_id for e in early if hasattr(e, "item_id")})
        assert client.responses.retrieve(name).output_text == WORDS
        # The chat's call still waits, and the turn goes on with its result.
        message = chat.choices[0].message
        assert message.tool_calls is not None
        said += [message.to_dict(), {"role": "tool", "tool_call_id": message.tool_calls[0].id}]
        said[-1]["content"] = "sunny"
        final = client.chat.completions.create(model="keryx", messages=said, tools=[CHAT_TOOL])
        assert final.choices[0].message.content == "The results are sunny."
        # A graceful stop keeps a waiting call too.
        assert process.stdin is not None
        process.stdin.close()
        process.wait(PATIENCE)
    with served(tmp_path) as (client, _):
        [call] = waiting.output
        assert call.type == "function_call"
        response = client.responses.create(
            model="keryx", input=[result(call.call_id)], previous_response_id=waiting.id
        )
        assert response.output_text == "The results are HELLO, sunny."
