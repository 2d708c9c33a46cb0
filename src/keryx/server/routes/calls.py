"""Turns and calls: cancelled, and calls that a person runs with no model."""

from __future__ import annotations

import hashlib

import msgspec
from litestar import Response, post
from litestar.openapi import ResponseSpec
from litestar.params import JSONBody

from keryx import commands as cm
from keryx.ids import new_id
from keryx.server import schemas
from keryx.server.routes.params import (
    CallId,
    IdempotencyKey,
    SessionId,
    TheCaller,
    TheService,
    TurnId,
)

ACCEPTED = 202
OVER = 200
_IS_OVER = {OVER: ResponseSpec(schemas.Cancelled, description="It was over already.")}


def _cancelled(done: bool) -> Response[schemas.Cancelled]:  # noqa: FBT001 (its only meaning)
    return Response(schemas.Cancelled(done), status_code=ACCEPTED if done else OVER)


@post(
    "/api/sessions/{session_id:str}/turns/{turn_id:str}/cancel",
    status_code=ACCEPTED,
    responses=_IS_OVER,
)
async def cancel_turn(
    service: TheService, caller: TheCaller, session_id: SessionId, turn_id: TurnId
) -> Response[schemas.Cancelled]:
    """End the turn, started or not; its one terminal event follows."""
    command = cm.CancelTurn(
        command_id=service.new_id(), session_id=session_id, by=caller.name, turn_id=turn_id
    )
    return _cancelled(await service.do(command))


@post(
    "/api/sessions/{session_id:str}/calls/{call_id:str}/cancel",
    status_code=ACCEPTED,
    responses=_IS_OVER,
)
async def cancel_call(
    service: TheService, caller: TheCaller, session_id: SessionId, call_id: CallId
) -> Response[schemas.Cancelled]:
    """End one call; its turn goes on with the outcome."""
    command = cm.CancelCall(
        command_id=service.new_id(), session_id=session_id, by=caller.name, call_id=call_id
    )
    return _cancelled(await service.do(command))


@post("/api/sessions/{session_id:str}/calls", status_code=ACCEPTED)
async def run_call(
    service: TheService,
    caller: TheCaller,
    session_id: SessionId,
    data: JSONBody[schemas.NewCall],
    idempotency_key: IdempotencyKey = None,
) -> schemas.CallAccepted:
    """Run a tool by hand; answered once that is durable, and its events follow."""
    await service.row(session_id)
    key = data.key or idempotency_key
    call_id = new_id("k") if key is None else _call_id(session_id, key)
    command = cm.RunCall(
        command_id=service.new_id() if key is None else key,
        session_id=session_id,
        by=caller.name,
        call_id=call_id,
        tool=data.tool,
        arguments=msgspec.json.encode(data.arguments).decode(),
        workspace=None if data.workspace is None else await service.folder(data.workspace),
    )
    await service.do(command)
    return schemas.CallAccepted(call_id)


def _call_id(session_id: str, key: str) -> str:
    """The same key names the same call, whoever asks again and after whatever happened."""
    named = f"{session_id}\n{key}".encode(errors="replace")
    return f"k_{hashlib.sha256(named).hexdigest()[:16]}"


ROUTES = (cancel_turn, cancel_call, run_call)
