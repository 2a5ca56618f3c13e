"""Two of three controllers are dead: nothing may be called well, although each partition shows a leader."""

from __future__ import annotations

import json

import pytest

from recovery.membership.quorum_without_leader import QuorumWithoutLeader, VoterHost
from recovery.membership.voters import ReplicaKey
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


def test_a_plan_is_not_called_carried_out_by_states_of_before(call: Caller) -> None:
    """Broker 3 is dead, and still in each ISR."""
    rows = [{"topic": "payments", "partition": n, "designatedLeader": n + 1} for n in range(2)]
    (call.home / "plan.json").write_text(json.dumps({"partitions": rows}))
    ended = call("ktriage", "verify", *LOST, "plan.json")
    assert ended.status == 1, ended
    assert ended.out.startswith("No controller that leads can be reached: leaders and ISRs are shown as"), (
        ended
    )
    assert "all of them have the planned leader" not in ended.out
    assert "next: ktriage quorum status" in ended.err and "next: ktriage apply" not in ended.err, ended


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


def test_without_a_controller_a_failure_elects_nobody(call: Caller) -> None:
    ended = call("ktriage", "log-dirs", "--if-fails", "1", *LOST)
    assert ended.status == 1 and "nobody would be elected and no ISR would shrink" in ended.out, ended
    assert "1 would go offline" in ended.out and "0 would change leader" in ended.out, ended
    told = json.loads(call("ktriage", "log-dirs", "--if-fails", "1", *LOST, "--output", "json").out)
    assert told["withoutController"] == "no controller leads"
    assert [(row["leaderThen"], row["isrThen"] == row["isr"]) for row in told["partitions"]] == [
        (-1, True),
        (2, True),
        (3, True),
    ]


def test_without_a_controller_what_an_empty_disk_would_lead_is_not_known(call: Caller) -> None:
    swapped = call("ktriage", "log-dirs", "--swap", "1:/kafka/0", *LOST)
    assert swapped.status == 1, swapped
    assert "What an empty disk would lead once a controller leads again is not known" in swapped.err, swapped
    assert "next: ktriage quorum status" in swapped.err and "next: ktriage plan" not in swapped.err, swapped


def test_log_dirs_say_that_leaders_are_those_of_before(call: Caller) -> None:
    ended = call("ktriage", "log-dirs", *LOST)
    assert ended.status == 1
    assert "leaders and ISRs are shown as the brokers last knew them" in ended.err, ended
    assert "next: ktriage quorum status" in ended.err


def test_the_hand_over_says_which_node_must_come_back_and_what_shows_it(call: Caller) -> None:
    told = " ".join(call("ktriage", "handover", *LOST).out.split())
    assert "Bring 102 back with the disk that it had." in told, told
    (after,) = told.split("NEXT COMMANDS ")[1:]
    assert after.startswith("ktriage quorum status --simulate two-of-three-voters-lost"), told


def test_the_hand_over_has_the_command_of_the_replacement_that_its_advice_names(call: Caller) -> None:
    """One voter of three; the command shows the plan, and sends nothing."""
    failed = ("--simulate", "controller-node-failure")
    told = " ".join(call("ktriage", "handover", *failed).out.split())
    command = "ktriage quorum replace 102 --why disk --dry-run --simulate controller-node-failure"
    assert "Or replace it" in told and command in told.split("NEXT COMMANDS ")[1], told
    assert call(*command.split()).status == 0


@pytest.mark.parametrize(
    ("job", "needs"), [("elect", True), ("quorum", True), ("read", False), ("groups", False)]
)
def test_check_does_not_call_done_what_needs_a_controller(call: Caller, job: str, needs: bool) -> None:
    ended = call("ktriage", "check", "--for", job, *LOST)
    why = "no controller leads: no election and no change of the metadata can succeed now"
    assert (why in ended.err) == needs, ended
    assert "next: ktriage quorum status" in ended.err, ended
    told = json.loads(call("ktriage", "check", "--for", job, *LOST, "--output", "json").out)
    assert (why in told["problems"]) == needs, told["problems"]
    if needs:
        assert ended.status == 1 and "nothing is missing" not in ended.out, ended


def test_with_every_named_controller_down_the_ways_back_stand_beside_the_error(call: Caller) -> None:
    ended = call("ktriage", "quorum", "status", "--bootstrap-controller", "127.0.0.1:1,127.0.0.1:2")
    assert ended.status == 3 and "no controller could be asked" in ended.err, ended
    assert ended.out.startswith("cluster not known: LEADER NOT REACHED"), ended
    assert "none of the 2 controllers that were named answers" in ended.out
    assert "Others may lead: name them with --bootstrap-controller before anything else" in ended.out
    assert "1. Bring back 127.0.0.1:1 and 127.0.0.1:2, with their old disks" in ended.out
    assert "3. Rebuild: only where the disks of a majority are gone for good" in ended.out


def test_of_controllers_that_were_named_nothing_proves_that_nobody_leads() -> None:
    """Another one, which nobody named, may lead."""
    up = VoterHost(ReplicaKey(-1), "c1:9093", True, "", -1, -1)
    gone = VoterHost(ReplicaKey(-1), "c2:9093", False, "connection refused", -1, -1, stopped=True)
    found = QuorumWithoutLeader("", (up, gone), certain=False, recorded_at="", only_named=True)
    assert not found.proved
    assert found.sentence.startswith(
        "no leader can be reached: 1 of the 2 controllers that were named answers"
    )
