"""``ktriage transactions`` on a simulated incident whose markers were cut off: shown, ended, and remembered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command_server import ROOT
from tests.unit.cli.command_process import Caller

AGREED = ("--yes", "--reason", "a test")
HERE = ("--simulate", "hanging-transactions")
LATER = """
  - {at: 46, do: write-transaction, id: later-app, partitions: [transfers-0], records: 1}
  - {at: 47, do: end-transaction, id: later-app, outcome: commit}
"""
STATE_OFFLINE_TOO = "__transaction_state, replicas: [[1, 2, 3]]"


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
    recorded = elected("ktriage", "journal", *HERE).out
    assert "payments-app (1001, epoch 0), payments-0: COMMIT (written)" in recorded, recorded
    again = elected("ktriage", "transactions", "fix", "plan.json", *AGREED, *HERE)
    assert again.status == 0 and "nothing was sent" in again.out, again


def test_without_a_leader_nothing_is_said_to_be_open_or_not(call: Caller) -> None:
    assert call("ktriage", "plan", "--strategy", "aggressive", "plan.json", *HERE).status == 0
    ended = call("ktriage", "transactions", "show", "plan.json", *HERE)
    assert "transactions in 0 partitions: not known" in ended.out, ended


def test_a_named_producer_or_topic_that_is_not_there_ends_nothing(elected: Caller) -> None:
    dry = ("--outcome", "abort", "--dry-run", *HERE)
    for words, why in (
        (
            ("--topic", "payments", "--producer-id", "9999"),
            "no open transaction of producer 9999 on payments",
        ),
        (("--topic", "nope", "--producer-id", "1001"), "no topic nope on this cluster that may be seen"),
        (("plan.json", "--topic", "nope", "--producer-id", "1001"), "no topic nope in the plan"),
    ):
        ended = elected("ktriage", "transactions", "fix", *words, *dry)
        assert (ended.status, ended.out) == (2, "") and why in ended.err, ended
    named = ("--topic", "payments", "--producer-id", "1001", "--outcome", "commit")
    right = elected("ktriage", "transactions", "fix", *named, "--dry-run", *HERE)
    assert right.status == 0, right
    assert f"next: ktriage transactions fix {' '.join(named)} --simulate" in right.err, right


def test_a_coordinator_whose_log_was_cut_off_proves_nothing_by_what_it_has_in_progress(
    call: Caller, tmp_path: Path
) -> None:
    """payments-app was told that it committed; its coordinator has the transaction in progress again."""
    packaged = ROOT / "backends" / "simulator" / "scenarios" / "hanging-transactions.yaml"
    text = packaged.read_text().replace("__transaction_state, replicas: [[4]]", STATE_OFFLINE_TOO)
    text = text.replace(
        "partitions: [payments-0, refunds-0", "partitions: [__transaction_state-0, payments-0, refunds-0"
    )
    text = text.replace("operator:", LATER + "operator:")
    scenario = tmp_path / "forgets.yaml"
    scenario.write_text(text.replace("offline: 3", "offline: 4"))
    here = ("--simulate", str(scenario))
    planned = call("ktriage", "plan", "--strategy", "aggressive", "plan.json", *here)
    assert planned.status == 0 and "their coordinator then forgets what it decided" in planned.out, planned
    assert call("ktriage", "apply", "plan.json", "--rescue", "saved", *AGREED, *here).status in (0, 1)

    def endings(*words: str) -> dict[str, tuple[str, str, bool]]:
        ended = call("ktriage", "transactions", "show", "plan.json", *words, "--output", "json", *here)
        rows = json.loads(ended.out)["transactions"]
        return {row["transactionalId"]: (row["ending"], row["evidence"], row["certain"]) for row in rows}

    unknown = ("undecided", "coordinator_cut_off", False)
    assert endings() == dict.fromkeys(("payments-app", "refunds-app", "transfers-app"), unknown)
    assert endings("--rescue", "saved") == {
        "payments-app": ("committed", "rescued_marker", True),
        "refunds-app": ("aborted", "rescued_marker", True),
        "transfers-app": unknown,
    }
    left = call("ktriage", "transactions", "fix", "plan.json", *AGREED, *here)
    assert left.status == 1 and "nothing was sent" in left.out, left
    said = call("ktriage", "transactions", "show", "plan.json", *here)
    assert "may hang, outcome unknown" in said.out and "it is alive, or it ended" in said.out, said
