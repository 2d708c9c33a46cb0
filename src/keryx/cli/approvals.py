"""List what was allowed for always and what the configuration says, or take a rule back."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime

import msgspec

from keryx.aio.loops import run_loop
from keryx.app import Keryx
from keryx.app.host.rules import configured_rules
from keryx.engine.approval import KeptRule, rule_in_words


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--home", help="where state lives; default: KERYX_HOME")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    listed = verbs.add_parser("list", help="the rules there are, and what each covers")
    listed.add_argument("--json", action="store_true", help="a rule a line, as JSON")
    remove = verbs.add_parser("remove", help="such calls are asked about again, in every session")
    remove.add_argument("rule", help="the id of a rule, as `list` shows it")


def run(options: argparse.Namespace) -> int:
    return run_loop(_run(options))


async def _run(options: argparse.Namespace) -> int:
    async with Keryx(home=options.home, resume=False) as app:
        if options.verb == "list":
            return await _list(app, as_json=options.json)
        if await app.front.remove_rule(options.rule):
            return 0
    print(
        f"keryx: there is no rule {options.rule!r}; `keryx approvals list` shows those there are",
        file=sys.stderr,
    )
    return 1


async def _list(app: Keryx, *, as_json: bool) -> int:
    rules = await app.front.rules()
    if as_json:
        for rule in rules:
            fields = msgspec.to_builtins(rule) | {"says": rule_in_words(rule)}
            print(msgspec.json.encode(fields).decode())
        return 0
    for rule in rules:
        print(f"{rule.rule_id}  {_made(rule)}  allow {rule_in_words(rule)}")
    for rule in configured_rules(app.front.config):
        print(f"config.toml  {rule.verdict} {rule_in_words(rule)}")
    if not rules:
        print("nothing was allowed for always", file=sys.stderr)
    return 0


def _made(rule: KeptRule) -> str:
    if rule.made_at is None:
        return "some time ago   "
    return f"{datetime.fromtimestamp(rule.made_at, UTC).astimezone():%Y-%m-%d %H:%M}"
