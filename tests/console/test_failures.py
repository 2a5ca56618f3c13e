"""What goes wrong while somebody is at the console: it shows a state, and never freezes or ends."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from console.app.session.view import Link
from console.jobs.elect.candidate_picker import CandidatePicker
from console.jobs.quorum.quorum_pane import QuorumPane
from console.target import resolve
from recovery.membership.quorum_without_leader import QuorumWithoutLeader, VoterHost
from recovery.membership.voters import ReplicaKey
from recovery.model import TopicPartition, Unknown, Why
from tests.console.faults import answers_again, becomes_another, hangs, happens, passes, scenario
from tests.console.robot import Robot, console
from tests.unit.widgets.harness import Harness, colours_of, text_of
from widgets import theme
from widgets.text import Tone

PAYMENTS = TopicPartition("payments", 0)
GREY = {str(colour.name) for colour in [theme.styles(theme.DARK)[Tone.DIM].color] if colour is not None}


async def test_a_broker_that_hangs_is_named_and_the_others_are_shown() -> None:
    async with console("last-replica-standing", size=(140, 40)) as robot:
        await hangs(robot, 0)
        await robot.looks_again()
        await robot.press("enter")
        await robot.sees("payments-0", "1,560")
        survey = robot.session.view.surveys[PAYMENTS]
        assert survey.log(1) is not None
        assert survey.log(0) is None
        await answers_again(robot, 0)
        await robot.looks_again()
        assert robot.session.view.surveys[PAYMENTS].log(0) is not None


async def test_where_nobody_can_be_elected_now_it_is_said_why(home: Path) -> None:
    path = scenario("last-replica-standing", home, **{"count: 3": "count: 4"})
    async with console(resolve(None, None, str(path), None), size=(140, 40)) as robot:
        await hangs(robot, 0, 1)
        await robot.looks_again()
        await robot.press("c")
        await robot.hears("nobody can be elected now: no replica answered")
        assert robot.session.draft.plan is None


async def test_the_cluster_is_lost_and_comes_back() -> None:
    async with console("last-replica-standing") as robot:
        await robot.arms()
        await hangs(robot, 0, 1, 2)
        await robot.press("r")
        await robot.link_is(Link.LOST)
        await robot.sees("CLUSTER LOST", "READ-ONLY: cluster lost", "payments-0", "OFFLINE")
        assert not robot.session.safety.armed
        await robot.until(lambda: colours_of(robot.app, "20 or more, old") == GREY, "an old picture, old")
        await robot.press("enter")
        await robot.sees("Replica log info: payments-0", "1,560")
        await robot.until(lambda: colours_of(robot.app, "1,560") == GREY, "the other panes, old")
        await answers_again(robot, 0, 1, 2)
        await robot.press("r")
        await robot.link_is(Link.UP)
        await robot.sees("READ-ONLY: reconnected")
        assert not robot.session.safety.armed
        await robot.until(
            lambda: len(colours_of(robot.app, "1,560")) > 1, "colours, now that it is true again"
        )


async def test_an_error_of_a_lost_cluster_goes_when_it_answers_again() -> None:
    async with console("last-replica-standing") as robot:
        await hangs(robot, 0, 1, 2)
        await robot.press("r")
        await robot.link_is(Link.LOST)
        problem = robot.session.poller.state.problem
        await robot.hears(problem)
        await answers_again(robot, 0, 1, 2)
        await robot.press("r")
        await robot.link_is(Link.UP)
        await robot.until(lambda: robot.said == "", "no error any more")


async def test_nothing_is_sent_to_a_cluster_that_is_lost() -> None:
    async with console("last-replica-standing") as robot:
        await robot.plans(1)
        await robot.arms()
        await hangs(robot, 0, 1, 2)
        await robot.press("r")
        await robot.link_is(Link.LOST)
        await robot.press("X")
        await robot.hears("the cluster is lost")


async def test_a_cluster_that_is_lost_is_not_armed_for_and_the_keys_say_so() -> None:
    async with console("last-replica-standing", size=(140, 120)) as robot:
        assert why_not_armed(robot) == ""
        await hangs(robot, 0, 1, 2)
        await robot.press("r")
        await robot.link_is(Link.LOST)
        await robot.press("A")
        await robot.hears("the cluster is lost: it can be armed once a broker answers again")
        assert not robot.session.safety.armed
        assert why_not_armed(robot).startswith("the cluster is lost"), "dim in the footer"
        await robot.press("question_mark")
        await robot.sees("the cluster is lost: it can be armed once")
        await robot.press("escape")
        await answers_again(robot, 0, 1, 2)
        await robot.press("r")
        await robot.link_is(Link.UP)
        await robot.arms()


def why_not_armed(robot: Robot) -> str:
    """What the footer and the help are told of the key."""
    return next(why for action, why in robot.desk.actions() if action.name == "arm")


async def test_a_caller_who_may_not_read_is_told_what_is_missing(home: Path) -> None:
    denied = "operator: {at: 60, denied: [READ topic payments]}"
    path = scenario("last-replica-standing", home, **{"operator: {at: 60}": denied})
    async with console(resolve(None, None, str(path), None), size=(140, 40)) as robot:
        await robot.sees("payments-0", "OFFLINE", "refused")
        await robot.press("c")
        await robot.hears("READ on topic payments")
        assert robot.session.draft.plan is None


async def test_a_min_isr_that_nobody_may_read_is_no_good_news(home: Path) -> None:
    denied = "denied: [DESCRIBE_CONFIGS topic payments]}"
    path = scenario("disk-failure", home, **{"operator: {at: 80}": f"operator: {{at: 80, {denied}"})
    async with console(resolve(None, None, str(path), None), size=(140, 40)) as robot:
        await robot.sees("may be under min ISR", "min ISR unknown for", "DESCRIBE_CONFIGS")
        await robot.opens("3")
        await robot.sees("min ISR unknown for", "DESCRIBE_CONFIGS")


STRICTER = """
title: Somebody asks for more replicas in sync
about: A replica is missing, which was allowed until just now.
cluster: {brokers: {count: 3, first: 0}, min_isr: 2}
topics:
  - {name: payments, replicas: [[0, 1, 2]], records: 100}
faults:
  - {at: 5, do: kill, nodes: [broker-0], note: "broker 0 dies"}
  - {at: 70, do: set-config, topic: payments, name: min.insync.replicas, value: "3", note: "three are asked for"}
operator: {at: 60}
expect: {offline: 0}
"""


async def test_a_min_isr_that_was_raised_just_now_is_seen_by_the_next_key(home: Path) -> None:
    """Topic configurations are kept for a minute; whoever asks for a look wants to know how it is now."""
    path = home / "stricter.yaml"
    path.write_text(STRICTER, encoding="utf-8")
    async with console(resolve(None, None, str(path), None), size=(140, 40)) as robot:
        await robot.press("O")
        await robot.sees("0 more under min ISR", "1 in all", "under-replicated")
        assert [row.min_isr for row in robot.session.rows.partitions] == [2]
        await passes(robot, 20)
        await robot.looks_again()
        await robot.sees("1 more under min ISR")
        assert [row.min_isr for row in robot.session.rows.partitions] == [3]
        assert re.search(r"\[1 Offline( partitions)?\]", robot.screen), (
            "the tab counts what is offline: nothing"
        )


async def test_a_part_that_may_not_be_seen_takes_nothing_else_away(home: Path) -> None:
    denied = "operator: {at: 60, denied: [DESCRIBE cluster]}"
    path = scenario("last-replica-standing", home, **{"operator: {at: 60}": denied})
    async with console(resolve(None, None, str(path), None), size=(140, 40)) as robot:
        await robot.sees("payments-0", "OFFLINE")
        assert isinstance(robot.session.view.quorum, Unknown)
        assert robot.session.view.quorum.why is Why.NOT_ALLOWED
        await robot.opens("4")
        await robot.sees("not allowed", "DESCRIBE")


async def test_a_cluster_that_nobody_may_describe_is_a_state_too(home: Path) -> None:
    """Nothing at all can be seen of it: the console says so, and goes on asking."""
    async with console("last-replica-standing", looked=False) as robot:
        await robot.looked()
        await happens(robot, lambda backend: backend.simulation.world.kill_broker(0))
        await happens(robot, lambda backend: backend.simulation.world.kill_broker(1))
        await robot.press("r")
        await robot.link_is(Link.LOST)
        await robot.sees("CLUSTER LOST")
        await happens(robot, lambda backend: backend.simulation.world.start_broker(1))
        await passes(robot, 5)
        await robot.press("r")
        await robot.link_is(Link.UP)


async def test_a_refresh_under_the_cursor_never_moves_it_to_another_row() -> None:
    async with console("zone-power-loss", size=(120, 30)) as robot:
        await robot.puts_the_cursor_on(TopicPartition("payments", 5))
        await robot.press("s", "S")
        await robot.settled()
        await robot.looks_again()
        assert robot.desk.table.cursor_key == TopicPartition("payments", 5)
        assert robot.desk.cursor == TopicPartition("payments", 5)


async def test_a_row_that_is_gone_is_said_and_what_was_marked_is_not_marked_any_more() -> None:
    async with console("last-replica-standing") as robot:
        await robot.press("a")
        await robot.until(lambda: PAYMENTS in robot.desk.table.marks, "a mark")
        await passes(robot, 660)
        await robot.looks_again()
        await robot.until(lambda: not robot.desk.table.counts.rows, "an empty table")
        assert not robot.desk.table.marks
        await robot.hears(
            "payments-0: broker 2 was elected, not by this console; 580 offsets of brokers 0 and 1"
        )


async def test_another_cluster_behind_the_same_name_takes_marks_plan_and_arming_away(home: Path) -> None:
    async with console("last-replica-standing") as robot:
        await robot.chooses(1)
        await robot.arms()
        await robot.press("a")
        await happens(robot, lambda backend: becomes_another(backend, "simulated.other.1"))
        await robot.press("r")
        await robot.hears("another cluster answers")
        assert robot.session.draft.plan is None
        assert not robot.session.safety.armed
        assert not robot.desk.table.marks


@pytest.mark.long
async def test_it_survives_a_terminal_of_any_size() -> None:
    async with console("last-replica-standing") as robot:
        for pane, width, height in zip("123456", (1, 2, 20, 300, 80, 1), (1, 3, 5, 100, 1, 24), strict=True):
            await robot.pilot.resize_terminal(width, height)
            await robot.opens(pane)
            await robot.looks_again()
        await robot.pilot.resize_terminal(80, 24)
        await robot.opens("1")
        await robot.sees("payments-0", "READ-ONLY")


async def test_a_cluster_that_was_lost_comes_back_without_marks_and_without_a_plan(home: Path) -> None:
    async with console("last-replica-standing", size=(140, 40)) as robot:
        await robot.plans(1)
        await robot.saves("mine.json")
        await robot.opens("1")
        await robot.press("a")
        await robot.until(lambda: robot.desk.table.marks, "a mark")
        await hangs(robot, 0, 1, 2)
        await robot.press("r")
        await robot.link_is(Link.LOST)
        assert robot.session.draft.plan is not None
        await answers_again(robot, 0, 1, 2)
        await robot.press("r")
        await robot.link_is(Link.UP)
        await robot.hears("marks and plan are gone; o loads it again from")
        assert robot.session.draft.plan is None
        assert not robot.desk.table.marks
    assert (home / "mine.json").exists()  # a file of this test


async def test_a_leader_that_is_picked_while_the_cluster_comes_back_changes_nothing() -> None:
    async with console("last-replica-standing") as robot:
        await robot.plans(1)
        await robot.press("e")
        await robot.asked(CandidatePicker)
        await hangs(robot, 0, 1, 2)
        robot.session.poller.ask()
        await robot.link_is(Link.LOST)
        await answers_again(robot, 0, 1, 2)
        robot.session.poller.ask()
        await robot.link_is(Link.UP)
        await robot.picks(0)
        await robot.idle()
        await robot.hears("the plan is another one by now")
        assert robot.session.draft.plan is None


async def test_of_a_quorum_that_nobody_leads_each_controller_is_named_and_m_shows_the_ways_back() -> None:
    async with console("two-of-three-voters-lost", size=(200, 40)) as robot:
        await robot.opens("4")
        await robot.sees("NO LEADER", "controllers that have registered", "100", "DOWN")
        await robot.press("M")
        await robot.sees("WHAT SURVIVES WHERE", "1. Bring back 1 of 102 and 101", "3. Rebuild: only where")
        await robot.sees("--voter 100@controller-100.simulated:9093 --dead 101 --dead 102")
        await robot.press("escape")
        await robot.opens("4")
        await robot.sees("Start 102 or 101 with its old disk")


async def test_a_broker_that_died_is_no_ghost() -> None:
    async with console("last-replica-standing", size=(140, 40)) as robot:
        await passes(robot, 20)
        await robot.opens("4")
        await robot.looks_again()
        await robot.sees("broker", "does not fetch")
        assert "ghost" not in robot.screen


async def test_controllers_that_are_known_by_their_addresses_only_are_rows_of_their_own() -> None:
    hosts = tuple(VoterHost(ReplicaKey(-1), f"kafka-{n}:9093", False, "refused", -1, -1) for n in (1, 2))
    pane = QuorumPane()
    async with Harness(pane).run_test(size=(100, 24)) as pilot:
        pane.update(QuorumWithoutLeader("c", hosts, False, ""))
        await pane.table.wait_settled()
        await pilot.pause()
        assert len(pane.table.shown_rows) == 2
        assert all(f"kafka-{n}:9093" in text_of(pilot.app) for n in (1, 2))
        assert "LEADER NOT REACHED" in text_of(pilot.app)
