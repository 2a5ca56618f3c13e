"""What to do first, as programs read it: the same steps in ``status`` and ``plan`` as on the screen."""

from __future__ import annotations

import json

import pytest

from tests.unit.cli.command_process import Caller

STANDING = ("--simulate", "last-replica-standing")


@pytest.mark.parametrize("line", [("status",), ("plan", "--all-offline-partitions", "plan.json")])
def test_the_steps_are_those_of_the_table(call: Caller, line: tuple[str, ...]) -> None:
    table = " ".join(call("ktriage", *line, *STANDING).out.split())
    again = [word.replace("plan.json", "again.json") for word in line]
    document = json.loads(call("ktriage", *again, *STANDING, "--output", "json").out)
    steps = document["steps"]
    assert sum(step["partitions"] for step in steps) == document["counts"]["offline"] > 0
    first = " ".join(filter(None, (steps[0]["action"], steps[0]["orElse"])))
    assert f"Do first: {first}" in table.replace(f" ({_name(steps[0])}):", ":")
    assert all(f"! {warning}" in table for warning in steps[0]["warnings"])
    assert all(reason in table for reason in steps[0]["reasons"])
    for step in steps:
        assert (step["kind"] == "choose") == (step["brokers"] == [])
        assert all(
            set(one) == {"broker", "electedAs", "checksRecords", "failedDisk", "cutsOff"}
            for one in step["keepDown"]
        )


def test_one_broker_is_to_be_started_first(call: Caller) -> None:
    """Broker 0 led after broker 2 had left: what only 0 holds can be read when it is back, before 2 leads."""
    out = call("ktriage", "status", "--simulate", "four-brokers-min-isr-3").out
    assert out.count("Do first") == 1 and "Then: Start" not in out
    assert "Do first: Start broker 0 if its host kept power; then broker 2: 1 partition gets a leader." in out
    assert (
        "! If its host lost power, read the disk of broker 0 first: what only broker 0 holds is cut off when"
        " broker 2 leads." in out
    )


def _name(step: dict[str, dict[str, object]]) -> str:
    return "{topic}-{partition}".format(**step["example"])


def test_the_plan_carries_them_and_since_when_partitions_are_offline(call: Caller) -> None:
    """The page for the incident channel is made from the file alone, by somebody who has no way to the cluster."""
    call("ktriage", "plan", "plan.json", *STANDING)
    file = json.loads((call.home / "plan.json").read_text())
    assert file["steps"][0] == "Do first: Start broker 2 if its host kept power; else elect 1."
    assert file["steps"][1] == "  Broker 1 holds every record that was acknowledged with acks=all."
    since = file["partitions"][0]["offlineSinceMs"]
    told = json.loads(call("ktriage", "review", "plan.json", "--output", "json").out)
    assert told["partitions"][0]["offlineSinceMs"] == since
    for line in (("--output", "markdown"), ()):
        page = call("ktriage", "review", "plan.json", *line).out
        assert "Start broker 2 if its host kept power; else elect 1." in page
        assert ("Broker 1 holds every record that was acknowledged with acks=all." in page) == (not line)
        assert "ffline for 28 s at the most when the plan was made (payments-0)" in page


def test_one_reason_for_many_partitions_and_one_warning_for_many_steps_stand_once(call: Caller) -> None:
    down = call("ktriage", "plan", "plan.json", "--simulate", "zone-power-loss").out
    assert down.count("bring back 2 (ISR or ELR) with its disk intact") == 1, down
    assert down.count("as above") == 7
    branches = call("ktriage", "status", "--simulate", "hanging-transactions").out
    assert "Do first (2 partitions): The logs differ." in branches, (
        "another step starts who cuts off what these hold"
    )
    assert "Only then (transfers-0): Start broker 3 with its old disk" in branches
    assert branches.count("Leave min.insync.replicas alone") == 1, branches


ACCEPT = "only if what stands above can never be done, accept the loss:"
ACCEPT_UNCHECKED = "only if what stands above cannot be done, elect by what was not checked"


@pytest.mark.parametrize(
    ("scenario", "strategy", "why", "then"),
    [
        ("last-replica-standing", "complete", "strategy balanced elects now", ""),
        ("four-brokers-min-isr-3", "balanced", ACCEPT_UNCHECKED, "--accept-unchecked --reason WHY"),
        ("disk-failure", "balanced", ACCEPT, "--strategy aggressive"),
        # Broker 2 is fenced, so that no strategy elects it.
        ("one-sided-cuts", "balanced", "no strategy elects a leader now", ""),
        ("one-sided-cuts", "aggressive", "no strategy elects a leader now", "--strategy aggressive"),
    ],
)
def test_where_nobody_is_elected_the_next_command_is_one_that_elects(
    call: Caller, scenario: str, strategy: str, why: str, then: str
) -> None:
    ended = call("ktriage", "plan", "plan.json", "--simulate", scenario, "--strategy", strategy)
    *_, reason, following = ended.err.splitlines()
    assert reason.startswith(why)
    assert following.startswith("next: ktriage plan")
    assert ("--strategy" in following) == then.startswith("--strategy") and then in following


def test_a_reason_that_many_partitions_share_is_told_once(call: Caller) -> None:
    told = call("ktriage", "plan", "plan.json", "--simulate", "zone-power-loss").err
    lines = [line for line in told.splitlines() if line.startswith("no leader is chosen")]
    (line,) = lines
    assert "payments-0, payments-2, payments-4, payments-6, payments-1 and 3 more: wait: bring back 2" in line


def test_a_review_without_a_cluster_says_that_a_state_file_belongs_to_the_next_command(call: Caller) -> None:
    """Without it, the plan of one rehearsal would be applied to another one."""
    state = ("--state", str(call.home / "other.json"))
    call("ktriage", "plan", "plan.json", *STANDING, *state)
    *_, hint, following = call("ktriage", "review", "plan.json").err.splitlines()
    assert "--state FILE" in hint and following.startswith("next: ktriage apply plan.json")
    assert "--state FILE" not in call("ktriage", "review", "plan.json", *STANDING, *state).err
