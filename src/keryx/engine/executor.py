"""Runs tool calls: concurrently where their effects allow it, and until they are cancelled.

A call is one task in a group that the executor owns. The caller awaits the call's outcome, never
its task, so a tool that resists its cancellation blocks nobody: after the grace period the call is
left over, its outcome is `unknown`, and it cannot act through its context any more.

The stages of a call: hooks before it, order within its step, approval, effects, slot, the log, the
tool, hooks after it, outcome.
Only leaves hold effects and slots. A container (a tool that calls tools) holds nothing while it
waits for its calls, so nesting cannot deadlock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from keryx.aio.bridge import THREADS, Bridge
from keryx.aio.group import Group
from keryx.aio.scope import EXIT_REPORT, GRACE, Scope, set_token
from keryx.engine.calls import call_outcome
from keryx.engine.calls.call import Call
from keryx.engine.calls.call_environment import CallEnvironment
from keryx.engine.calls.call_outcome import Ending
from keryx.engine.calls.order import set_order
from keryx.engine.calls.slots import Slots
from keryx.engine.hooks.after_call import review_result
from keryx.engine.hooks.before_call import expects_review, review_input
from keryx.engine.steps.batch import Batch
from keryx.engine.steps.late_order import order_after_hooks
from keryx.engine.tool_context.call_context import CallContext
from keryx.errors import (
    DeveloperMustActError,
    InvalidToolError,
    ModelMustActError,
)
from keryx.messages import CallOutcome, ToolCall
from keryx.ports.tool import Tool
from keryx.ports.workers import Addressed, Returned, encode_return

# Async leaves cost one task each. The limit keeps a host from opening sockets without end.
LOOP_SLOTS: Final = 1_000
# A worker is a Python process: about 30 MB, and a core if its tool computes.
PROCESS_SLOTS: Final = 16
# How many calls, and containers, of one session may have processes at once. A command is a shell
# and often a few more processes; beyond 512 in all, the place kills the call that has the most.
STARTS: Final = 128
CONTAINER_STARTS: Final = 32
# Hooks of one session that run at once: each is a process, often an interpreter that starts.
HOOK_STARTS: Final = 64
# A container that calls itself without end must fail before the memory is full.
MOST_NESTED: Final = 16


class Executor:
    """Runs the calls of one host. Belongs to the loop that created it."""

    def __init__(
        self,
        scope: Scope,
        bridge: Bridge,
        *,
        loop_slots: int = LOOP_SLOTS,
        thread_slots: int = THREADS,
        process_slots: int = PROCESS_SLOTS,
    ) -> None:
        self.bridge: Final = bridge
        """Runs in threads what would block the loop."""
        self._loop = asyncio.get_running_loop()
        self._slots = {
            "loop": Slots(loop_slots),
            "thread": Slots(thread_slots),
            "process": Slots(process_slots),
        }
        # Separate, and none for nested containers: no call takes the slots that its own calls need.
        self._starts = Slots(loop_slots, session_limit=STARTS)
        self._container_starts = Slots(loop_slots, session_limit=CONTAINER_STARTS)
        self._hook_starts = Slots(loop_slots, session_limit=HOOK_STARTS)
        self._calls: set[Call] = set()
        self._left_over: dict[Call, None] = {}
        # A scope tree of its own: calls are cancelled through their own scopes, which know the
        # ladder; their tasks only when the executor is closed and has given up on them.
        self._group = Group(Scope("calls", clock=scope.clock), on_error=self._report)
        self._registration = scope.on_cancel(self._cancel_all)

    # -- the public interface

    def start(self, environment: CallEnvironment, calls: Sequence[ToolCall], scope: Scope) -> Batch:
        """Start the calls of one step. They behave as if they ran in this order."""
        if len({call.call_id for call in calls}) < len(calls):
            raise DeveloperMustActError("two calls of one step have the same id")
        batch = Batch()
        accepted: list[Call] = []
        for tool_call in calls:
            call = self._accept(
                environment, tool_call.call_id, tool_call.tool, tool_call.arguments, scope, None
            )
            if isinstance(call, Call):
                accepted.append(call)
                batch.add(call.call_id, call.ended, call)
            else:
                ended: asyncio.Future[CallOutcome] = self._loop.create_future()
                ended.set_result(call)
                batch.add(tool_call.call_id, ended, None)
        self._launch(environment, accepted)
        return batch

    async def run(
        self, environment: CallEnvironment, calls: Sequence[ToolCall], scope: Scope
    ) -> list[CallOutcome]:
        """Start the calls of one step and wait for all outcomes, in call order."""
        return await self.start(environment, calls, scope).outcomes()

    @property
    def running(self) -> int:
        """The number of calls that have no outcome yet."""
        return len(self._calls)

    @property
    def left_over(self) -> tuple[str, ...]:
        """The ids of calls that have their outcome but have not ended."""
        return tuple(call.call_id for call in self._left_over)

    async def close(self) -> tuple[str, ...]:
        """Cancel all calls, run the cancellation ladder, and return the ids of left-over calls."""
        self._registration.remove()
        self._cancel_all()
        for call in tuple(self._calls):
            await asyncio.shield(call.ended)
        left_over = self.left_over
        await self._group.leave()
        return left_over

    def _cancel_all(self) -> None:
        for call in self._calls:
            call.scope.cancel("shutdown", by="executor")

    # -- accepting

    def _accept(
        self,
        environment: CallEnvironment,
        call_id: str,
        tool: str | Tool,
        arguments: str | bytes | Mapping[str, Any],
        scope: Scope,
        parent: Call | None,
    ) -> Call | CallOutcome:
        name = tool if isinstance(tool, str) else tool.name
        try:
            tool = environment.find_tool(tool) if isinstance(tool, str) else tool
            args = tool.parse(arguments)
        except ModelMustActError as error:
            return call_outcome.failed(call_id, name, str(error))
        try:
            effects = tool.effects(args)
        except Exception as error:  # noqa: BLE001 (a tool's own code; the turn goes on without this call)
            problem = f"the tool {name!r} is broken: it failed to declare its effects: {error!r}"
            return call_outcome.failed(call_id, name, problem)
        text = arguments if isinstance(arguments, str) else ""
        if tool.isolation == "process":
            try:
                text = _text_for_process(environment, tool, arguments)
            except DeveloperMustActError as error:
                return call_outcome.failed(call_id, name, str(error))
        call = Call(
            environment,
            call_id,
            tool,
            args,
            arguments=text,
            scope=scope.child(call_id),
            parent=parent,
        )
        call.effects = effects
        call.raw = arguments
        if expects_review(call):
            call.reviewed = self._loop.create_future()
        return call

    def _launch(self, environment: CallEnvironment, calls: Sequence[Call]) -> None:
        """Start the tasks of calls that belong to one step."""
        if any(call.reviewed is not None for call in calls):
            # Hooks may change the input, and with it the effects that decide about the order.
            for call in calls:
                call.ordered = self._loop.create_future()
            self._group.start(order_after_hooks(environment, calls), name="step order")
        elif environment.paths.enter(environment, calls):
            ordered: asyncio.Future[None] = self._loop.create_future()
            for call in calls:
                call.ordered = ordered
            self._group.start(self._order(environment, calls, ordered), name="step order")
        elif len(calls) > 1:
            set_order(calls)
        for call in calls:
            call.task = self._group.start(self._run_task(call), name=f"call {call.call_id}")
            self._calls.add(call)
            call.scope.on_cancel(partial(self._stop, call))

    async def _order(
        self, environment: CallEnvironment, calls: Sequence[Call], ordered: asyncio.Future[None]
    ) -> None:
        """Resolve the paths in a thread, since a file system may hang, then set the order."""
        try:
            await environment.paths.resolve(environment, calls)
        except Exception as error:  # noqa: BLE001 (whatever goes wrong with a path concerns only these calls)
            ordered.set_exception(error)
            ordered.exception()  # marks it as retrieved, also if every call was cancelled meanwhile
            return
        set_order([call for call in calls if call.phase != "ended"])
        ordered.set_result(None)

    # -- the stages of a call

    async def _run_task(self, call: Call) -> None:
        """Run the task of a call. Whatever goes wrong in it, the call gets its outcome."""
        try:
            await self._run_call(call)
        except Exception as error:  # noqa: BLE001 (a defect of ours: it is reported, and blocks nobody)
            self._report(f"call {call.call_id}", error)
            self._left_over.pop(call, None)
            if call.phase != "ended":
                self._conclude(call, call_outcome.BROKEN, left_over=False)
            call.scope.close()

    async def _run_call(self, call: Call) -> None:
        call.phase = "waiting"
        try:
            call.scope.raise_if_cancelled()
            await self._admit(call)
            result = await self._invoke(call)
            result = await review_result(call, result, self._hook_starts)
        except GeneratorExit as error:
            # From the tool, or because the loop was closed: after it nothing can be awaited.
            result = call_outcome.of_error(call, error)
            call.scope.cancel("parent", by=call.call_id)
            self._finish(call, result)
            return
        except BaseException as error:  # noqa: BLE001 (a tool may raise anything; it becomes the outcome)
            result = call_outcome.of_error(call, error)
        try:
            if call.nested or call.holds_processes:
                await self._end_children(call)
        finally:
            self._finish(call, result)

    async def _admit(self, call: Call) -> None:
        if call.reviewed is not None:
            await review_input(call, self._hook_starts)
            call.end_review()
        if call.ordered is not None:
            await asyncio.shield(call.ordered)
        if call.blockers:
            call.unblocked = self._loop.create_future()
            await call.unblocked
        consent = await call.environment.hooks.approve(call)
        if consent.denied is not None:
            raise call_outcome.DeniedError(consent.denied)
        call.granted = consent.needs
        if not call.tool.container:
            await call.environment.holdings.take(call, call.effects)
            await self._slots[call.tool.isolation].take(call.environment.session_id)
            call.holds_slot = True

    async def _invoke(self, call: Call) -> Ending:
        call.phase = "starting"
        call.overlaps = call.environment.overlaps(call.effects)
        await call.environment.hooks.starting(call)
        call.refuse_if_cancelled()
        call.phase = "running"
        call.started_at = call.scope.clock.monotonic()
        if call.environment.programs is None:
            call.raw = None  # only a person who is asked, or a hook, reads it; it may be large
        if call.tool.timeout is not None:
            call.cancel_after(call.tool.timeout)
        context = CallContext(call, self._nest, self._starts_of(call))
        set_token(context.token)
        if call.tool.isolation == "loop":
            returned = encode_return(await call.tool.invoke(call.args, context))
        elif call.tool.isolation == "process":
            returned = await _invoke_in_process(call)
        else:
            call.output.accept_threads()
            work = partial(_invoke_blocking, call.tool, call.args, context)
            call.thread = self.bridge.start_thread(work, name=call.call_id)
            returned = await call.thread.future
        return call_outcome.of_return(call, returned)

    def _starts_of(self, call: Call) -> Slots | None:
        if not call.tool.container:
            return self._starts
        return self._container_starts if call.parent is None else None

    async def _end_children(self, call: Call) -> None:
        """End what the tool started and did not wait for. No call outlives its parent."""
        if call.phase != "ended":
            call.phase = "leaving"
        call.scope.cancel("parent", by=call.call_id)
        for process in tuple(call.processes):
            await process.__aexit__(None, None, None)
        while call.nested:
            call.nested_ended = self._loop.create_future()
            await call.nested_ended

    async def _nest(
        self,
        parent: Call,
        tool: str | Tool,
        arguments: Mapping[str, Any] | bytes,
        seconds: float | None,
    ) -> CallOutcome:
        parent.children += 1
        call_id = f"{parent.call_id}.{parent.children}"
        if parent.depth >= MOST_NESTED:
            text = f"calls are nested {MOST_NESTED} levels deep; do this without another level"
            return call_outcome.failed(call_id, tool if isinstance(tool, str) else tool.name, text)
        call = self._accept(parent.environment, call_id, tool, arguments, parent.scope, parent)
        if isinstance(call, CallOutcome):
            return call
        parent.nested.add(call)
        self._launch(parent.environment, (call,))
        if seconds is not None:
            call.end_within(seconds)
        try:
            return await asyncio.shield(call.ended)
        except asyncio.CancelledError:
            call.scope.cancel("parent", by=parent.call_id)
            raise

    # -- the ladder

    def _stop(self, call: Call) -> None:
        """Rung one: cancel async work, once. Threads see their token, processes get a signal."""
        if call.phase in ("leaving", "ended"):
            return
        assert call.task is not None
        running = call.phase == "running"
        if call.phase in ("waiting", "reviewing") or (running and call.tool.isolation == "loop"):
            call.task.cancel()
        call.climb_after(GRACE, self._after_grace)

    def _after_grace(self, call: Call) -> None:
        """Rung two: the scope has just killed its processes, and their exit may take a moment."""
        if call.scope.holds_killable:
            call.climb_after(EXIT_REPORT, self._leave_over)
        else:
            self._leave_over(call)

    def _leave_over(self, call: Call) -> None:
        """Rung three: end a call that has not returned. It is left over and blocks nobody."""
        if call.phase in ("leaving", "ended"):
            return
        if call.nested:
            # Nested calls are on the ladder too, and end before their container.
            call.nested_ended = self._loop.create_future()
            call.nested_ended.add_done_callback(lambda _: self._leave_over(call))
            return
        if call.thread is not None:
            call.thread.leave_over()
        self._left_over[call] = None
        call.environment.left_over[call.call_id] = call.effects
        self._conclude(call, call_outcome.of_left_over(call), left_over=True)

    # -- the end of a call

    def _finish(self, call: Call, result: Ending) -> None:
        if call.phase != "ended":
            self._conclude(call, result, left_over=False)
        else:
            del self._left_over[call]
            call.environment.left_over.pop(call.call_id, None)
            call.environment.hooks.settled(call, self._since_start(call))
        call.output.close()
        call.scope.close()

    def _since_start(self, call: Call) -> float:
        return 0.0 if call.started_at is None else call.scope.clock.monotonic() - call.started_at

    def _conclude(self, call: Call, result: Ending, *, left_over: bool) -> None:
        """Give the call its one outcome, and release all that it holds."""
        try:
            outcome = call_outcome.outcome_of(call, result, left_over=left_over)
        except Exception as error:  # noqa: BLE001 (a defect of ours: whatever it is, the call ends)
            self._report(f"call {call.call_id}", error)
            outcome = call_outcome.broken(call)
        call.phase = "ended"
        call.end_review()
        self._calls.discard(call)
        if call.ladder is not None:
            call.scope.deadlines.drop(call.ladder)
            call.ladder = None
        call.environment.paths.leave(call)
        if not call.tool.container:
            call.environment.holdings.release(call)
            if call.holds_slot:
                self._slots[call.tool.isolation].release(call.environment.session_id)
        if call.starts is not None:
            call.starts.release(call.environment.session_id)
        call.release_dependents()
        call.ended.set_result(outcome)
        if call.parent is not None:
            call.parent.forget_nested(call, outcome)
        # Last: if this hook fails, nobody is left waiting for the call.
        call.environment.hooks.ended(call, outcome)

    def _report(self, name: str, error: BaseException) -> None:
        """Report a defect to the loop's exception handler; no other call ends with it."""
        self._loop.call_exception_handler(
            {"message": f"{name} broke the executor", "exception": error}
        )


def _text_for_process(
    environment: CallEnvironment, tool: Tool, arguments: str | bytes | Mapping[str, Any]
) -> str:
    """Return the arguments as text for another process. Raises if the tool cannot run in one."""
    name = tool.name
    if environment.workers is None or environment.place is None:
        raise DeveloperMustActError(
            f"the tool {name!r} needs a process of its own, and this session cannot start one"
        )
    if not isinstance(tool, Addressed):
        raise InvalidToolError(f"the tool {name!r} is broken: another process cannot find it")
    if isinstance(arguments, str):
        return arguments
    try:
        text = arguments if isinstance(arguments, bytes) else msgspec.json.encode(dict(arguments))
        return text.decode()
    except (TypeError, ValueError) as error:
        raise DeveloperMustActError(f"the arguments of {name!r} are no JSON: {error}") from error


def _invoke_blocking(tool: Tool, args: Any, context: CallContext) -> Returned:
    """Run in the tool's thread: the encoding may take long, and stays off the loop too."""
    return encode_return(tool.invoke(args, context))


async def _invoke_in_process(call: Call) -> Returned:
    environment, tool = call.environment, call.tool
    assert environment.workers is not None
    assert environment.place is not None
    assert isinstance(tool, Addressed)
    return await environment.workers.run(
        tool.address,
        call.arguments,
        scope=call.scope,
        output=call.output,
        place=environment.place,
        env=environment.env,
        cwd=str(environment.workspace),
        granted=call.granted,
    )
