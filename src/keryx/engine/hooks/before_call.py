"""Runs the hooks before a call. The call is judged and run with the input that they return.

If a hook gives no valid answer, the call fails: a hook that guards something must not be skipped.
What hooks changed is logged before anybody is asked about the call, so after a crash the call goes
on with the same input, and its hooks do not run again.
"""

from __future__ import annotations

from keryx.engine.calls.call import Call
from keryx.engine.calls.call_outcome import DeniedError
from keryx.engine.calls.slots import Slots
from keryx.engine.hooks.running import HookRequest, input_text, run_hook
from keryx.errors import HookFailedError, ModelMustActError
from keryx.messages import HookAction
from keryx.ports.hook_programs import HookProgram


def expects_review(call: Call) -> bool:
    """Return whether hooks must see this call first, or have changed it before a crash."""
    environment = call.environment
    if call.parent is None and environment.hooks.was_amended(call.call_id):
        return True
    programs = environment.programs
    return programs is not None and bool(programs.matching("before_call", call.tool.name))


async def review_input(call: Call, slots: Slots) -> None:
    """Run the hooks of the call. Raises if the call may not run."""
    environment = call.environment
    if call.parent is None:
        review = await environment.hooks.earlier_review(call)
        if review is not None:
            call.actions += review.actions
            if review.arguments is not None:
                _use_input(call, review.arguments)
            return
    assert environment.programs is not None
    text = input_text(call)
    for program in environment.programs.matching("before_call", call.tool.name):
        text = await _ask(call, program, text, slots)
    if call.actions and call.parent is None:
        environment.hooks.amended(call, tuple(call.actions))


async def _ask(call: Call, program: HookProgram, text: str, slots: Slots) -> str:
    """Run one hook; return the input with which the call goes on."""
    request = HookRequest.of("before_call", call, text)
    redactor = call.environment.redactor
    try:
        answer = await run_hook(program, request, call, slots)
        if answer.denied is not None:
            reason = redactor.text(answer.denied)
            call.actions.append(HookAction(program.name, "before_call", "deny", reason))
            raise DeniedError(f"the hook {program.name!r} refused it: {reason}")
        if answer.input is None:
            return text
        text = bytes(answer.input).decode()
        if redactor.text(text) != text:
            raise HookFailedError(  # noqa: TRY301 (both ways to fail end the same)
                "it put the value of a secret into the input, which may not be in the log; "
                "let the tool read the secret itself"
            )
        _use_input(call, text)
    except (HookFailedError, ModelMustActError) as error:
        reason = redactor.text(str(error))
        call.actions.append(HookAction(program.name, "before_call", "fault", reason))
        raise HookFailedError(
            f"the call was not run, because the hook {program.name!r} before it failed: {reason}"
        ) from error
    call.actions.append(HookAction(program.name, "before_call", "input"))
    return text


def _use_input(call: Call, text: str) -> None:
    """Replace the input of the call. The tool checks it, and declares its effects again."""
    args = call.tool.parse(text)
    try:
        effects = call.tool.effects(args)
    except Exception as error:
        raise HookFailedError(
            f"the tool failed to declare the effects of the changed input: {error!r}"
        ) from error
    call.args, call.effects, call.arguments = args, effects, text
