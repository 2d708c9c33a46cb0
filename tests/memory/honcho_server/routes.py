"""The routes of the API, without faults."""

from __future__ import annotations

import asyncio
import json
from typing import Any, TypeVar

from aiohttp import web
from pydantic import BaseModel, ValidationError

from tests.memory.honcho_server import shapes
from tests.memory.honcho_server.state import (
    CONCLUSION_COLUMNS,
    MESSAGE_COLUMNS,
    RefusedError,
    State,
    filtered,
    nearest,
    now,
)

S = TypeVar("S", bound=BaseModel)
STATE: web.AppKey[State] = web.AppKey("state", State)
# Seconds until a deleted session is really gone.
DELETION = 0.05


async def body(request: web.Request, shape: type[S]) -> S:
    raw = await request.read()
    try:
        return shape.model_validate_json(raw or b"{}")
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=False)
        raise RefusedError(
            422, [{**detail, "loc": ["body", *detail["loc"]]} for detail in details]
        ) from error


def pages(request: web.Request, rows: list[dict[str, Any]]) -> web.Response:
    try:
        query = shapes.Pages.model_validate(dict(request.query))
    except ValidationError as error:
        raise RefusedError(422, error.errors(include_url=False, include_context=False)) from error
    rows = rows[::-1] if query.reverse else rows
    start = (query.page - 1) * query.size
    return web.json_response(
        {
            "items": rows[start : start + query.size],
            "total": len(rows),
            "page": query.page,
            "size": query.size,
            "pages": -(-len(rows) // query.size),
        }
    )


def place(request: web.Request) -> tuple[State, str]:
    state, workspace = request.app[STATE], request.match_info["workspace"]
    state.require_workspace(workspace)
    return state, workspace


def message(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": row["id"],
        "content": row["content"],
        "peer_id": row["peer"],
        "session_id": row["session"],
        "workspace_id": row["workspace"],
        "metadata": json.loads(row["metadata"]),
        "created_at": row["created_at"],
        "token_count": len(row["content"]) // 4,
    }


def conclusion(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": row["id"],
        "content": row["content"],
        "observer_id": row["observer"],
        "observed_id": row["observed"],
        "session_id": row["session"],
        "level": row["level"],
        "created_at": row["created_at"],
    }


async def workspaces(request: web.Request) -> web.Response:
    shape = await body(request, shapes.WorkspaceCreate)
    is_new = request.app[STATE].create("workspaces", id=shape.id)
    answer = {"id": shape.id, "created_at": now()}
    return web.json_response(
        {**answer, "metadata": {}, "configuration": {}}, status=201 if is_new else 200
    )


async def peers(request: web.Request) -> web.Response:
    state, workspace = place(request)
    shape = await body(request, shapes.PeerCreate)
    config = shape.configuration.model_dump(exclude_none=True) if shape.configuration else {}
    is_new = state.create("peers", workspace=workspace, id=shape.id, config=json.dumps(config))
    answer = {"id": shape.id, "workspace_id": workspace, "created_at": now()}
    return web.json_response(
        {**answer, "metadata": {}, "configuration": config}, status=201 if is_new else 200
    )


async def sessions(request: web.Request) -> web.Response:
    state, workspace = place(request)
    shape = await body(request, shapes.SessionCreate)
    is_new = state.open_session(workspace, shape.id, shape.peers or {})
    answer = {"id": shape.id, "is_active": True, "workspace_id": workspace}
    return web.json_response(
        {**answer, "metadata": {}, "configuration": {}, "created_at": now()},
        status=201 if is_new else 200,
    )


async def delete_session(request: web.Request) -> web.Response:
    state, workspace = place(request)
    name = request.match_info["session"]
    state.require_session(workspace, name)
    key = (workspace, name)
    state.db.execute("UPDATE sessions SET active = 0 WHERE workspace = ? AND id = ?", key)

    def delete() -> None:
        for table in ("messages", "conclusions"):
            state.db.execute(f"DELETE FROM {table} WHERE workspace = ? AND session = ?", key)

    asyncio.get_running_loop().call_later(DELETION, delete)
    return web.json_response({"message": "Session deleted successfully"}, status=202)


async def add_messages(request: web.Request) -> web.Response:
    state, workspace = place(request)
    batch = (await body(request, shapes.MessageBatch)).messages
    session = request.match_info["session"]
    state.open_session(workspace, session, [entry.peer_id for entry in batch])
    rows = [
        {
            "workspace": workspace,
            "session": session,
            "peer": entry.peer_id,
            "content": entry.content,
            "metadata": json.dumps(entry.metadata or {}),
            "created_at": entry.created_at.isoformat() if entry.created_at else None,
        }
        for entry in batch
    ]
    added = state.add("messages", rows)
    return web.json_response([message(row) for row in added], status=201)


async def list_messages(request: web.Request) -> web.Response:
    state, workspace = place(request)
    shape = await body(request, shapes.Listing)
    rows = state.rows(
        "SELECT * FROM messages WHERE workspace = ? AND session = ? ORDER BY no",
        workspace,
        request.match_info["session"],
    )
    return pages(request, [message(row) for row in filtered(rows, shape.filters, MESSAGE_COLUMNS)])


async def search_messages(request: web.Request) -> web.Response:
    state, workspace = place(request)
    shape = await body(request, shapes.MessageSearch)
    peer = request.match_info["peer"]
    query = "SELECT * FROM messages WHERE workspace = ? AND peer = ?"
    rows = filtered(state.rows(query, workspace, peer), shape.filters, MESSAGE_COLUMNS)
    return web.json_response([message(row) for row in nearest(rows, shape.query, shape.limit)])


async def add_conclusions(request: web.Request) -> web.Response:
    state, workspace = place(request)
    batch = (await body(request, shapes.ConclusionBatch)).conclusions
    for name in {entry.session_id for entry in batch if entry.session_id is not None}:
        state.require_session(workspace, name)
    state.require_peers(workspace, (entry.observer_id for entry in batch))
    state.require_peers(workspace, (entry.observed_id for entry in batch))
    rows = [
        {
            "workspace": workspace,
            "session": entry.session_id,
            "observer": entry.observer_id,
            "observed": entry.observed_id,
            "content": entry.content,
            "level": "explicit",
            "created_at": None,
        }
        for entry in batch
    ]
    added = state.add("conclusions", rows)
    return web.json_response([conclusion(row) for row in added], status=201)


async def list_conclusions(request: web.Request) -> web.Response:
    state, workspace = place(request)
    shape = await body(request, shapes.Listing)
    session = (shape.filters or {}).get("session_id")
    query = "SELECT * FROM conclusions WHERE workspace = ?1 AND (?2 IS NULL OR session = ?2)"
    rows = state.rows(f"{query} ORDER BY no DESC", workspace, session)
    rows = filtered(rows, shape.filters, CONCLUSION_COLUMNS)
    return pages(request, [conclusion(row) for row in rows])


async def query_conclusions(request: web.Request) -> web.Response:
    state, workspace = place(request)
    shape = await body(request, shapes.ConclusionQuery)
    filters = shape.filters or {}
    if not (filters.get("observer_id") and filters.get("observed_id")):
        raise RefusedError(422, "observer and observed must be specified for semantic search.")
    query = "SELECT * FROM conclusions WHERE workspace = ?"
    rows = filtered(state.rows(query, workspace), filters, CONCLUSION_COLUMNS)
    return web.json_response([conclusion(row) for row in nearest(rows, shape.query, shape.top_k)])


async def delete_conclusion(request: web.Request) -> web.Response:
    state, workspace = place(request)
    remote = request.match_info["conclusion"]
    cursor = state.db.execute(
        "DELETE FROM conclusions WHERE workspace = ? AND id = ?", (workspace, remote)
    )
    if not cursor.rowcount:
        raise RefusedError(404, f"Document {remote} not found or does not belong to {workspace}")
    return web.Response(status=204)


async def representation(request: web.Request) -> web.Response:
    state, workspace = place(request)
    shape = await body(request, shapes.Representation)
    if set(shape.filters or {}) - {"session_id"}:
        raise RefusedError(422, "Only 'session_id' is supported.")
    peer = request.match_info["peer"]
    query = "SELECT * FROM conclusions WHERE workspace = ? AND observer = ? AND observed = ?"
    rows = state.rows(query, workspace, peer, shape.target or peer)
    rows = filtered(rows, shape.filters, CONCLUSION_COLUMNS)
    lines = [row["content"] for row in nearest(rows, shape.search_query or "", 100)]
    lines = lines[: shape.max_conclusions or 25]
    text = "\n".join(["## Explicit Observations", "", *lines]) if lines else ""
    return web.json_response({"representation": text})


WORKSPACE = "/v3/workspaces/{workspace}"
ROUTES = [
    web.post("/v3/workspaces", workspaces),
    web.post(f"{WORKSPACE}/peers", peers),
    web.post(f"{WORKSPACE}/peers/{{peer}}/search", search_messages),
    web.post(f"{WORKSPACE}/peers/{{peer}}/representation", representation),
    web.post(f"{WORKSPACE}/sessions", sessions),
    web.delete(f"{WORKSPACE}/sessions/{{session}}", delete_session),
    web.post(f"{WORKSPACE}/sessions/{{session}}/messages", add_messages),
    web.post(f"{WORKSPACE}/sessions/{{session}}/messages/list", list_messages),
    web.post(f"{WORKSPACE}/conclusions", add_conclusions),
    web.post(f"{WORKSPACE}/conclusions/list", list_conclusions),
    web.post(f"{WORKSPACE}/conclusions/query", query_conclusions),
    web.delete(f"{WORKSPACE}/conclusions/{{conclusion}}", delete_conclusion),
]
