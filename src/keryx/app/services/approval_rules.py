"""The rules that people made with the answer `always`: one record each, for all sessions.

Any process of the home reads the records; only the host removes one, so that the removal takes
effect at once in every session that runs there. Who shows a request reads its whole call here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from keryx import events as ev
from keryx.config import Config
from keryx.decoding import json_decoder
from keryx.engine.approvals import Approvals, KeptRule, Rule, Trial, rule, try_call
from keryx.engine.approvals.answers import ALWAYS
from keryx.errors import UserMustActError
from keryx.messages import ApprovalMode
from keryx.ports.store import Store
from keryx.ports.tool import Tool

TERMINAL: Final = "terminal"
_decode: Final = json_decoder(KeptRule).decode


async def read_rules(store: Store) -> list[KeptRule]:
    """Return all rules, the oldest first. Rules of older versions have no time and come first."""
    records = await store.records(ALWAYS)
    rules = [
        msgspec.structs.replace(_decode(value), rule_id=_id_of(key))
        for key, value in records.items()
    ]
    return sorted(rules, key=lambda rule: rule.made_at or 0.0)


def set_policy(approvals: Approvals, config: Config) -> None:
    """Apply the approval settings of the configuration: mode, expiry, rules and fence."""
    approvals.mode, approvals.expires = config.approvals.mode, config.approvals.expires
    approvals.rules, approvals.fence = configured_rules(config), config.fence


def try_command(
    config: Config,
    rules: Sequence[KeptRule],
    tools: Mapping[str, Tool],
    command: str,
    workspace: Path,
    *,
    mode: ApprovalMode | None = None,
    read_only: bool = False,
) -> Trial:
    """Return the decision on a command of a new session in that folder. Runs nothing."""
    tool = tools.get(TERMINAL)
    if tool is None:
        raise UserMustActError(
            f"commands cannot be checked: this host has no tool {TERMINAL!r}; add it to the tools"
        )
    approvals = Approvals(always=[*rules])
    set_policy(approvals, config)
    arguments = {"command": command}
    return try_call(approvals, tool, arguments, workspace, mode=mode, read_only=read_only)


def configured_rules(config: Config) -> tuple[Rule, ...]:
    """Return the rules of the configuration."""
    approvals = config.approvals
    return (
        *(rule("deny", words) for words in approvals.deny),
        *(rule("allow", words) for words in approvals.allow),
        *(rule("ask", words) for words in approvals.ask),
    )


class RuleBook:
    """The rules that the host's sessions apply. Belongs to the host's loop."""

    def __init__(self, store: Store, rules: list[KeptRule]) -> None:
        self._store = store
        self.rules: list[Rule] = [*rules]
        """Read by every call, and changed only in this class."""

    async def refresh(self) -> None:
        """Read the rules again: other hosts of the home may have added some."""
        self.rules[:] = await read_rules(self._store)

    def add(self, rule: Rule) -> None:
        """Add a rule that is in the store already."""
        self.rules.append(rule)

    async def remove(self, rule_id: str) -> bool:
        """Remove a rule; durable once this returns. False: there is no such rule."""
        removed = [rule for rule in self.rules if _is(rule, rule_id)]
        self.rules[:] = [rule for rule in self.rules if not _is(rule, rule_id)]
        try:
            return await self._store.drop_record(_key_of(rule_id))
        except BaseException:
            # The rule is still in the store, and the caller gets the error.
            self.rules += removed
            raise


def _is(rule: Rule, rule_id: str) -> bool:
    return isinstance(rule, KeptRule) and rule.rule_id == rule_id


def _id_of(key: str) -> str:
    """Return the rule's id. One answer may make several rules, which are numbered."""
    approval_id, _, number = key.removeprefix(ALWAYS).rpartition("/")
    return f"{approval_id}.{number}"


def _key_of(rule_id: str) -> str:
    approval_id, _, number = rule_id.rpartition(".")
    return f"{ALWAYS}{approval_id}/{number}"


async def with_whole_arguments(request: ev.ApprovalAsked, store: Store) -> ev.ApprovalAsked:
    """Return the request with all arguments: the event has only the beginning of long ones."""
    data = None if request.arguments_blob is None else await store.blob(request.arguments_blob)
    if data is None:
        return request
    arguments = data.decode(errors="replace")
    return msgspec.structs.replace(request, arguments=arguments, arguments_blob=None)
