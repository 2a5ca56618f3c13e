"""``ktriage transactions`` on a simulated incident whose markers were cut off: shown, ended, and remembered."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.cli.command_process import Caller

AGREED = ("--yes", "--reason", "a test")
HERE = ("--simulate", "hanging-transactions")


@pytest.fixture
def elected(call: Caller) -> Caller:
    planned = call("ktriage", "plan", "--strategy", "aggressive", "plan.json", *HERE)
    assert planned.status == 0, planned
    ended = call("ktriage", "apply", "plan.json", *AGREED, *HERE)
    assert ended.status == 0, ended
    return call


def shown(call: Caller) -> dict[str, dict[str, Any]]:
    ended = call("ktriage", "transactions", "show", "plan.json", "--output", "json", *HERE)
    document = json.loads(ended.out)
    assert document["complete"], ended
    return {row["transactionalId"]: row for row in document["transactions"]}


def test_each_is_ended_as_it_was_decided_and_stays_so(elected: Caller) -> None:
    before = shown(elected)
    assert {name: (row["ending"], row["certain"]) for name, row in before.items()} == {
        "payments-app": ("committed", True),
        "refunds-app": ("aborted", True),
        "transfers-app": ("open", True),
    }
    assert before["payments-app"]["waitingGroups"] == ["auditor"]
    assert (before["payments-app"]["lastStableOffset"], before["payments-app"]["highWatermark"]) == (50, 170)
    ended = elected("ktriage", "transactions", "fix", "plan.json", *AGREED, *HERE)
    assert ended.status == 0 and "2 markers written and read back" in ended.out, ended
    assert "payments-0: last stable offset 171 of 171" in ended.out, ended
    assert list(shown(elected)) == ["transfers-app"], "the saved state has the markers"
    again = elected("ktriage", "transactions", "fix", "plan.json", *AGREED, *HERE)
    assert again.status == 0 and "nothing was sent" in again.out, again
