"""Honest scripts that want much at once get it, in turns; what they pass and get travels once."""

from __future__ import annotations

import pytest

from keryx.sandbox.scripts.value_limits import MOST_VALUES
from tests.app.scripting import Den, echo_value, execute, hosting

MANY_COMMANDS = """
import asyncio
from keryx_tools import aio, finish

async def main():
    calls = (aio.terminal(f"sleep 1; echo {number}") for number in range(600))
    return [answer["output"] for answer in await asyncio.gather(*calls)]

printed = asyncio.run(main())
assert printed == [f"{number}\\n" for number in range(600)], printed
finish("all")
"""


@pytest.mark.promise("000.3")
async def test_a_script_may_ask_for_more_commands_than_can_run_at_once(den: Den) -> None:
    async with hosting(den) as app:
        ended = await execute(await app.open(approvals="never"), MANY_COMMANDS)
    assert ended["result"] == "all"
    assert ended["calls"]["terminal"]["count"] == 600


RAW = """
import json, os, socket, struct
import keryx_tools
path = os.environ["KERYX_TOOLS_ADDRESS"].partition(":")[2]
said = []
with socket.socket(socket.AF_UNIX) as connection, connection.makefile("rb") as file:
    connection.connect(path)
    for number, method, params in (
        (1, "hello", {"secret": os.environ["KERYX_TOOLS_SECRET"], "version": 1}),
        (2, "call", {"tool": "echo_value", "arguments": {"value": [1, "ä"]}}),
        (3, "call", {"tool": "list_files", "arguments": {"path": {"no": "path"}}}),
    ):
        packet = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        data = json.dumps(packet).encode()
        connection.sendall(struct.pack(">I", len(data)) + data)
        said.append(json.loads(file.read(*struct.unpack(">I", file.read(4)))))
answer = keryx_tools.echo_value([1, "ä"])
keryx_tools.finish([said[1]["result"], said[2]["error"], str(answer), answer.text, answer])
"""


async def test_a_value_travels_once_and_its_text_is_made_of_it(den: Den) -> None:
    async with hosting(den, echo_value) as app:
        ended = await execute(await app.open(approvals="never"), RAW)
    packet, error, shown, text, answer = ended["result"]
    assert packet == {"value": {"value": [1, "ä"]}, "outcome": "completed"}
    assert shown == text == '{"value":[1,"ä"]}'
    assert answer == {"value": [1, "ä"]}
    assert error["data"] == "ToolFailedError"
    assert "path" in error["message"], "the tool itself says what does not fit"


MUCH = f"""
import asyncio
import keryx_tools
from keryx_tools import aio
few, many = [0] * {MOST_VALUES // 4}, [0] * {MOST_VALUES}

async def together():
    found = await asyncio.gather(*(aio.echo_value(few) for _ in range(8)))
    return [one["value"] == few for one in found]

assert asyncio.run(together()) == [True] * 8
try:
    keryx_tools.echo_value(many)
except keryx_tools.ToolFailedError as error:
    keryx_tools.finish(str(error))
"""


async def test_more_values_than_a_call_may_hold_are_refused_in_words(den: Den) -> None:
    async with hosting(den, echo_value) as app:
        ended = await execute(await app.open(approvals="never"), MUCH)
    assert f"more than {MOST_VALUES:,} values" in ended["result"]
    assert ended["calls"]["echo_value"]["failures"] == 1


NO_TEXT = r"""
import os, socket, struct
import keryx_tools
path = os.environ["KERYX_TOOLS_ADDRESS"].partition(":")[2]
secret = os.environ["KERYX_TOOLS_SECRET"].encode()
said = []
with socket.socket(socket.AF_UNIX) as connection, connection.makefile("rb") as file:
    connection.connect(path)
    for body in (
        b'{"jsonrpc":"2.0","id":1,"method":"hello","params":{"secret":"%s"}}' % secret,
        b'{"jsonrpc":"2.0","id":2,"method":"call","params":'
        b'{"tool":"keryx.finish","arguments":{"value":"\xff"}}}',
        b'{"jsonrpc":"2.0","id":3,"method":"call","params":'
        b'{"tool":"echo_value","arguments":{"value":"\xff"}}}',
        b'{"jsonrpc":"2.0","id":4,"method":"call","params":'
        b'{"tool":"echo_value","arguments":{"value":"' + b"\xff" * 17_000_000 + b'"}}}',
    ):
        connection.sendall(struct.pack(">I", len(body)) + body)
        said.append(file.read(*struct.unpack(">I", file.read(4))).decode())
keryx_tools.finish([b"error" in one.encode() for one in said])
"""


async def test_what_is_no_text_is_refused_wherever_it_would_arrive(den: Den) -> None:
    async with hosting(den, echo_value) as app:
        ended = await execute(await app.open(approvals="never"), NO_TEXT)
    assert ended["result"] == [False, True, True, True]


TOO_LONG = """
import asyncio
from keryx_tools import ToolTimeoutError, aio, finish, terminal

async def one():
    try:
        await aio.terminal("sleep 60; touch done", _deadline=0.3)
    except ToolTimeoutError as error:
        return str(error)

try:
    terminal("sleep 60; touch done", timeout=100, _deadline=0.3)
except ToolTimeoutError as error:
    finish([str(error), asyncio.run(one())])
"""


async def test_a_deadline_of_the_caller_ends_the_call_whatever_the_tool_was_given(den: Den) -> None:
    async with hosting(den) as app:
        ended = await execute(await app.open(approvals="never"), TOO_LONG)
    assert all("no answer within 0.3 s" in text for text in ended["result"])
    assert ended["calls"]["terminal"]["count"] == 2
