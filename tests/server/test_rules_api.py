"""Rules over the API and the command line, at a server in a process of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import keryx
from tests.server.served_host import Client, served_host
from tests.server.server_process import served

pytestmark = pytest.mark.promise("mended.15")

RULES = "/api/approvals/rules"


async def written(client: Client, session_id: str, name: str, answer: dict[str, Any]) -> bool:
    """Write that file in a session that asks; whether it asked, which is answered so."""
    arguments = {"path": name, "content": name, "overwrite": True}
    row = await client.get(f"/api/sessions/{session_id}")
    path = f"/api/sessions/{session_id}"
    call = await client.post(
        f"{path}/calls", {"tool": "write_file", "arguments": arguments}, status=202
    )
    was_asked = False
    async with client.stream(f"{path}/events?after={row['seq']}") as events:
        async for event in events:
            if event.type == "approval.asked":
                was_asked = True
                await client.post(f"{path}/approvals/{event.data['approval_id']}", answer)
            if event.type == "call.finished" and event.data["call_id"] == call["call_id"]:
                break
    return was_asked


async def test_a_rule_is_listed_and_removed_and_stays_so_over_a_kill(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "workspace"
    async with served(tmp_path) as (client, process):
        session_id = await client.open(approvals="ask")
        always = {"decision": "always", "reach": "folder"}
        assert await written(client, session_id, "app.py", always)
        assert not await written(client, session_id, "other.py", {"decision": "deny"})
        rules = await client.get(RULES)
        (rule,) = rules["rules"]
        assert (
            rule["says"] == f"write_file: everything in {folder}, in sessions that work in {folder}"
        )
        assert (rule["session_id"], rule["workspace"]) == (session_id, str(folder))
        listed = keryx(home, "approvals", "list")
        assert rule["rule_id"] in listed.stdout
        assert rule["says"] in listed.stdout
        assert (await client.ask("DELETE", f"{RULES}/{rule['rule_id']}")).status == 204
        process.kill()
    listed = keryx(home, "approvals", "list", "--json")
    assert (listed.returncode, listed.stdout) == (0, "")
    async with served(tmp_path) as (client, _):
        assert await client.get(RULES) == {"rules": [], "configured": []}
        session_id = await client.open(approvals="ask")
        assert await written(client, session_id, "app.py", {"decision": "deny"})
    assert keryx(home, "approvals", "list").returncode == 0


async def test_the_command_line_removes_for_sessions_that_run_elsewhere(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with served(tmp_path) as (client, _):
        session_id = await client.open(approvals="ask")
        assert await written(client, session_id, "app.py", {"decision": "always"})
        assert not await written(client, session_id, "app.py", {"decision": "deny"})
        listed = keryx(home, "approvals", "list", "--json")
        rule_id = json.loads(listed.stdout)["rule_id"]
        removed = keryx(home, "approvals", "remove", rule_id)
        assert (removed.returncode, removed.stderr) == (0, "")
        assert await written(client, session_id, "app.py", {"decision": "deny"})
        again = keryx(home, "approvals", "remove", rule_id)
        assert again.returncode == 1
        assert "there is no rule" in again.stderr
    listed = keryx(home, "approvals", "list")
    assert (listed.stdout, listed.stderr) == ("", "there are no rules from `Always allow` yet\n")


async def test_what_is_wrong_is_refused_and_the_configuration_is_shown(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    text = '[approvals]\nallow = ["terminal:git *"]\ndeny = ["write_file:*.env"]\n'
    (home / "config.toml").write_text(text)
    async with served_host(tmp_path) as here:
        rules = await here.client.get(RULES)
        assert [(rule["verdict"], rule["says"]) for rule in rules["configured"]] == [
            ("deny", "write_file: what matches *.env, in every folder"),
            ("allow", "terminal: what matches git *, in every folder"),
        ]
        answer = await here.client.ask("DELETE", f"{RULES}/a-nobody.0")
        answer.problem(404, "not_found")
        session_id = await here.client.open(approvals="ask")
        path = f"/api/sessions/{session_id}/approvals/a-nobody"
        body = {"decision": "always", "reach": "the moon"}
        refused = await here.client.ask("POST", path, json=body)
        refused.problem(400, "bad_request")
