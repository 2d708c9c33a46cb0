"""A GGUF file by its path, whose template has tools: they reach the model, and it calls them."""

from __future__ import annotations

import asyncio
import json
import struct
from pathlib import Path

import pytest

from keryx.app.runtime import Runtime
from keryx.messages import AssistantMessage, Message, Text, ToolCall, ToolMessage, UserMessage
from keryx.models.embedded.model import EmbeddedModel
from keryx.models.embedded.model_file import ModelFile
from keryx.models.embedded.workers import Workers
from keryx.models.http import Clients
from keryx.ports.model import CallPiece, Finished, ModelRequest, ToolSpec
from tests.models.embedded.smollm2 import GGUF, PATIENCE

pytestmark = pytest.mark.promise("model.4")

KEY = b"tokenizer.chat_template"
STRING = 8
"""The type of a text in GGUF."""
ALIGNMENT = 32
TEMPLATE = """\
{%- if tools %}
{{- '<|im_start|>system\\nYou may call these functions:' }}
{%- for tool in tools %}
{{- '\\n' }}{{- tool | tojson }}
{%- endfor %}
{{- '\\nTo call one, write <tool_call>{"name": NAME, "arguments": OBJECT}</tool_call>.' }}
{{- '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
{{- '<|im_start|>' + message.role }}
{%- if message.content %}{{- '\\n' + message.content }}{%- endif %}
{%- for call in message.tool_calls or [] %}
{{- '\\n<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}
{{- call.function.arguments | tojson }}{{- '}\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}{##}"""
WEATHER = ToolSpec(
    "weather",
    "Look up the weather of a city.",
    {
        "type": "object",
        "properties": {"city": {"type": "string", "enum": ["Athens", "Paris"]}},
        "required": ["city"],
    },
)


def with_tools(folder: Path) -> Path:
    """The same model with another template. The data behind it stays aligned."""
    content = GGUF.read_bytes()
    start = content.index(KEY) + len(KEY)
    kind, length = struct.unpack_from("<IQ", content, start)
    assert kind == STRING
    text = TEMPLATE.encode()
    # The padding is a comment of the template.
    text = text.replace(b"{##}", b"{#%b#}" % (b" " * (-(len(text) - length) % ALIGNMENT)))
    end = start + 12 + length
    path = folder / "with-tools.gguf"
    path.write_bytes(content[:start] + struct.pack("<IQ", kind, len(text)) + text + content[end:])
    return path


def _history() -> list[Message]:
    """Three questions that were answered with a call, and a fourth: a tiny model does the same."""
    history: list[Message] = []
    for number, city in enumerate(("Paris", "Athens", "Paris")):
        call = ToolCall(f"c{number}", "weather", json.dumps({"city": city}))
        history += [
            UserMessage((Text(f"How is the weather in {city}?"),)),
            AssistantMessage((), (call,)),
            ToolMessage(call.call_id, (Text("It rains."),)),
        ]
    return [*history, UserMessage((Text("How is the weather in Athens?"),))]


async def test_tools_are_called_where_the_template_has_them(
    tmp_path: Path, clients: Clients
) -> None:
    path = with_tools(tmp_path)
    async with asyncio.timeout(PATIENCE), Runtime() as runtime:
        workers = Workers(runtime.warden, runtime.bridge, runtime.scope)
        model = EmbeddedModel(
            f"local:{path}", ModelFile(path, None, 1, 2048, 0.0), workers, clients
        )
        try:
            request = ModelRequest(
                system="You are an assistant.",
                history=tuple(map(model.encode, _history())),
                tools=(WEATHER,),
                max_tokens=100,
            )
            pieces = [piece async for piece in model.stream(request)]
        finally:
            await workers.close()
    calls = [piece for piece in pieces if isinstance(piece, CallPiece)]
    assert [call.tool for call in calls if call.tool] == ["weather"]
    arguments = json.loads("".join(call.arguments for call in calls))
    assert arguments in ({"city": "Athens"}, {"city": "Paris"})
    assert isinstance(pieces[-1], Finished)
    assert pieces[-1].stop_reason == "tool_calls"
