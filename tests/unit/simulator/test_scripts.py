"""The scripts of the side-by-side runs, in the simulator alone: each comes to what it says real Kafka comes to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from recovery.controller.rules import ControllerRules
from tests.contract.simulated_cluster_driver import QUICK
from tests.side_by_side.both_clusters import SimulatedSide
from tests.side_by_side.comparison import compare, read_differences, simulate
from tests.side_by_side.quorum import QuorumSnapshot, SimulatedHosts, joining, play
from tests.side_by_side.script import names, read


@pytest.mark.parametrize("name", [*names(), *names(cuts=True)])
async def test_the_script_comes_to_what_it_shows(name: str) -> None:
    script = read(name)
    points = await simulate(script, SimulatedSide())
    assert len(points) == len(script.steps)


def test_no_two_scripts_share_a_topic_for_they_share_a_cluster() -> None:
    topics = [topic.name for name in names() for topic in read(name).topics]
    assert len(set(topics)) == len(topics)


async def test_a_cluster_that_follows_other_rules_is_found_out() -> None:
    """By the letter of KIP-966 a new min ISR leaves the ELR of offline partitions alone."""
    name = "offline-partitions-changed"
    script = read(name)
    points = await simulate(script, SimulatedSide())
    assert await compare(name, script, points, SimulatedSide(seed=2)) == []
    other = SimulatedSide(config=replace(QUICK, rules=ControllerRules(kip966_min_isr_change=True)))
    found = await compare(name, script, points, other)
    assert found and all(line.startswith("step 13") and "lower-0" in line for line in found), found


def test_every_known_difference_is_of_a_script_that_there_is() -> None:
    known = read_differences()
    steps = [(row.script, row.step) for row in known.differences] + [
        (row.script, row.step) for row in known.races
    ]
    assert all(step <= len(read(script).steps) for script, step in steps)


@pytest.mark.parametrize("name", names(quorum=True))
async def test_a_script_about_the_quorum_ends_with_three_voters_of_the_present_disks(name: str) -> None:
    side = SimulatedSide()
    seen = await play(read(name), side, SimulatedHosts(side.world))
    assert seen[-1] == QuorumSnapshot((("first", True), ("second", True), ("third", True)), ())


@pytest.mark.parametrize("name", names(quorum=True, auto_join=True))
async def test_controllers_that_join_by_themselves_are_voters_again(name: str) -> None:
    seen = await play(read(name), *joining())
    assert seen[-1] == QuorumSnapshot((("first", True), ("second", True), ("third", True)), ())
