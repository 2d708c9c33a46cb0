"""List approval rules, remove one, or test what would be decided about a command."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from keryx.aio.loops import run_loop
from keryx.app import Keryx
from keryx.app.services.approval_rules import configured_rules, try_command
from keryx.cli.screens.approval_prompt import needs_in_words
from keryx.cli.values import folder
from keryx.dates import time_text
from keryx.engine.approvals import KeptRule, rule_in_words


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    list_ = verbs.add_parser("list", help="show the rules and what each allows")
    list_.add_argument("--json", action="store_true", help="print one rule per line, as JSON")
    remove = verbs.add_parser("remove", help="remove a rule: such calls need approval again")
    remove.add_argument("rule", help="the id of the rule, as `list` shows it")
    test = verbs.add_parser("test", help="show what would be decided about a command; runs nothing")
    test.add_argument("command", help="the command for the terminal tool, quoted as one argument")
    test.add_argument("--workspace", type=folder, default=".", help="the folder to work in")
    test.add_argument(
        "--mode", choices=("ask", "auto", "never"), help="approval mode; default: the configured"
    )
    test.add_argument("--read-only", action="store_true", help="test for a read-only session")
    test.add_argument("--json", action="store_true", help="print the result as JSON")


def run(options: argparse.Namespace) -> int:
    return run_loop(_run(options))


async def _run(options: argparse.Namespace) -> int:
    async with Keryx(home=options.home, resume=False) as app:
        if options.verb == "list":
            return await _list(app, as_json=options.json)
        if options.verb == "test":
            return await _test(app, options)
        if await app.host_client.remove_rule(options.rule):
            return 0
    print(
        f"keryx: there is no rule {options.rule!r}; `keryx approvals list` shows all rules",
        file=sys.stderr,
    )
    return 1


async def _list(app: Keryx, *, as_json: bool) -> int:
    rules = await app.host_client.rules()
    if as_json:
        for rule in rules:
            fields = msgspec.to_builtins(rule) | {"says": rule_in_words(rule)}
            print(msgspec.json.encode(fields).decode())
        return 0
    for rule in rules:
        print(f"{rule.rule_id}  {_creation_date(rule)}  allow {rule_in_words(rule)}")
    for rule in configured_rules(app.host_client.config):
        print(f"config.toml  {rule.verdict} {rule_in_words(rule)}")
    if not rules:
        print("there are no rules from `Always allow` yet", file=sys.stderr)
    return 0


async def _test(app: Keryx, options: argparse.Namespace) -> int:
    workspace = Path(options.workspace).resolve()  # noqa: ASYNC240 (nothing else runs here)
    host_client = app.host_client
    trial = try_command(
        host_client.config,
        await host_client.rules(),
        host_client.tools.by_name,
        options.command,
        workspace,
        mode=options.mode,
        read_only=options.read_only,
    )
    if options.json:
        print(msgspec.json.encode(trial).decode())
        return 0
    print(f"{trial.verdict}: {trial.reason}")
    print(f"risk: {trial.level}" + (f", {trial.why}" if trial.why else ""))
    print(f"needs: {', '.join(needs_in_words(trial.needs)) or 'nothing beyond the confinement'}")
    for rule in trial.rules:
        print(f"rule: {rule.rule_id or 'config.toml'}  {rule.verdict} {rule.says}")
    if trial.covers:
        print(f"Always allow would cover: {', '.join(trial.covers)}")
    return 0


def _creation_date(rule: KeptRule) -> str:
    if rule.made_at is None:
        return "some time ago   "
    return time_text(rule.made_at)
