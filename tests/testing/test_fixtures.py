"""The fixtures find what they are for: each is shown a planted fault and must report it."""

from __future__ import annotations

import threading

import pytest

from keryx.testing.left_overs import State

pytest_plugins = ["pytester"]

FAULTS = {
    "thread left over": """
        import threading
        def test_it():
            threading.Thread(target=threading.Event().wait, daemon=True).start()
    """,
    "process left over": """
        import os
        def test_it():
            os.posix_spawn("/bin/sleep", ["sleep", "5"], {})
    """,
    "descriptor left over": """
        import os
        def test_it():
            os.pipe()
    """,
    "temporary file left over": """
        import tempfile
        def test_it():
            tempfile.mkdtemp(prefix="keryx-planted-")
    """,
    "environment changed": """
        import os
        def test_it():
            os.environ["PLANTED"] = "1"
    """,
    "working directory changed": """
        import os
        def test_it():
            os.chdir("/")
    """,
    "sys.stdout or sys.stderr was replaced": """
        import io, sys
        def test_it():
            sys.stdout = io.StringIO()
    """,
    "task left over": """
        import asyncio
        async def test_it():
            global kept
            kept = asyncio.create_task(asyncio.Event().wait())
    """,
}


@pytest.mark.parametrize("report", FAULTS)
def test_a_planted_fault_is_reported(
    report: str, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(pytester.path))
    run_in_a_process_of_its_own(pytester, FAULTS[report]).stdout.fnmatch_lines(f"*{report}*")


def test_a_blocking_call_in_the_loop_is_reported(pytester: pytest.Pytester) -> None:
    result = run_in_a_process_of_its_own(
        pytester,
        """
        import time
        from keryx.aio.scope import Scope

        async def test_it():
            scope = Scope("root")
            scope.on_cancel(lambda: time.sleep(0.01))
            caught = []
            import asyncio
            asyncio.get_running_loop().set_exception_handler(
                lambda loop, context: caught.append(context["exception"])
            )
            scope.cancel("interrupt")
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            scope.close()
            raise caught[0]
        """,
    )
    result.stdout.fnmatch_lines("*BlockingError*time.sleep*")


def test_a_clean_test_passes(pytester: pytest.Pytester) -> None:
    result = run_in_a_process_of_its_own(
        pytester,
        """
        import asyncio
        async def test_it():
            await asyncio.sleep(0)
        """,
        outcome={"passed": 1},
    )
    assert result.ret == 0


def run_in_a_process_of_its_own(
    pytester: pytest.Pytester, source: str, *, outcome: dict[str, int] | None = None
) -> pytest.RunResult:
    pytester.makeconftest('pytest_plugins = ["keryx.testing.fixtures"]')
    pytester.makeini(
        "[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n"
    )
    pytester.makepyfile(source)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:randomly")
    if outcome is not None:
        result.assert_outcomes(**outcome)
    else:
        assert result.ret == 1
    return result


class Ending(threading.Thread):
    """A thread that ends once somebody waits for it, as one does whose child has just ended."""

    def __init__(self, name: str) -> None:
        self._released = threading.Event()
        super().__init__(target=self._released.wait, name=name, daemon=True)

    def join(self, timeout: float | None = None) -> None:
        self._released.set()
        super().join(timeout)


@pytest.mark.promise("mended.17")
@pytest.mark.parametrize("name", ["waitpid-15", "asyncio-waitpid-0", "keryx-1", "anything"])
def test_a_thread_that_is_about_to_end_is_waited_for_whatever_its_name_is(name: str) -> None:
    """Python 3.11.2 calls asyncio's threads otherwise than 3.11.4 does."""
    before = State.now()
    thread = Ending(name)
    thread.start()
    assert before.changes() == []
    assert not thread.is_alive()
