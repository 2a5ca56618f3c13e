"""A quorum that answers and does not commit: two readings, three seconds apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from console.jobs.quorum.quorum_report import status_lines
from console.reading.quorum_state import read_quorum_state, settled_quorum
from recovery.membership.preflight import strength
from recovery.membership.quorum import Quorum
from recovery.membership.voters import Voter, VoterSet
from recovery.model import Unknown, Why
from tests.unit.membership.quorums import CLUSTER, NOW, quorum
from tests.unit.membership.random_replacement import cluster


class Readings:
    """Quorums as a leader would describe them one after the other. A stand-in: no healthy follower can be made to
    fetch and never to catch up.
    """

    def __init__(self, *readings: Quorum) -> None:
        self._readings = list(readings)
        self.paused = 0.0

    async def open(self) -> str:
        return CLUSTER

    async def describe(self) -> Quorum:
        return self._readings.pop(0) if len(self._readings) > 1 else self._readings[0]

    async def controllers(self) -> Unknown:
        return Unknown(Why.NOT_ALLOWED, "DescribeCluster needs ALTER on Cluster:kafka-cluster")

    async def pause(self, seconds: float) -> None:
        self.paused += seconds


async def test_a_high_watermark_that_stands_still_for_three_seconds_is_a_wedge() -> None:
    first = quorum(1, 2, 3, down=(2, 3))
    later = replace(first, now_ms=NOW + 3000, log_end_offset=506)
    membership: Any = Readings(first, later)
    seen = await read_quorum_state(membership)
    assert seen.health.wedged is True
    assert membership.paused == 3.0
    lines = list(status_lines(seen))
    assert any(line.startswith("WEDGED") for line in lines)
    assert any(line.startswith("CANNOT COMMIT") for line in lines)
    assert any("needs ALTER on Cluster" in line for line in lines)


async def test_a_leader_that_is_no_voter_is_named_with_what_to_do() -> None:
    of = quorum(1, 2, 3)
    membership: Any = Readings(replace(of, voters=VoterSet(of.voters.voters[1:])))
    seen = await read_quorum_state(membership)
    assert not seen.health.well
    assert any("controller 1 leads but is no voter" in line for line in status_lines(seen))


async def test_a_healthy_quorum_is_looked_at_once() -> None:
    membership: Any = Readings(quorum(1, 2, 3))
    seen = await read_quorum_state(membership)
    assert seen.health.wedged is None
    assert membership.paused == 0


async def test_a_quorum_that_does_not_commit_is_not_waited_for_for_ever() -> None:
    stuck = replace(quorum(1, 2, 3), change_pending=None, high_watermark=490)
    membership: Any = Readings(stuck, *(replace(stuck, now_ms=NOW + 100 * n) for n in range(100)))
    found = await settled_quorum(membership)
    assert found.quorum.change_pending is None
    assert membership.paused < 6


async def test_who_is_to_join_a_single_voter_is_given_the_time_to_fetch_once_more() -> None:
    """A leader alone waits for nobody: a newcomer that fetches twice a second would seem down most of the time."""
    backend = cluster((100,), (110,))
    await backend.open()
    backend.simulation.world.start_controller(110)
    await backend.advance(5)
    for _ in range(10):
        await backend.advance(0.13)
        quorum, limits = await settled_quorum(backend.membership, 110)
        (new,) = [held.key for held in quorum.progress if held.key.id == 110]
        both = VoterSet((*quorum.voters.voters, Voter(new)))
        assert strength(quorum, both, limits).commits
