"""Serve: `python -m tests.memory.honcho_server PORT FILE KEY`; prints the port that it has."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from aiohttp import web

from tests.memory.honcho_server.faults import Faults, Handler, Orders
from tests.memory.honcho_server.routes import ROUTES, STATE, conclusion, message
from tests.memory.honcho_server.state import State


def application(state: State, faults: Faults, key: str) -> web.Application:
    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        is_control = request.path.startswith("/control")
        if not is_control and request.headers.get("Authorization") != f"Bearer {key}":
            return web.json_response({"detail": "Invalid JWT"}, status=401)
        return await faults.handle(request, handler)

    async def order(request: web.Request) -> web.Response:
        faults.order(Orders.model_validate_json(await request.read()))
        return web.json_response({})

    async def derive(request: web.Request) -> web.Response:
        """Add a conclusion as Honcho itself derives it from messages of the user."""
        row = await request.json()
        pair = {"observer": "user", "observed": "user", "level": "explicit", "created_at": None}
        state.add("conclusions", [{**pair, **row}])
        return web.json_response({})

    async def everything(_request: web.Request) -> web.Response:
        return web.json_response(
            {
                "messages": [message(m) for m in state.rows("SELECT * FROM messages ORDER BY no")],
                "conclusions": [
                    conclusion(c) for c in state.rows("SELECT * FROM conclusions ORDER BY no")
                ],
                "sessions": state.rows("SELECT * FROM sessions"),
                "peers": state.rows("SELECT * FROM peers"),
                "workspaces": state.rows("SELECT * FROM workspaces"),
                "requests": faults.requests,
                "refusals": faults.refusals,
                "held": faults.held,
                "misbehaved": faults.misbehaved,
            }
        )

    async def reset(_request: web.Request) -> web.Response:
        state.clear()
        faults.order(Orders())
        faults.requests.clear()
        faults.refusals.clear()
        return web.json_response({})

    async def count(_request: web.Request) -> web.Response:
        (row,) = state.rows("SELECT count(*) AS conclusions FROM conclusions")
        return web.json_response(row["conclusions"])

    app = web.Application(middlewares=[guard], client_max_size=64 * 2**20)
    app[STATE] = state
    app.add_routes(
        [
            *ROUTES,
            web.post("/control/faults", order),
            web.post("/control/reset", reset),
            web.post("/control/derive", derive),
            web.get("/control/state", everything),
            web.get("/control/count", count),
        ]
    )
    return app


async def main(port: int, path: Path, key: str) -> None:
    runner = web.AppRunner(application(State(path), Faults(), key), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port)
    await site.start()
    address = runner.addresses[0]
    sys.stdout.write(f"{address[1]}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
