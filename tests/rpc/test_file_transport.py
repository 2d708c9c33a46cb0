"""The file transport against a shared folder in which anything may happen."""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from keryx.aio.bridge import Bridge
from keryx.aio.clock import FakeClock
from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.rpc import Call, CallError, Handler, Limits
from keryx.rpc.file_queue import FolderTakenError
from keryx.rpc.file_transport import HEARTBEAT as HEARTBEAT_PAUSE
from keryx.rpc.file_transport import UNREAD, FileTransport
from keryx.rpc.incoming_calls import LIMITS, UNKNOWN_NAME
from tests.rpc.contract import Gate, echo, failing
from tests.rpc.file_client import FileClient, until
from tests.rpc.server_process import child
from tests.rpc.transports import PATIENCE

pytestmark = pytest.mark.promise("000.5", "000.6")


class FolderSetup:
    def __init__(self, folder: Path, scope: Scope, bridge: Bridge) -> None:
        self.folder = folder
        self.scope = scope
        self.bridge = bridge
        self.guest = FileClient(folder)
        self.group = Group(scope.child("callers"))

    async def serve(self, handler: Handler, limits: Limits = LIMITS) -> FileTransport:
        return await FileTransport.open(
            self.folder, self.scope, self.bridge, handler, limits=limits
        )

    async def error(self, name: str) -> CallError:
        """How the call of that name failed."""
        with pytest.raises(CallError) as caught:
            FileClient.result(await self.guest.answer(name))
        return caught.value

    def names(self, part: str) -> list[str]:
        return sorted(path.name for path in (self.folder / part).iterdir())

    def prepare(self) -> None:
        """Create the folder as an earlier server has left it."""
        for name in ("req", "claimed", "rep", "tmp"):
            (self.folder / name).mkdir(parents=True)


@pytest.fixture
async def setup(tmp_path: Path) -> AsyncGenerator[FolderSetup]:
    scope = Scope("test")
    bridge = Bridge(scope)
    folder_setup = FolderSetup(tmp_path / "shared", scope, bridge)
    async with asyncio.timeout(PATIENCE):
        yield folder_setup
        await folder_setup.group.leave()
        await bridge.close()
    scope.close()


@asynccontextmanager
async def serving(
    setup: FolderSetup, handler: Handler, limits: Limits = LIMITS
) -> AsyncGenerator[FileTransport]:
    server = await setup.serve(handler, limits)
    yield server
    await server.close()


# -- servers that come and go


async def test_a_call_that_was_claimed_before_a_restart_is_unknown_and_not_run_again(
    setup: FolderSetup,
) -> None:
    gate = Gate()
    setup.prepare()
    name = setup.guest.send("c", b"1")
    (setup.folder / "req" / name).rename(setup.folder / "claimed" / name)
    async with serving(setup, gate):
        error = await setup.error(name)
    assert error.name == UNKNOWN_NAME
    assert "restarted while the call ran" in error.message
    assert (setup.names("claimed"), gate.begun.total()) == ([], 0)


async def test_an_answer_that_was_written_before_a_restart_stays(setup: FolderSetup) -> None:
    setup.prepare()
    name = setup.guest.send("c", b"1")
    (setup.folder / "req" / name).rename(setup.folder / "claimed" / name)
    (setup.folder / "rep" / name).write_bytes(b'{"jsonrpc":"2.0","id":1,"result":7}')
    async with serving(setup, echo):
        assert FileClient.result(await setup.guest.answer(name)) == b"7"
    assert setup.names("claimed") == []


async def test_a_call_that_nobody_had_claimed_is_run_by_the_next_server(setup: FolderSetup) -> None:
    setup.prepare()
    name = setup.guest.send("c", b"1")
    async with serving(setup, echo):
        assert FileClient.result(await setup.guest.answer(name)) == b"1"


async def test_a_server_that_is_killed_in_mid_call_is_followed_by_one_that_says_so(
    setup: FolderSetup,
) -> None:
    async with child("files", setup.folder) as server:
        name = setup.guest.send("wait", b"1")
        await server.says("begun")
        with pytest.raises(FolderTakenError, match=f'"pid":{server.pid}'):
            await setup.serve(echo)
        await server.kill()
    assert setup.names("claimed") == [name]
    async with serving(setup, echo):
        assert (await setup.error(name)).name == UNKNOWN_NAME
        assert await setup.guest.call("c", b"2") == b"2"


async def test_a_second_server_is_refused_until_the_first_is_closed(setup: FolderSetup) -> None:
    first = await setup.serve(echo)
    with pytest.raises(FolderTakenError, match="another server serves"):
        await setup.serve(echo)
    assert await setup.guest.call("c", b"1") == b"1"
    await first.close()
    async with serving(setup, echo):
        assert await setup.guest.call("c", b"2") == b"2"
    assert setup.names(".") == ["claimed", "rep", "req", "tmp"]


async def test_a_server_that_is_cancelled_while_it_opens_holds_no_folder(
    setup: FolderSetup,
) -> None:
    opening = setup.group.start(setup.serve(echo), name="open")
    await asyncio.sleep(0)  # now it waits for the disk
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    async with serving(setup, echo):
        assert await setup.guest.call("c", b"1") == b"1"


async def test_two_servers_that_ignore_the_lock_still_run_each_call_once(
    setup: FolderSetup,
) -> None:
    gates = Gate(), Gate()
    first = await setup.serve(gates[0])
    (setup.folder / "server.lock").unlink()
    second = await setup.serve(gates[1])
    names = [b"%d" % number for number in range(100)]
    for gate in gates:
        gate.release(*names)
    calls = [setup.group.start(setup.guest.call("c", name), name="call") for name in names]
    assert [await call for call in calls] == names
    await first.close()
    await second.close()
    assert (gates[0].begun + gates[1].begun).total() == 100


async def test_a_server_says_that_it_lives(tmp_path: Path, clock: FakeClock) -> None:
    scope = Scope("test", clock=clock)
    bridge = Bridge(scope)
    server = await FileTransport.open(tmp_path, scope, bridge, echo)
    plate = tmp_path / "server.json"
    first = msgspec.json.decode(plate.read_bytes())
    assert first["pid"] == os.getpid()
    assert (
        first["instance"]
        == msgspec.json.decode((tmp_path / "server.lock").read_bytes())["instance"]
    )
    old = tmp_path / "rep" / "nobody-came.json"
    old.write_bytes(b"1")
    os.utime(old, (clock.wall() - UNREAD, clock.wall() - UNREAD))
    async with asyncio.timeout(PATIENCE):
        while msgspec.json.decode(plate.read_bytes())["beat"] == first["beat"] or old.exists():
            clock.advance(HEARTBEAT_PAUSE)
            await asyncio.sleep(0.001)
    await server.close()
    assert not plate.exists()
    await bridge.close()
    scope.close()


async def test_a_call_that_outlives_its_server_is_unknown(setup: FolderSetup) -> None:
    begun, end = asyncio.Event(), asyncio.Event()

    async def stubborn(call: Call) -> bytes:
        begun.set()
        while not end.is_set():
            try:
                await end.wait()
            except asyncio.CancelledError:
                continue
        return call.params

    server = await setup.serve(stubborn)
    name = setup.guest.send("c", b"1")
    await begun.wait()
    await server.close()
    answer = (setup.folder / "rep" / name).read_bytes()
    with pytest.raises(CallError, match="it is unknown how far it came") as caught:
        FileClient.result(answer)
    assert caught.value.name == UNKNOWN_NAME
    end.set()
    await asyncio.sleep(0)


# -- names


async def test_a_name_that_comes_again_is_not_run_again(setup: FolderSetup) -> None:
    gate = Gate()
    async with serving(setup, gate):
        name = setup.guest.send("c", b"1")
        await gate.until(lambda: bool(gate.running))
        setup.guest.send("c", b"2", name)  # while the first runs
        await _refused(setup, name)
        gate.release(b"1", b"2")
        answer = setup.folder / "rep" / name
        await until(answer.exists)
        setup.guest.send("c", b"2", name)  # while its answer waits
        await _refused(setup, name)
        assert FileClient.result(await setup.guest.answer(name)) == b"1"
        setup.guest.send("c", b"2", name)  # when all is over
        await _refused(setup, name)
    assert gate.begun == {b"1": 1}
    assert setup.names("rep") == []


async def _refused(setup: FolderSetup, name: str) -> None:
    await until(lambda: not (setup.folder / "req" / name).exists())


async def test_an_answer_that_is_there_already_is_not_overwritten(setup: FolderSetup) -> None:
    gate = Gate()
    async with serving(setup, gate) as server:
        name = setup.guest.send("c", b"1")
        await gate.until(lambda: bool(gate.running))
        (setup.folder / "rep" / name).write_bytes(b"forged")
        gate.release(b"1")
        await until(lambda: not server.in_flight)
        assert (setup.folder / "rep" / name).read_bytes() == b"forged"
    assert setup.names("claimed") == []


@pytest.mark.parametrize("suffix", [".json.cancel", ".cancel"])
async def test_a_call_that_is_given_up_before_it_is_claimed_never_runs(
    setup: FolderSetup, suffix: str
) -> None:
    gate = Gate()
    setup.prepare()
    name = setup.guest.send("c", b"1")
    (setup.folder / "req" / (name.removesuffix(".json") + suffix)).touch()
    async with serving(setup, gate):
        await until(lambda: not setup.names("req"))
    assert (gate.begun.total(), setup.names("rep"), setup.names("claimed")) == (0, [], [])


# -- files that are not calls


async def test_what_is_no_call_is_answered_with_what_is_wrong(setup: FolderSetup) -> None:
    async with serving(setup, echo, Limits(largest_frame=1000)):
        for number, (data, why) in enumerate(
            [
                (b"no json", "malformed"),
                (b"", "truncated"),
                (b'{"id":1}', "method"),
                (b"[" * 900, "got `array`"),
                (b"x" * 1001, "larger than the 1000 bytes"),
            ]
        ):
            setup.guest.put(f"bad{number}.json", data)
            assert why in (await setup.error(f"bad{number}.json")).message
        assert await setup.guest.call("c", b"1") == b"1"
    assert setup.names("claimed") == []


async def test_links_and_other_things_are_not_followed(setup: FolderSetup, tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_bytes(b'{"method":"c","params":"secret"}')
    gate = Gate()
    async with serving(setup, gate):
        req = setup.folder / "req"
        (req / "link.json").symlink_to(secret)
        assert "cannot be read" in (await setup.error("link.json")).message
        os.mkfifo(req / "pipe.json")
        assert "not a regular file" in (await setup.error("pipe.json")).message
        (req / "folder.json").mkdir()
        assert "not a regular file" in (await setup.error("folder.json")).message
        (req / "no call").touch()
        (req / "..json").touch()
    assert gate.begun.total() == 0
    assert secret.exists()
    assert setup.names("claimed") == []
    for left in (req / "no call", req / "..json"):
        left.unlink(missing_ok=True)


async def test_a_folder_that_is_swapped_for_a_link_leads_nowhere(
    setup: FolderSetup, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    async with serving(setup, echo):
        (setup.folder / "rep").rename(setup.folder / "moved")
        (setup.folder / "rep").symlink_to(outside)
        name = setup.guest.send("c", b"1")
        await until((setup.folder / "moved" / name).exists)
    assert list(outside.iterdir()) == []
    with pytest.raises(OSError, match="rep"):
        await setup.serve(echo)


# -- answers that cannot be written


async def test_an_answer_that_does_not_fit_on_the_disk_is_an_error_that_says_so(
    setup: FolderSetup,
) -> None:
    async with child("files", setup.folder):
        assert await setup.guest.call("limit", b"10000") == b"1"
        error = await failing(setup.guest, "big", b"50000")
        assert "could not be written: File too large" in str(error)
        assert len(await setup.guest.call("big", b"5000")) == 5002
        assert setup.names("tmp") == setup.names("claimed") == []


async def test_a_disk_that_is_full_delays_the_answer_until_there_is_room(
    setup: FolderSetup,
) -> None:
    async with child("files", setup.folder) as server:
        assert await setup.guest.call("limit", b"200") == b"1"
        full = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (0, full[1]))
        name = setup.guest.send("big", b"5000")
        await until(lambda: setup.names("claimed") == [name])
        assert setup.names("rep") == []
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (1000, full[1]))
        assert "could not be written" in (await setup.error(name)).message
        await until(lambda: not setup.names("claimed"))
