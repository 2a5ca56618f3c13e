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


def test_the_json_of_status_still_counts_what_was_seen(call: Caller) -> None:
    ended = call("ktriage", "status", *LOST, "--output", "json")
    assert ended.status == 1
    assert json.loads(ended.out)["counts"]["offline"] == 0
