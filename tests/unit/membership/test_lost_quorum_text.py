"""The ways back from a quorum without a leader: the same in every command, pane and page."""

from __future__ import annotations

from dataclasses import replace

import pytest

from console.jobs.quorum.quorum_pane import QuorumPane
from console.jobs.quorum.quorum_report import lost_lines
from recovery.membership.quorum_without_leader import QuorumWithoutLeader, VoterHost
from recovery.wording.after_rebuild_text import after_rebuild
from recovery.wording.lost_quorum_text import (
    WARNING,
    action,
    asked_text,
    guide_lines,
    last_resort,
    survives,
    ways_back,
)
from tests.unit.membership.quorums import key
from tests.unit.widgets.harness import Harness, text_of

UP = VoterHost(key(100, "d"), "c100:9093", True, "", 50, 60)
GONE = tuple(
    VoterHost(key(node, "d"), f"c{node}:9093", False, "connection refused", 40 + node, -1, stopped=True)
    for node in (101, 102)
)
LOST = QuorumWithoutLeader(
    "c", (UP, *GONE), True, "then", {"broker 1": ("c100:9093",)}, frozenset({"c100:9093"})
)


def test_the_least_harm_comes_first_and_a_rebuild_last_with_its_cost_and_commands() -> None:
    one, move, rebuild = ways_back(LOST)
    assert one.title == "Bring back 1 of 102 and 101, with its old disk"
    assert "Nothing is lost" in one.cost and "Nothing is lost" in move.cost
    assert not one.commands and not move.commands
    assert rebuild.title.startswith("Rebuild: only where the disks of a majority are gone for good")
    assert "What this copy lacks is lost" in rebuild.cost
    assert rebuild.commands == last_resort(LOST)
    assert rebuild.commands[1] == (
        "ktriage quorum rebuild --from LOG_DIR --voter 100@c100:9093 --dead 101 --dead 102"
        " --data LOG_DIR_OF_EACH_BROKER --plan-out rebuild.json"
    )
    assert action(LOST) == "Start 102 or 101 with its old disk: a leader is elected, nothing is lost."
    # Between a rebuild and its start a user who has seen neither is told the same by every broker.
    blind = replace(LOST, certain=False)
    assert action(blind) == "Start 102 or 101 with its old disk, unless a rebuild replaced it."
    assert "On the hosts of all brokers ktriage quorum evidence LOG_DIR" in ways_back(blind)[0].cost


def test_without_any_controller_the_rebuild_goes_into_a_new_one() -> None:
    nobody = replace(LOST, hosts=tuple(one._replace(answers=False, stopped=True) for one in LOST.hosts))
    assert (
        "--into NEW_LOG_DIR --voter NODE@HOST:PORT --dead 100 --dead 101 --dead 102" in last_resort(nobody)[1]
    )
    assert action(nobody).startswith("Start 2 of ")


@pytest.mark.parametrize(
    "hosts",
    [
        (UP, UP._replace(key=key(101)), GONE[1]),
        (UP._replace(leads=True), *GONE),
        (),
    ],
    ids=["a majority answers", "somebody leads", "no controller is known"],
)
def test_no_way_back_is_offered_where_nothing_must_come_back(hosts: tuple[VoterHost, ...]) -> None:
    found = replace(LOST, hosts=hosts)
    assert ways_back(found) == () and last_resort(found) == () and action(found) == ""
    assert "quorum rebuild" not in "\n".join(guide_lines(found))


def test_who_may_only_be_out_of_reach_is_looked_for_first() -> None:
    """A leader may be on the other side of a cut: nobody is told to start, or rebuild, before that is known."""
    silent = GONE[0]._replace(stopped=False, why="connect timed out")
    doubtful = replace(LOST, hosts=(UP, silent, GONE[1]))
    assert not doubtful.proved
    assert action(doubtful).startswith("Find out whether 101 runs: it may lead")
    assert (
        asked_text(doubtful)
        == "3 voters asked: 1 answered, nothing listens at 102, 101 not reached (may run)"
    )


def test_a_new_disk_counts_as_a_lost_vote_and_its_old_disk_as_a_way_back() -> None:
    new = VoterHost(key(101, "d"), "c101:9093", True, "", -1, -1)
    found = replace(LOST, hosts=(UP, new, GONE[1]), answering=frozenset({"c100:9093", "c101:9093"}))
    assert (found.missing, found.short) == (0, 1)
    assert action(found).startswith("Start 102 or 101 with its old disk")
    assert "101 without metadata" in asked_text(found)
    assert "--voter 100@" in last_resort(found)[1]


def test_the_last_way_names_disks_rehearsal_and_voters_of_before_an_earlier_rebuild() -> None:
    found = replace(LOST, replaced=(key(98), key(101)), known_brokers=(1, 2))
    _, plan, rehearsal, apply = last_resort(found)
    assert "--dead 101 --dead 102 --dead 98 --data LOG_DIR_OF_BROKER_1 --data LOG_DIR_OF_BROKER_2" in plan
    assert rehearsal == "ktriage quorum rebuild rebuild.json --rehearse --kafka-dir KAFKA_DIR"
    assert apply == "ktriage quorum rebuild rebuild.json"
    assert "--data LOG_DIR_OF_EACH_BROKER" in last_resort(LOST)[1]


def test_a_new_voter_whose_former_disk_was_replaced_is_started_and_not_forbidden_in_one_breath() -> None:
    (node,) = GONE[:1]
    gone = (key(100, "d"), key(101, "first"), key(102, "d"))
    found = replace(LOST, hosts=(node,), rebuilt_at="then", replaced=gone)
    for told in (guide_lines(found), lost_lines(found)):
        text = "\n".join(told)
        assert "Start controller 101 with its disk: the rebuild of then made it the only voter" in text
        assert "Never start 100, 101 (with the disk first) or 102 with the metadata logs" in text, text


def test_the_only_voter_since_a_rebuild_is_started_first_and_another_rebuild_is_for_its_disk_alone() -> None:
    """It has led, and is down: its disk has all, and the old voters' disks are never started."""
    found = replace(LOST, hosts=GONE[:1], replaced=(key(100, "d"), key(102, "d")))
    start, _, rebuild = ways_back(found)
    assert start.title == "Start controller 101 with its disk: a rebuild made it the only voter"
    assert start.cost.endswith(
        "Never start 100 or 102 with the metadata logs that the rebuild replaced: what they"
        " lead is another quorum."
    )
    assert rebuild.title == "Rebuild: only where the disk of controller 101 is gone for good"
    assert action(found) == f"{start.title}." and "old disk" not in "\n".join(lost_lines(found))
    beside = replace(found, old_running=(100, 102))
    assert action(beside).startswith("Stop controllers 100 and 102, then start controller 101 with its disk")
    # It may run where only this side is cut off.
    assert action(replace(found, hosts=(GONE[0]._replace(stopped=False),))).startswith("Find out whether 101")


def test_a_disk_that_comes_back_loses_nothing_only_where_it_is_known_to_have_a_vote() -> None:
    """Controllers that registered need not be voters, and their disks may be those that a rebuild replaced."""
    one, move, _ = ways_back(replace(LOST, certain=False))
    for way in (one, move):
        assert way.cost.startswith("Nothing is lost where it is a voter's and no rebuild replaced it"), (
            way.cost
        )
        assert "Only a disk that a rebuild replaced must never start." in way.cost
        assert "ktriage quorum evidence LOG_DIR says whether the quorum was rebuilt" in way.cost


def test_what_survives_is_named_by_node_with_its_end() -> None:
    texts = list(survives(LOST))
    assert texts[0] == "controller 100 answers: at least to offset 60"
    assert texts[1] == "controller 101, if its disk is whole: at least to offset 141"
    assert texts[-1] == "every broker keeps a copy as it last fetched it; broker 1 answers"
    assert list(survives(replace(LOST, brokers={})))[-1].endswith("none was asked")


def test_the_guide_and_quorum_status_name_the_same_ways_and_the_guide_goes_on_to_the_end() -> None:
    guide, status = list(guide_lines(LOST)), list(lost_lines(LOST))
    ways = [line for line in status if line.startswith("  1. Bring back") or "quorum rebuild" in line]
    assert len(ways) == 4 and set(ways) <= set(guide)
    assert WARNING in guide and WARNING in status
    steps = [step.text for step in after_rebuild(100, "c100:9093", LOST.cluster_id)]
    assert guide[-len(steps) :] == [f"  {number}. {step}" for number, step in enumerate(steps, 1)]
    assert "ktriage quorum status --bootstrap-controller c100:9093" in steps[0]
    assert "ktriage quorum add NODE" in steps[-2] and "ktriage check" in steps[-1]
    assert f"--no-initial-controllers --cluster-id {LOST.cluster_id}, then ktriage" in steps[-2]


def test_a_copy_that_lacks_something_has_its_brokers_stopped_first() -> None:
    whole = [step.text for step in after_rebuild(100, "c:9093", "a-cluster", (1, 2))]
    stale = [step.text for step in after_rebuild(100, "c:9093", "a-cluster", (1, 2), loses=True)]
    assert [step for step in stale if step not in whole] == [*stale[:2], stale[4]]
    assert stale[0].startswith("Stop the brokers that run")
    assert "move the snapshots above offset 0 (*.checkpoint) out of __cluster_metadata-0" in stale[1]
    assert "Start it again" in stale[4] and "Start it again" not in whole[2]
    assert whole[1].startswith("On brokers 1,2,")


async def test_on_a_small_terminal_the_pane_has_one_action_and_one_warning_above_all_controllers() -> None:
    pane = QuorumPane()
    async with Harness(pane).run_test(size=(80, 20)) as pilot:
        pane.update(LOST)
        await pane.table.wait_settled()
        await pilot.pause()
        screen = text_of(pilot.app)
    said = " ".join(screen.split())
    assert f"NO LEADER. {action(LOST)} {WARNING}" in said and "M the ways back" in said
    assert all(f"{node}" in screen for node in (100, 101, 102))
