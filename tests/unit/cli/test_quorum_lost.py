"""Two of three controllers are dead: nothing may be called well, although each partition shows a leader."""

from __future__ import annotations

import json

import pytest

from tests.unit.cli.command_process import Caller

LOST = ("--simulate", "two-of-three-voters-lost")


@pytest.mark.parametrize("command", ["status", "replicas"])
def test_what_is_shown_begins_with_the_lost_quorum(call: Caller, command: str) -> None:
    ended = call("ktriage", command, *LOST)
    assert ended.status == 1
    assert ended.out.startswith("quorum NO LEADER")


def test_a_plan_does_not_say_that_nothing_is_offline(call: Caller) -> None:
    ended = call("ktriage", "plan", *LOST, "recovery.json")
    assert ended.status == 1
    assert "nothing is offline" not in ended.err
    assert "no controller leads, so it is not known" in ended.err


@pytest.mark.parametrize("broker", ["1", "3"])
@pytest.mark.parametrize("verb", ["show", "unregister"])
def test_without_a_controller_nobody_is_called_up_or_gone(call: Caller, verb: str, broker: str) -> None:
    """Fencing is not recorded then: broker 3 is dead, and still shown as up."""
    more = ("--yes", "--reason", "a test") if verb == "unregister" else ()
    ended = call("ktriage", "heal", verb, *LOST, "--broker-id", broker, "--gone-for-good", *more)
    assert (ended.status, ended.out) == (1, "")
    assert "which brokers are up, and who leads, is not known" in ended.err


def test_status_says_what_no_controller_has_recorded(call: Caller) -> None:
    """The ISRs still have the dead broker, so nothing seems to lack a replica."""
    ended = call("ktriage", "status", *LOST)
    assert "0 not fully replicated" in ended.out
    assert (
        "broker 3 is not reached and still shown as the leader of 1 of them and in the ISR of 3" in ended.out
    )


def test_the_json_of_status_still_counts_what_was_seen(call: Caller) -> None:
    ended = call("ktriage", "status", *LOST, "--output", "json")
    assert ended.status == 1
    assert json.loads(ended.out)["counts"]["offline"] == 0
