"""A topic that may not be seen, with all its replicas on brokers that are down, is not taken for none."""

from __future__ import annotations

import pytest

from tests.unit.cli.command_process import Caller

SCENARIO = """
title: The brokers of a hidden topic are down
about: The operator may see orders, and not secret, whose replicas are all on brokers that are down.
cluster:
  brokers: [{id: 1}, {id: 2}, {id: 3}, {id: 4}]
  controllers: [100, 101, 102]
topics:
  - {name: orders, replicas: [[1, 2]], records: 10}
  - {name: secret, replicas: [[3, 4]], records: 10}
faults:
  - {at: 5, do: kill, nodes: [broker-3, broker-4], note: "both are killed"}
operator: {at: 30, denied: [DENIED]}
expect: {offline: 1}
"""
NOT_KNOWN = "broker 3 and 4 listed no log dirs, and a topic may be on them alone"
NAMED = "needs DESCRIBE on topic secret"
GONE = ("--broker-id", "3", "--gone-for-good")


def denied(call: Caller, *permissions: str) -> tuple[str, str]:
    file = call.home / "away.yaml"
    file.write_text(SCENARIO.replace("DENIED", ", ".join(permissions)))
    return ("--simulate", str(file))


@pytest.mark.parametrize(
    ("permissions", "said"),
    [
        (("DESCRIBE topic secret", "CLUSTER_ACTION cluster"), NOT_KNOWN),
        (("DESCRIBE topic secret",), "secret"),
    ],
    ids=["not known", "the metadata log has it"],
)
def test_what_is_down_and_may_not_be_seen_is_not_taken_for_nothing(
    call: Caller, permissions: tuple[str, ...], said: str
) -> None:
    cluster = denied(call, *permissions)
    for words in (("status",), ("plan", "plan.json"), ("check",), ("heal", *GONE), ("transactions", "show")):
        ended = call("ktriage", *words, *cluster)
        assert ended.status == 1 and said in ended.out + ended.err, ended
        assert "nothing is offline" not in ended.err and "no partition offline" not in ended.out, ended
        assert "heal unregister" not in ended.out + ended.err, "it would take the last replicas of secret"
    handover = " ".join(call("ktriage", "handover", *cluster).out.split())
    assert said in handover and "NEXT COMMANDS ktriage status" in handover, handover
    refused = call("ktriage", "heal", "unregister", *GONE, "--dry-run", *cluster)
    assert refused.status == 1 and "could have replicas on broker 3" in refused.err, refused


def test_who_may_see_every_topic_is_told_by_the_metadata_log(call: Caller) -> None:
    """A permission that has nothing to do with it is denied: there is an authorizer, and it hides nothing."""
    cluster = denied(call, "ALTER_CONFIGS topic orders")
    status = call("ktriage", "status", *cluster)
    assert "1 offline" in status.out and "may not be seen" not in status.out + status.err, status
    healed = call("ktriage", "heal", *GONE, *cluster)
    assert "may not be seen" not in healed.out + healed.err, healed
