"""What would be decided about a command, over the API and on the command line. Nothing runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import keryx
from tests.server.server_process import served

pytestmark = pytest.mark.promise("walls.10")

CONFIG = """[approvals]
deny = ["terminal:git push*"]
allow = ["terminal:make*"]
ask = ["terminal:touch*"]
"""

CASES: list[tuple[str, dict[str, Any], str, str]] = [
    ("ls", {}, "allow", ""),
    ("touch ran", {}, "ask", "ask terminal: what matches touch*, in every folder"),
    ("touch ran", {"mode": "never"}, "allow", ""),
    ("touch ran", {"read_only": True}, "deny", ""),
    ("make", {"mode": "ask"}, "allow", "allow terminal: what matches make*, in every folder"),
    (
        "git -C . push; touch ran",
        {"mode": "never"},
        "deny",
        "deny terminal: what matches git push*",
    ),
    ("curl https://example.org", {}, "ask", ""),
    ("rm -rf /", {}, "ask", ""),
]


def options_of(settings: dict[str, Any]) -> list[str]:
    words = ["--mode", settings["mode"]] if "mode" in settings else []
    return [*words, *(["--read-only"] if settings.get("read_only") else [])]


def check(trial: dict[str, Any], verdict: str, rule: str) -> None:
    assert trial["verdict"] == verdict, trial
    assert trial["reason"]
    shown = [f"{one['verdict']} {one['says']}" for one in trial["rules"]]
    assert any(one.startswith(rule) for one in shown) if rule else shown == []


async def test_both_say_what_would_be_decided_by_which_rule_and_why(tmp_path: Path) -> None:
    home, workspace = tmp_path / "home", tmp_path / "workspace"
    home.mkdir()
    (home / "config.toml").write_text(CONFIG)
    async with served(tmp_path) as (client, _):
        for command, settings, verdict, rule in CASES:
            body = {"command": command, "workspace": str(workspace), **settings}
            over_api = await client.post("/api/approvals/test", body, status=200)
            check(over_api, verdict, rule)
            words = ("approvals", "test", command, "--workspace", str(workspace))
            printed = keryx(home, *words, *options_of(settings), "--json")
            assert json.loads(printed.stdout) == over_api
            plain = keryx(home, *words, *options_of(settings))
            assert plain.stdout.startswith(f"{verdict}: {over_api['reason']}\n")
            assert rule in plain.stdout
        refused = await client.ask("POST", "/api/approvals/test", json={"command": 1})
        assert refused.status == 400
    assert not (workspace / "ran").exists()


async def test_needs_and_what_always_would_cover_are_told(tmp_path: Path) -> None:
    async with served(tmp_path) as (client, _):
        body = {"command": "npm install > /srv/log"}
        trial = await client.post("/api/approvals/test", body, status=200)
        assert trial["needs"] == {"network": True, "reads": [], "writes": ["/srv/log"]}
        trial = await client.post("/api/approvals/test", {"command": "npm test"}, status=200)
        assert (trial["covers"], trial["mode"]) == (["npm test"], "auto")
        description = await client.get("/api/openapi.json")
        assert "post" in description["paths"]["/api/approvals/test"]
