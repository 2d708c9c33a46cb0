"""Turns an exported session into a regression test: `replayed("session.json")`."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from keryx.aio.loops import run_loop
from keryx.app.portable.session_file import SessionFile, decode_session
from keryx.app.replay.recording import RecordedTurn, call_key, recorded_turns, shown_result
from keryx.app.replay.replaying import ReplayedTurn, recorded_model, replay_turn
from keryx.errors import DeveloperMustActError
from keryx.ports.tool import Tool


def replayed(
    source: str | Path | SessionFile,
    *,
    tools: Sequence[Tool | Callable[..., Any]] = (),
    workspace: str | Path = ".",
) -> int:
    """Run the turns of a session again, and compare; return how many were compared.

    `source` is a JSON export (`keryx sessions export ID --format json`). The model's replies come
    from the log, and so do the results of calls, except of the `tools` that are passed: those run
    for real, in the `workspace`. `AssertionError` shows what has changed as a diff. In async
    tests use `check_replay`.
    """
    folder = Path(workspace).resolve()
    return run_loop(check_replay(_session(source), tools=tools, workspace=folder))


async def check_replay(
    session: SessionFile,
    *,
    tools: Sequence[Tool | Callable[..., Any]] = (),
    workspace: Path,
) -> int:
    """Do the same for a session that is read already; see `replayed`."""
    turns = [turn for turn in recorded_turns(session.events) if turn.obstacle is None]
    if not turns:
        raise DeveloperMustActError(
            "this session has no turn that could be run again: none completed"
        )
    for turn in turns:
        model = recorded_model(turn)
        again = await replay_turn(
            session, turn, model, descriptions={}, tools=tools, workspace=workspace
        )
        _compare(turn, again)
    return len(turns)


def _session(source: str | Path | SessionFile) -> SessionFile:
    if isinstance(source, SessionFile):
        return source
    try:
        return decode_session(Path(source).read_bytes())
    except (OSError, ValueError) as error:
        raise DeveloperMustActError(
            f"{source} is no JSON export of a session: {error}; write one with "
            "`keryx sessions export ID --format json -o FILE`"
        ) from error


def _compare(turn: RecordedTurn, again: ReplayedTurn) -> None:
    expected, actual = _recorded_lines(turn), _replayed_lines(again)
    if expected != actual:
        diff = difflib.unified_diff(expected, actual, "recorded", "replayed", lineterm="", n=2)
        raise AssertionError("\n".join([f"turn {turn.number} goes otherwise now:", *diff]))


def _recorded_lines(turn: RecordedTurn) -> list[str]:
    lines = [f"> {turn.message.text}", *_joined_lines(turn)]
    for reply in turn.replies:
        lines += [f"reply: {line}" for line in reply.text.splitlines()]
    for reply in turn.replies:
        for call in reply.calls:
            lines.append("call: " + " ".join(call_key(call.tool, call.arguments)))
            result = turn.results.get(call.call_id)
            lines += _result_lines("" if result is None else shown_result(result))
    error = turn.finished.error
    return [*lines, f"end: {turn.finished.outcome} {'' if error is None else error.message}"]


def _replayed_lines(turn: ReplayedTurn) -> list[str]:
    texts = [line for text in turn.texts for line in text.splitlines()]
    lines = [f"> {turn.message}", *_joined_lines(turn), *(f"reply: {line}" for line in texts)]
    for call in turn.calls:
        lines.append("call: " + " ".join(call_key(call.tool, call.arguments)))
        lines += _result_lines(call.result)
    error = turn.result.error
    return [*lines, f"end: {turn.result.outcome} {'' if error is None else error.message}"]


def _joined_lines(turn: RecordedTurn | ReplayedTurn) -> list[str]:
    return [f"> after reply {message.after}: {message.text}" for message in turn.joined]


def _result_lines(text: str) -> list[str]:
    # A failure that is answered from the log gets the mark of a failed call again.
    return [f"  {line}" for line in text.removeprefix("[failed]\n").splitlines()]
