"""What someone was told is true after a crash as well: no answer comes before its commit."""

from __future__ import annotations

from pathlib import Path

import pytest

from keryx import events as ev
from keryx.app.host.homes.home import STORE
from tests.chaos.host_processes import Zygote
from tests.chaos.state import log_of

pytestmark = pytest.mark.promise("sessions.1")


def test_a_message_that_was_sent_again_meanwhile_is_not_acknowledged_before_it_is_durable(
    zygote: Zygote, tmp_path: Path
) -> None:
    host = zygote.start("send_twice", tmp_path)
    host.end()
    assert not host.ended
    assert not any(isinstance(event, ev.MessageAccepted) for event in log_of(home(tmp_path)))
    assert host.words("accepted") == []


def test_a_turn_is_not_said_to_be_over_before_its_end_is_durable(
    zygote: Zygote, tmp_path: Path
) -> None:
    host = zygote.start("cancel_at_the_end", tmp_path)
    host.end()
    assert not host.ended
    assert not any(isinstance(event, ev.TurnFinished) for event in log_of(home(tmp_path)))
    assert host.words("cancelled") == []


def test_an_approval_that_was_given_is_not_asked_for_again(zygote: Zygote, tmp_path: Path) -> None:
    child = zygote.start("ask", tmp_path)
    approval_id = child.hear("asked ").split()[1]
    child.kill()
    die = ("shown approval.answered", 1)
    answering = zygote.start("answer_alone", tmp_path, life=1, subject=approval_id, die=die)
    answering.end()
    assert not answering.ended
    log = log_of(home(tmp_path))
    (answer,) = (event for event in log if isinstance(event, ev.ApprovalAnswered))
    after = zygote.start(
        "go_on_after_the_answer", tmp_path, life=2, subject=answer.call_id, after=len(log)
    )
    assert after.hear("then") == "then call.started"


def home(folder: Path) -> Path:
    return folder / "home" / STORE
