"""Answers to approvals and questions, of which the first counts, and the rules that they make."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from litestar import delete, get, post
from litestar.params import JSONBody

from keryx import commands as cm
from keryx import events as ev
from keryx.app.services.approval_rules import configured_rules, try_command
from keryx.engine.approvals import Trial, rule_in_words
from keryx.errors import AlreadyTakenError
from keryx.messages import ApprovalMode, Needs
from keryx.server import schemas
from keryx.server.problems import not_found
from keryx.server.routes.params import AskedId, RuleId, SessionId, TheCaller, TheService
from keryx.server.service import Service


class ApprovalRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule from an answer with `always`. `says` describes it in words.

    `tool` and `pattern` may hold * and ?. No `workspace`: in every folder. Rules of older versions
    have no `made_at` and `by`.
    """

    rule_id: str
    says: str
    tool: str
    pattern: str
    workspace: str | None
    needs: Needs
    made_at: float | None
    by: str
    session_id: str


class ConfiguredRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule of config.toml, which is changed there."""

    verdict: Literal["allow", "ask", "deny"]
    says: str
    tool: str
    pattern: str


class TriedCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A command as the terminal tool would get it. No `mode`: the configured one."""

    command: Annotated[str, msgspec.Meta(max_length=256 * 1024)]
    workspace: schemas.Folder | None = None
    mode: ApprovalMode | None = None
    read_only: bool = False


class ApprovalRules(msgspec.Struct, frozen=True):
    rules: tuple[ApprovalRule, ...]
    configured: tuple[ConfiguredRule, ...]


@post("/api/sessions/{session_id:str}/approvals/{approval_id:str}", status_code=200)
async def answer_approval(
    service: TheService,
    caller: TheCaller,
    session_id: SessionId,
    approval_id: AskedId,
    data: JSONBody[schemas.DecisionBody],
) -> schemas.Nothing:
    """Decide on a call that waits."""
    command = cm.AnswerApproval(
        command_id=service.new_id(),
        session_id=session_id,
        by=caller.name,
        approval_id=approval_id,
        decision=data.decision,
        where=caller.where,
        reach=data.reach,
    )
    await _answer(
        service,
        command,
        lambda event: isinstance(event, ev.ApprovalAsked) and event.approval_id == approval_id,
    )
    return schemas.Nothing()


@post("/api/sessions/{session_id:str}/questions/{question_id:str}", status_code=200)
async def answer_question(
    service: TheService,
    caller: TheCaller,
    session_id: SessionId,
    question_id: AskedId,
    data: JSONBody[schemas.AnswerBody],
) -> schemas.Nothing:
    """Answer a question of the agent."""
    command = cm.AnswerQuestion(
        command_id=service.new_id(),
        session_id=session_id,
        by=caller.name,
        question_id=question_id,
        answer=data.answer,
        where=caller.where,
    )
    await _answer(
        service,
        command,
        lambda event: isinstance(event, ev.QuestionAsked) and event.question_id == question_id,
    )
    return schemas.Nothing()


async def _answer(
    service: Service,
    command: cm.AnswerApproval | cm.AnswerQuestion,
    was_asked: Callable[[ev.LoggedEvent], bool],
) -> None:
    try:
        await service.do(command)
    except AlreadyTakenError:
        # The host raises this for an unknown id too: only the log tells the difference.
        if any(map(was_asked, await service.host_client.store.events(command.session_id))):
            raise
        raise not_found(
            "No approval or question with that id waits for an answer",
            "read the session again for those that do",
        ) from None


@get("/api/approvals/rules")
async def list_rules(service: TheService) -> ApprovalRules:
    """The rules from answers with `always`, and those of config.toml."""
    rules = await service.host_client.rules()
    return ApprovalRules(
        tuple(
            ApprovalRule(
                rule_id=rule.rule_id,
                says=rule_in_words(rule),
                tool=rule.tool,
                pattern=rule.pattern,
                workspace=rule.workspace,
                needs=rule.needs,
                made_at=rule.made_at,
                by=rule.by,
                session_id=rule.session_id,
            )
            for rule in rules
        ),
        tuple(
            ConfiguredRule(
                verdict=rule.verdict, says=rule_in_words(rule), tool=rule.tool, pattern=rule.pattern
            )
            for rule in configured_rules(service.host_client.config)
        ),
    )


@delete("/api/approvals/rules/{rule_id:str}", status_code=204)
async def remove_rule(service: TheService, rule_id: RuleId) -> None:
    """Remove a rule from an answer with `always`; such calls need approval again."""
    if not await service.host_client.remove_rule(rule_id):
        raise not_found(
            "There is no rule with that id",
            "it may have been removed before; list the rules again",
        )


@post("/api/approvals/test", status_code=200)
async def test_command(service: TheService, data: JSONBody[TriedCommand]) -> Trial:
    """What would be decided about a command, by which rules, and what it needs. Runs nothing."""
    workspace = await service.folder(data.workspace or ".")
    host_client = service.host_client
    return try_command(
        host_client.config,
        await host_client.rules(),
        host_client.tools.by_name,
        data.command,
        Path(workspace),
        mode=data.mode,
        read_only=data.read_only,
    )


ROUTES = (answer_approval, answer_question, list_rules, remove_rule, test_command)
