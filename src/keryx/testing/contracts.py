"""Contract suites: the same assertions over every implementation of a port.

Inherit from one in a test class and define the fixture `subject`.
"""

from __future__ import annotations

import asyncio
import signal
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from keryx.aio.capture import Capture
from keryx.aio.clock import Clock
from keryx.errors import InvalidArgumentsError, SpawnError
from keryx.ports.place import Place
from keryx.ports.tool import Tool


class ClockContract(ABC):
    """What deadlines need from a clock."""

    @abstractmethod
    async def wait(self, subject: Clock, seconds: float) -> None:
        """Let that much time pass, in whatever way the clock supports."""

    async def test_time_goes_on_and_never_back(self, subject: Clock) -> None:
        before = subject.monotonic(), subject.wall()
        await self.wait(subject, 0.001)
        assert subject.monotonic() > before[0]
        assert subject.wall() >= before[1]

    async def test_a_timer_runs_once_its_time_has_come(self, subject: Clock) -> None:
        ran: list[float] = []
        due = subject.monotonic() + 0.005
        subject.call_at(due, lambda: ran.append(subject.monotonic()))
        assert ran == []
        while not ran:
            await self.wait(subject, 0.005)
        assert len(ran) == 1

    async def test_a_timer_of_the_past_runs_too(self, subject: Clock) -> None:
        ran = asyncio.Event()
        subject.call_at(subject.monotonic() - 1, ran.set)
        await self.wait(subject, 0.001)
        await ran.wait()

    async def test_a_cancelled_timer_does_not_run(self, subject: Clock) -> None:
        ran: list[str] = []
        subject.call_at(subject.monotonic() + 0.002, lambda: ran.append("cancelled")).cancel()
        subject.call_at(subject.monotonic() + 0.004, lambda: ran.append("kept"))
        while not ran:
            await self.wait(subject, 0.005)
        assert ran == ["kept"]


class ToolContract(ABC):
    """What the engine relies on in any tool."""

    @abstractmethod
    def good_arguments(self) -> Mapping[str, Any]:
        """Return arguments that the tool accepts."""

    def test_it_has_a_name_and_says_what_it_does(self, subject: Tool) -> None:
        assert subject.name.replace("_", "").replace("-", "").isalnum()
        assert len(subject.name) <= 64
        assert subject.description.strip()

    def test_its_schema_is_a_closed_object(self, subject: Tool) -> None:
        assert subject.parameters["type"] == "object"
        assert subject.parameters["additionalProperties"] is False
        msgspec.json.encode(subject.parameters)

    def test_it_takes_the_same_arguments_as_text_and_as_values(self, subject: Tool) -> None:
        good = self.good_arguments()
        assert subject.parse(msgspec.json.encode(good)) == subject.parse(good)

    @pytest.mark.parametrize("bad", ["{", "[]", "null", '{"no such parameter": 1}', "\x00"])
    def test_bad_arguments_are_refused_with_a_reason(self, subject: Tool, bad: str) -> None:
        with pytest.raises(InvalidArgumentsError, match=r"\w+"):
            subject.parse(bad)

    def test_its_declarations_can_be_told_for_good_arguments(self, subject: Tool) -> None:
        args = subject.parse(self.good_arguments())
        subject.effects(args)
        subject.risk(args, Path("/"))
        assert "\n" not in subject.preview(args)

    def test_a_container_runs_on_the_loop(self, subject: Tool) -> None:
        assert subject.isolation == "loop" or not subject.container


class PlaceContract:
    """What tools rely on in any place that processes are started in."""

    async def test_output_and_exit_code_arrive(self, subject: Place, tmp_path: Path) -> None:
        output = Capture()
        argv = ["/bin/sh", "-c", "echo out; echo err >&2; exit 3"]
        async with await subject.spawn(argv, env={}, cwd=str(tmp_path), output=output) as process:
            ended = await process.wait()
        assert (ended.code, ended.signal) == (3, None)
        assert sorted(output.text().split()) == ["err", "out"]

    async def test_the_environment_is_what_was_given_and_where_files_may_go(
        self, subject: Place, tmp_path: Path
    ) -> None:
        output = Capture()
        env = {"ONLY": "this"}
        async with await subject.spawn(
            ["/usr/bin/env"], env=env, cwd=str(tmp_path), output=output
        ) as process:
            await process.wait()
        variables = dict(line.split("=", 1) for line in output.text().splitlines())
        assert variables.pop("ONLY") == "this"
        folders = {"HOME", "TMPDIR", "KERYX_UPLOADS"}
        assert variables.keys() <= folders, "a place may add where files are"

    async def test_it_runs_where_it_was_told(self, subject: Place, tmp_path: Path) -> None:
        output = Capture()
        async with await subject.spawn(
            ["/bin/pwd", "-P"], env={}, cwd=str(tmp_path), output=output
        ) as process:
            await process.wait()
        assert output.text().strip() == str(tmp_path)

    async def test_input_is_passed(self, subject: Place, tmp_path: Path) -> None:
        output = Capture()
        async with await subject.spawn(
            ["/bin/cat"], env={}, cwd=str(tmp_path), output=output, stdin=True
        ) as process:
            await process.write(b"through")
            process.close_stdin()
            await process.wait()
        assert output.text() == "through"

    async def test_leaving_ends_the_process(self, subject: Place, tmp_path: Path) -> None:
        async with await subject.spawn(
            ["/bin/sleep", "1000"], env={}, cwd=str(tmp_path)
        ) as process:
            pass
        assert (await process.wait()).signal == signal.SIGTERM

    async def test_a_program_that_is_not_there_is_named(
        self, subject: Place, tmp_path: Path
    ) -> None:
        with pytest.raises(SpawnError, match="no-such-program"):
            await subject.spawn(["no-such-program"], env={"PATH": "/bin"}, cwd=str(tmp_path))

    async def test_a_folder_that_is_not_there_is_named(
        self, subject: Place, tmp_path: Path
    ) -> None:
        with pytest.raises(SpawnError, match="no-such-folder"):
            await subject.spawn(["/bin/true"], env={}, cwd=str(tmp_path / "no-such-folder"))
