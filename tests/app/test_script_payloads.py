"""Large values through the whole way of a script's call, and scripts that mean the host ill.

That time grows linearly with size is measured in `benchmarks/rpc.py`; here all of it arrives.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from keryx.rpc import Limits
from tests.app.hostile_scripts import ACTORS, MEGABYTE
from tests.app.scripting import (
    Den,
    echo,
    echo_in_process,
    echo_in_thread,
    echo_value,
    execute,
    hosting,
)
from tests.rpc.server_process import ROOT

ECHOES = [echo, echo_in_thread, echo_in_process]


ECHOING = """
import keryx_tools, sys
tool, size = getattr(keryx_tools, sys.argv[1]), int(sys.argv[2])
text = "".join(f"{number:015d}," for number in range(size // 16))
answer = tool(text)
assert answer["text"] == text, (len(answer["text"]), len(text))
assert str(answer) == text
keryx_tools.finish(len(text))
"""


async def arrives(den: Den, name: str, size: int) -> None:
    async with hosting(den, *ECHOES, echo_value) as app:
        handle = await app.open(approvals="never")
        ended = await execute(handle, ECHOING, name, str(size))
    assert ended["result"] == size
    assert ended["calls"][name]["count"] == 1


@pytest.mark.promise("000.6")
async def test_a_hundred_megabytes_go_up_and_come_down(den: Den) -> None:
    await arrives(den, "echo", 100 * MEGABYTE)


@pytest.mark.parametrize("name", ["echo_in_thread", "echo_in_process"])
async def test_so_they_do_wherever_the_tool_runs(den: Den, name: str) -> None:
    """What a tool in a process of its own is called with is bounded to 16 MiB."""
    await arrives(den, name, 10 * MEGABYTE)


VALUES = r"""
import keryx_tools
text = 'a "quoted" line with \\, \t, ümlauts, \U0001f980, NUL \0 and an end\n' * 100_000
for value in (text, {"deep": [{"text": text}, None, 1.5, [text[:100]] * 50_000]}):
    answer = keryx_tools.echo_value(value)
    assert answer["value"] == value
    assert answer.value == {"value": value}
many = keryx_tools.parallel(keryx_tools.echo, [f"{number}," * 200_000 for number in range(20)])
assert [text["text"] == f"{number}," * 200_000 for number, text in enumerate(many)] == [True] * 20
keryx_tools.finish("equal")
"""


async def test_values_arrive_as_they_were_whatever_is_in_them(den: Den) -> None:
    async with hosting(den, *ECHOES, echo_value) as app:
        handle = await app.open(approvals="never")
        assert (await execute(handle, VALUES))["result"] == "equal"


TOO_LARGE = """
import keryx_tools
try:
    keryx_tools.echo("x" * 300_000_000)
except ValueError as error:
    keryx_tools.finish([type(error).__name__, str(error), keryx_tools.echo("fine")["text"]])
"""


async def test_what_is_larger_than_is_carried_is_refused_in_words(den: Den) -> None:
    async with hosting(den, *ECHOES) as app:
        handle = await app.open(approvals="never")
        kind, text, after = (await execute(handle, TOO_LARGE))["result"]
    assert kind == "ValueError"
    assert str(Limits().largest_frame) in text, "it names the limit"
    assert after == "fine"


AGAIN = """
import json, os, socket, struct
import keryx_tools
path = os.environ["KERYX_TOOLS_ADDRESS"].partition(":")[2]
command = "seq 1 20000; echo once >> ran"

def packet(number, method, **params):
    said = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    data = json.dumps(said).encode()
    return struct.pack(">I", len(data)) + data

said = []
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(path)
    secret = os.environ["KERYX_TOOLS_SECRET"]
    connection.sendall(packet(1, "hello", secret=secret, version=1))
    call = packet(2, "call", tool="terminal", arguments={"command": command})
    connection.sendall(call)
    with connection.makefile("rb") as file:
        while prefix := file.read(4):
            said.append(json.loads(file.read(*struct.unpack(">I", prefix))))
            if said[-1].get("id") == 2:
                connection.sendall(call * 100)
keryx_tools.finish([said[1]["result"]["outcome"], said[2]["error"]["message"]])
"""


@pytest.mark.promise("000.6")
async def test_a_call_that_is_sent_again_does_not_run_again(den: Den) -> None:
    async with hosting(den) as app:
        ended = await execute(await app.open(approvals="never"), AGAIN)
    outcome, why = ended["result"]
    assert outcome == "completed"
    assert "call 2 came after call 2" in why
    assert (den.workspace / "ran").read_text() == "once\n"
    assert ended["calls"]["terminal"]["count"] == 1


# -- a bad actor

BOUND = 200 * MEGABYTE
"""What the host keeps for a script is bounded in each way, so more of the same adds nothing.

Of what it prints: the head and the tail. Of what it sends: a frame that is said to be too large
ends its connection, notifications are done with as they come, one that never ends counts against
the room that all connections of a run share, a result replaces the one before, a message is cut.
Of what it asks for: a connection whose answers are not read is read no further. The actors want
ten times as much as the bound, and this leaves room for copies and for the allocator.
"""
ROOM = Limits().most_held + 64 * MEGABYTE
"""Who knows the secret may send large calls, and until they are whole they are held."""


@pytest.mark.parametrize("actor", ACTORS)
def test_a_bad_actor_cannot_make_the_host_grow_nor_stop_the_others(actor: str) -> None:
    argv = [sys.executable, "-m", "tests.app.hostile_scripts", actor]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=55, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    payload = json.loads(done.stdout)
    assert payload["grown"] < (ROOM if actor.startswith("knows the secret") else BOUND)
    assert payload["beside"] == "fine\n", "another session works meanwhile"
    assert payload["again"] == "fine\n", "and so does this one, afterwards"
