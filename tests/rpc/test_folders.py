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
from keryx.rpc.file_transport import BEAT as BEAT_PAUSE
from keryx.rpc.file_transport import UNREAD, FileTransport
from keryx.rpc.incoming_calls import LIMITS, UNKNOWN_NAME
from tests.rpc.children import child
from tests.rpc.contract import Gate, echo, failing
from tests.rpc.folderguest import FolderGuest, until
from tests.rpc.transports import PATIENCE

pytestmark = pytest.mark.promise("000.5", "000.6")


class World:
    def __init__(self, folder: Path, scope: Scope, bridge: Bridge) -> None:
        self.folder = folder
        self.scope = scope
        self.bridge = bridge
        self.guest = FolderGuest(folder)
        self.group = Group(scope.child("callers"))

    async def serve(self, handler: Handler, limits: Limits = LIMITS) -> FileTransport:
        return await FileTransport.open(
            self.folder, self.scope, self.bridge, handler, limits=limits
        )

    async def error(self, name: str) -> CallError:
        """How the call of that name failed."""
        with pytest.raises(CallError) as caught:
            FolderGuest.result(await self.guest.answer(name))
        return caught.value

    def names(self, part: str) -> list[str]:
        return sorted(path.name for path in (self.folder / part).iterdir())

    def prepare(self) -> None:
        """The folder as a server that is gone has left it."""
        for name in ("req", "claimed", "rep", "tmp"):
            (self.folder / name).mkdir(parents=True)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncGenerator[World]:
    scope = Scope("test")
    bridge = Bridge(scope)
    made = World(tmp_path / "shared", scope, bridge)
    async with asyncio.timeout(PATIENCE):
        yield made
        await made.group.leave()
        await bridge.close()
    scope.close()


@asynccontextmanager
async def serving(
    world: World, handler: Handler, limits: Limits = LIMITS
) -> AsyncGenerator[FileTransport]:
    server = await world.serve(handler, limits)
    yield server
    await server.close()


# -- servers that come and go


async def test_a_call_that_was_claimed_before_a_restart_is_unknown_and_not_run_again(
    world: World,
) -> None:
    gate = Gate()
    world.prepare()
    name = world.guest.send("c", b"1")
    (world.folder / "req" / name).rename(world.folder / "claimed" / name)
    async with serving(world, gate):
        error = await world.error(name)
    assert error.name == UNKNOWN_NAME
    assert "restarted while it ran" in error.message
    assert (world.names("claimed"), gate.begun.total()) == ([], 0)


async def test_an_answer_that_was_written_before_a_restart_stays(world: World) -> None:
    world.prepare()
    name = world.guest.send("c", b"1")
    (world.folder / "req" / name).rename(world.folder / "claimed" / name)
    (world.folder / "rep" / name).write_bytes(b'{"jsonrpc":"2.0","id":1,"result":7}')
    async with serving(world, echo):
        assert FolderGuest.result(await world.guest.answer(name)) == b"7"
    assert world.names("claimed") == []


async def test_a_call_that_nobody_had_claimed_is_run_by_the_next_server(world: World) -> None:
    world.prepare()
    name = world.guest.send("c", b"1")
    async with serving(world, echo):
        assert FolderGuest.result(await world.guest.answer(name)) == b"1"


async def test_a_server_that_is_killed_in_mid_call_is_followed_by_one_that_says_so(
    world: World,
) -> None:
    async with child("files", world.folder) as server:
        name = world.guest.send("wait", b"1")
        await server.says("begun")
        with pytest.raises(FolderTakenError, match=f'"pid":{server.pid}'):
            await world.serve(echo)
        await server.kill()
    assert world.names("claimed") == [name]
    async with serving(world, echo):
        assert (await world.error(name)).name == UNKNOWN_NAME
        assert await world.guest.call("c", b"2") == b"2"


async def test_a_second_server_is_refused_until_the_first_is_closed(world: World) -> None:
    first = await world.serve(echo)
    with pytest.raises(FolderTakenError, match="another server serves"):
        await world.serve(echo)
    assert await world.guest.call("c", b"1") == b"1"
    await first.close()
    async with serving(world, echo):
        assert await world.guest.call("c", b"2") == b"2"
    assert world.names(".") == ["claimed", "rep", "req", "tmp"]


async def test_a_server_that_is_cancelled_while_it_opens_holds_no_folder(world: World) -> None:
    opening = world.group.start(world.serve(echo), name="open")
    await asyncio.sleep(0)  # now it waits for the disk
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    async with serving(world, echo):
        assert await world.guest.call("c", b"1") == b"1"


async def test_two_servers_that_ignore_the_lock_still_run_each_call_once(world: World) -> None:
    gates = Gate(), Gate()
    first = await world.serve(gates[0])
    (world.folder / "server.lock").unlink()
    second = await world.serve(gates[1])
    names = [b"%d" % number for number in range(100)]
    for gate in gates:
        gate.let_go(*names)
    calls = [world.group.start(world.guest.call("c", name), name="call") for name in names]
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
            clock.advance(BEAT_PAUSE)
            await asyncio.sleep(0.001)
    await server.close()
    assert not plate.exists()
    await bridge.close()
    scope.close()


async def test_a_call_that_outlives_its_server_is_unknown(world: World) -> None:
    begun, end = asyncio.Event(), asyncio.Event()

    async def stubborn(call: Call) -> bytes:
        begun.set()
        while not end.is_set():
            try:
                await end.wait()
            except asyncio.CancelledError:
                continue
        return call.params

    server = await world.serve(stubborn)
    name = world.guest.send("c", b"1")
    await begun.wait()
    await server.close()
    answer = (world.folder / "rep" / name).read_bytes()
    with pytest.raises(CallError, match="nobody knows how far it comes") as caught:
        FolderGuest.result(answer)
    assert caught.value.name == UNKNOWN_NAME
    end.set()
    await asyncio.sleep(0)


# -- names


async def test_a_name_that_comes_again_is_not_run_again(world: World) -> None:
    gate = Gate()
    async with serving(world, gate):
        name = world.guest.send("c", b"1")
        await gate.until(lambda: bool(gate.running))
        world.guest.send("c", b"2", name)  # while the first runs
        await _refused(world, name)
        gate.let_go(b"1", b"2")
        answer = world.folder / "rep" / name
        await until(answer.exists)
        world.guest.send("c", b"2", name)  # while its answer waits
        await _refused(world, name)
        assert FolderGuest.result(await world.guest.answer(name)) == b"1"
        world.guest.send("c", b"2", name)  # when all is over
        await _refused(world, name)
    assert gate.begun == {b"1": 1}
    assert world.names("rep") == []


async def _refused(world: World, name: str) -> None:
    await until(lambda: not (world.folder / "req" / name).exists())


async def test_an_answer_that_is_there_already_is_not_overwritten(world: World) -> None:
    gate = Gate()
    async with serving(world, gate) as server:
        name = world.guest.send("c", b"1")
        await gate.until(lambda: bool(gate.running))
        (world.folder / "rep" / name).write_bytes(b"forged")
        gate.let_go(b"1")
        await until(lambda: not server.in_flight)
        assert (world.folder / "rep" / name).read_bytes() == b"forged"
    assert world.names("claimed") == []


@pytest.mark.parametrize("suffix", [".json.cancel", ".cancel"])
async def test_a_call_that_is_given_up_before_it_is_claimed_never_runs(
    world: World, suffix: str
) -> None:
    gate = Gate()
    world.prepare()
    name = world.guest.send("c", b"1")
    (world.folder / "req" / (name.removesuffix(".json") + suffix)).touch()
    async with serving(world, gate):
        await until(lambda: not world.names("req"))
    assert (gate.begun.total(), world.names("rep"), world.names("claimed")) == (0, [], [])


# -- what is no call


async def test_what_is_no_call_is_answered_with_what_is_wrong(world: World) -> None:
    async with serving(world, echo, Limits(largest_frame=1000)):
        for number, (data, why) in enumerate(
            [
                (b"no json", "malformed"),
                (b"", "truncated"),
                (b'{"id":1}', "method"),
                (b"[" * 900, "got `array`"),
                (b"x" * 1001, "larger than the 1000 bytes"),
            ]
        ):
            world.guest.put(f"bad{number}.json", data)
            assert why in (await world.error(f"bad{number}.json")).message
        assert await world.guest.call("c", b"1") == b"1"
    assert world.names("claimed") == []


async def test_links_and_other_things_are_not_followed(world: World, tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_bytes(b'{"method":"c","params":"secret"}')
    gate = Gate()
    async with serving(world, gate):
        req = world.folder / "req"
        (req / "link.json").symlink_to(secret)
        assert "cannot be read" in (await world.error("link.json")).message
        os.mkfifo(req / "pipe.json")
        assert "no file" in (await world.error("pipe.json")).message
        (req / "folder.json").mkdir()
        assert "no file" in (await world.error("folder.json")).message
        (req / "no call").touch()
        (req / "..json").touch()
    assert gate.begun.total() == 0
    assert secret.exists()
    assert world.names("claimed") == []
    for left in (req / "no call", req / "..json"):
        left.unlink(missing_ok=True)


async def test_a_folder_that_is_swapped_for_a_link_leads_nowhere(
    world: World, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    async with serving(world, echo):
        (world.folder / "rep").rename(world.folder / "moved")
        (world.folder / "rep").symlink_to(outside)
        name = world.guest.send("c", b"1")
        await until((world.folder / "moved" / name).exists)
    assert list(outside.iterdir()) == []
    with pytest.raises(OSError, match="rep"):
        await world.serve(echo)


# -- answers that cannot be written


async def test_an_answer_that_does_not_fit_on_the_disk_is_an_error_that_says_so(
    world: World,
) -> None:
    async with child("files", world.folder):
        assert await world.guest.call("limit", b"10000") == b"1"
        error = await failing(world.guest, "big", b"50000")
        assert "could not be written: File too large" in str(error)
        assert len(await world.guest.call("big", b"5000")) == 5002
        assert world.names("tmp") == world.names("claimed") == []


async def test_a_disk_that_is_full_delays_the_answer_until_there_is_room(world: World) -> None:
    async with child("files", world.folder) as server:
        assert await world.guest.call("limit", b"200") == b"1"
        full = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (0, full[1]))
        name = world.guest.send("big", b"5000")
        await until(lambda: world.names("claimed") == [name])
        assert world.names("rep") == []
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (1000, full[1]))
        assert "could not be written" in (await world.error(name)).message
        await until(lambda: not world.names("claimed"))
