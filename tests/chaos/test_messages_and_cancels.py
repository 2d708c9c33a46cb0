"""No acknowledged message or cancel is lost or takes effect twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from keryx import events as ev
from tests.chaos.host_processes import Life, Zygote
from tests.chaos.kill_trials import KILLS, Trial, at_every_point, at_random_instants
from tests.chaos.state import Log

pytestmark = pytest.mark.promise("sessions.1")

AFTER_A_CANCEL = (
    *(ev.TurnStarted, ev.TurnResumed, ev.StepStarted),
    *(ev.CallStarted, ev.MessageDelivered),
)
"""What a turn never says once it is being cancelled."""

KEYS = ["1", "2", "3", "4", "5"]


class Talk(Trial):
    """Five messages, sent again in each life; two cancels and an interrupt."""

    scenario = "talk"

    def __init__(self, zygote: Zygote, folder: Path) -> None:
        super().__init__(zygote, folder)
        self.accepted: dict[str, str] = {}
        """The turn of each message that was acknowledged, by its key."""
        self.cancelled: set[str] = set()
        """The turns whose cancel was acknowledged."""

    def check(self, before: Log, life: Life) -> None:
        messages = accepted(self.log)
        for key, turn_id in life.words("accepted"):
            assert self.accepted.setdefault(key, turn_id) == turn_id, "one message, one turn"
        for key, turn_id in self.accepted.items():
            assert messages[key].turn_id == turn_id, "an acknowledged message is lost"
        for turn_id, answer in life.words("cancelled"):
            if answer == "yes":
                self.cancelled.add(turn_id)
            else:
                assert turn_id in ends(self.log), "it was said to be over, and is not"
        for turn_id in self.cancelled:
            assert turn_id in cancels(self.log), "an acknowledged cancel is lost"
        for turn_id, cancel in cancels(self.log).items():
            later = of_turn(self.log[cancel.seq :], turn_id)
            assert not [e for e in later if isinstance(e, AFTER_A_CANCEL)], "it was revived"

    def check_end(self, *, parked: bool) -> None:
        messages, over = accepted(self.log), ends(self.log)
        assert sorted(messages) == KEYS
        assert sorted(over) == sorted(message.turn_id for message in messages.values())
        for turn_id in cancels(self.log):
            assert over[turn_id].outcome == "cancelled"
        outcomes = {key: over[messages[key].turn_id].outcome for key in KEYS}
        for key, expected in {"1": "completed", "3": "cancelled", "5": "completed"}.items():
            assert outcomes[key] == expected or (parked and outcomes[key] == "parked")
        for key in ("2", "4"):
            assert outcomes[key] == "cancelled" or (parked and outcomes[key] == "parked")
        self.check_delivered(messages)

    def check_delivered(self, messages: dict[str, ev.MessageAccepted]) -> None:
        """Each message reached its turn once, or expired with it, in the order of the sending."""
        delivered = [e.message_id for e in self.log if isinstance(e, ev.MessageDelivered)]
        expired = [e.message_id for e in self.log if isinstance(e, ev.MessageExpired)]
        ids = [messages[key].message_id for key in KEYS]
        assert sorted(delivered + expired) == sorted(ids)
        assert delivered == [message_id for message_id in ids if message_id in delivered]


def accepted(log: Log) -> dict[str, ev.MessageAccepted]:
    facts = [event for event in log if isinstance(event, ev.MessageAccepted)]
    by_key = {fact.key: fact for fact in facts if fact.key is not None}
    assert len(by_key) == len(facts), "a message was accepted twice"
    return by_key


def ends(log: Log) -> dict[str, ev.TurnFinished]:
    facts = [event for event in log if isinstance(event, ev.TurnFinished)]
    by_turn = {fact.turn_id: fact for fact in facts}
    assert len(by_turn) == len(facts), "a turn ended twice"
    return by_turn


def cancels(log: Log) -> dict[str, ev.TurnCancelling]:
    facts = [event for event in log if isinstance(event, ev.TurnCancelling)]
    by_turn = {fact.turn_id: fact for fact in facts}
    assert len(by_turn) == len(facts), "a turn was cancelled twice"
    return by_turn


def of_turn(log: Log, turn_id: str) -> Log:
    return [event for event in log if getattr(event, "turn_id", None) == turn_id]


def test_no_message_or_cancel_is_lost_or_repeated_wherever_the_host_dies(
    zygote: Zygote, tmp_path: Path
) -> None:
    at_every_point(Talk, zygote, tmp_path)


@pytest.mark.timeout(60 + KILLS)
def test_no_message_or_cancel_is_lost_or_repeated_whenever_the_host_is_killed(
    zygote: Zygote, tmp_path: Path
) -> None:
    at_random_instants(Talk, zygote, tmp_path)
