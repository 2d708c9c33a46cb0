"""What was used in a period, in groups, over HTTP: as JSON and as CSV; and the facts of a log."""

from __future__ import annotations

import csv
import io
import time
from pathlib import Path

import pytest

from keryx.errors import ModelError
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply
from tests.server.served_host import ServedHost, scripted, served_host

REPORT = "/api/usage/report"


def reading() -> ScriptedModel:
    """Reads a file that does not exist, then rests."""

    def reply(text: str) -> ScriptedReply:
        if not text:
            return ScriptedReply(text="Read.")
        return ScriptedReply(calls=[ScriptedCall("read_file", {"path": "none.txt"})])

    return scripted(reply)


async def one_turn(here: ServedHost) -> str:
    session_id = await here.client.open()
    sent = await here.client.say(session_id, "read it")
    await here.client.finished(session_id, sent["turn_id"])
    return session_id


@pytest.mark.promise("page20.16")
async def test_usage_is_grouped_in_every_way_and_adds_up(tmp_path: Path) -> None:
    async with served_host(tmp_path, model=reading()) as here:
        names = {await one_turn(here), await one_turn(here)}
        reports = {
            by: await here.client.get(f"{REPORT}?by={by}")
            for by in ("day", "model", "purpose", "session", "tool")
        }
        for by, report in reports.items():
            assert report["by"] == by
            assert report["total"] == reports["model"]["total"]
            groups = report["usage"]
            for field in ("requests", "input_tokens", "output_tokens"):
                total = report["total"][field]
                assert sum(group[field] for group in groups) == (0 if by == "tool" else total)
        assert reports["model"]["total"]["cost"] is None
        assert {group["name"] for group in reports["session"]["usage"]} == names
        assert reports["session"]["titles"].keys() <= names
        [tool] = reports["tool"]["tools"]
        assert (tool["name"], tool["calls"], tool["failed"]) == ("read_file", 2, 2)
        assert reports["model"]["tools"] == []
        assert sum(group["failed"] for group in reports["day"]["tools"]) == 2
        assert reports["model"]["total"]["first_token"] >= 0
        one = await here.client.get(f"{REPORT}?by=session&session_id={min(names)}")
        assert [group["name"] for group in one["usage"]] == [min(names)]


@pytest.mark.promise("page20.16")
async def test_turns_that_failed_are_counted(tmp_path: Path) -> None:
    def reply(text: str) -> ScriptedReply:
        error = ModelError("auth", "who are you?", "give a key") if text == "fail" else None
        return ScriptedReply(text="Yes.", error=error)

    async with served_host(tmp_path, model=scripted(reply)) as here:
        session_id = await here.client.open()
        for text in ("work", "fail"):
            sent = await here.client.say(session_id, text)
            await here.client.finished(session_id, sent["turn_id"])
        for by in ("day", "session"):
            report = await here.client.get(f"{REPORT}?by={by}")
            [group] = report["usage"]
            assert (group["turns"], group["failed_turns"]) == (2, 1)
        report = await here.client.get(f"{REPORT}?by=model")
        assert {group["failed_turns"] for group in report["usage"]} == {None}
        assert (report["total"]["turns"], report["total"]["failed_turns"]) == (2, 1)
        text = (await here.client.ask("GET", f"{REPORT}.csv?by=session")).raw.decode()
        [row] = csv.DictReader(io.StringIO(text))
        assert (row["turns"], row["failed_turns"]) == ("2", "1")


@pytest.mark.promise("page20.16")
async def test_days_are_those_of_the_time_zone_and_a_period_has_two_ends(tmp_path: Path) -> None:
    async with served_host(tmp_path, model=reading()) as here:
        await one_turn(here)
        # These zones are 26 hours apart: they never have the same day.
        west = await here.client.get(f"{REPORT}?by=day&zone=Etc/GMT%2B12")
        east = await here.client.get(f"{REPORT}?by=day&zone=Etc/GMT-14")
        assert west["usage"][0]["name"] < east["usage"][0]["name"]
        later = time.time() + 86_400
        for query in (f"since={later}", f"until={later - 3 * 86_400}"):
            empty = await here.client.get(f"{REPORT}?{query}")
            assert (empty["usage"], empty["total"]["requests"]) == ([], 0)
        both = await here.client.get(f"{REPORT}?since={later - 3 * 86_400}&until={later}")
        assert both["total"]["requests"] > 0


@pytest.mark.promise("page20.16")
async def test_a_report_is_exported_as_csv(tmp_path: Path) -> None:
    async with served_host(tmp_path, model=reading()) as here:
        await one_turn(here)
        answer = await here.client.ask("GET", f"{REPORT}.csv?by=tool")
        assert answer.status == 200
        assert answer.headers["content-type"].startswith("text/csv")
        assert "usage-by-tool.csv" in answer.headers["content-disposition"]
        head, row, *rest = answer.raw.decode().splitlines()
        assert (head, rest) == ("tool,calls,failed,seconds", [])
        assert row.startswith("read_file,1,1,")
        by_model = (await here.client.ask("GET", f"{REPORT}.csv")).raw.decode().splitlines()
        # The cost is unknown: it is empty, not 0.
        assert by_model[0].endswith(",cost,known_cost,turns,failed_turns,first_token")
        assert ",," in by_model[1]


@pytest.mark.promise("page20.16")
@pytest.mark.parametrize(
    ("query", "status", "word"),
    [
        ("by=colour", 400, "bad_request"),
        ("since=then", 400, "bad_request"),
        ("since=-1", 400, "bad_request"),
        ("zone=../../etc/passwd", 400, "bad_request"),
        ("session_id=a/b", 400, "bad_request"),
        ("since=20&until=10", 422, "refused"),
        ("zone=Europe", 422, "refused"),
        ("zone=Middle/Earth", 422, "refused"),
    ],
)
async def test_wrong_input_is_refused(tmp_path: Path, query: str, status: int, word: str) -> None:
    async with served_host(tmp_path) as here:
        for path in (REPORT, f"{REPORT}.csv"):
            (await here.client.ask("GET", f"{path}?{query}")).problem(status, word)


@pytest.mark.promise("page20.17")
async def test_facts_are_read_in_pages_without_gaps(tmp_path: Path) -> None:
    async with served_host(tmp_path, model=reading()) as here:
        name = await one_turn(here)
        path = f"/api/sessions/{name}/facts"
        whole = (await here.client.get(f"{path}?limit=500"))["facts"]
        assert [fact["seq"] for fact in whole] == list(range(1, len(whole) + 1))
        assert {"turn.started", "call.started", "turn.finished"} <= {f["type"] for f in whole}
        facts = (page := await here.client.get(f"{path}?limit=3"))["facts"]
        while page["next"] is not None:
            page = await here.client.get(f"{path}?limit=3&after={page['next']}")
            facts += page["facts"]
        assert facts == whole
        for query in ("limit=0", "after=x", "limit=501"):
            (await here.client.ask("GET", f"{path}?{query}")).problem(400, "bad_request")
        (await here.client.ask("GET", "/api/sessions/s_none/facts")).problem(404, "not_found")
