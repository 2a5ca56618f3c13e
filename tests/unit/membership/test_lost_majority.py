"""A quorum that nobody leads, where not everything that would be counted is known."""

from __future__ import annotations

from typing import Any, cast

import pytest

from backends.base.membership import (
    NOTHING_READ,
    ClusterNode,
    EveryAddress,
    Membership,
    NodeProbe,
    ProcessRole,
)
from console.jobs.quorum.quorum_report import lost_lines
from console.reading.quorum_state import UNLOADED, lost, saved_voters
from recovery.cluster_health import QuorumState, quorum_finding
from recovery.membership.quorum_without_leader import QuorumWithoutLeader, VoterHost
from recovery.model import Unknown, Why
from tests.unit.membership.quorums import key
from tests.unit.membership.random_replacement import cluster


def test_without_the_voters_known_no_count_is_claimed() -> None:
    """Four have registered, one of them was removed since: how many must come back is not known."""
    up = VoterHost(key(1), "h1:9093", True, "", -1, 42)
    down = [VoterHost(key(node), f"h{node}:9093", False, "refused", -1, -1) for node in (2, 3, 4)]
    said = QuorumWithoutLeader("c", (up, *down), False, "").sentence
    assert "1 of the 4 controllers that have registered answer. Which of them are voters is not known" in said
    assert "at most 2 of: 2 (h2:9093), 3 (h3:9093), 4 (h4:9093)" in said
    assert "are needed" not in said


def test_one_on_a_new_disk_is_not_counted_among_those_that_are_enough() -> None:
    hosts = (
        VoterHost(key(1), "h1:9093", True, "", 90, 80),
        VoterHost(key(2), "h2:9093", True, "UNSUPPORTED_VERSION", 90, -1),
        *(VoterHost(key(node), f"h{node}:9093", False, "refused", 80, -1) for node in (3, 4, 5)),
    )
    said = QuorumWithoutLeader("c", hosts, True, "then").sentence
    assert "Bring back 1 of: 3" in said
    assert "or its disk is new. With a new disk it does not count, and 1 more must come back" in said


def test_one_that_was_seen_with_a_new_disk_is_no_voter_though_it_answers() -> None:
    hosts = (
        VoterHost(key(1), "h1:9093", True, "", 90, 120, other="another"),
        VoterHost(key(2), "h2:9093", True, "", 90, 80),
        VoterHost(key(3), "h3:9093", False, "refused", 80, -1),
    )
    found = QuorumWithoutLeader("c", hosts, True, "then")
    assert "1 of 3 voters answer and 2 are needed" in found.sentence
    assert "Bring back 1 of: 1 (h1:9093), 3 (h3:9093)" in found.sentence
    row = next(line for line in lost_lines(found) if line.startswith("  1 "))
    assert "NEW DISK" in row
    assert "last seen with another: no voter" in row


async def test_a_new_disk_that_was_seen_beside_its_voter_is_remembered() -> None:
    backend = cluster((100, 101, 102))
    await backend.open()
    world = backend.simulation.world
    world.kill_controller(101)
    world.replace_controller_disk(101)
    world.start_controller(101)
    await backend.advance(5)
    kept = saved_voters(await backend.membership.describe(), "now")
    for node in (100, 102):
        world.kill_controller(node)
    world.start_controller(102)
    await backend.advance(10)
    found = await lost(backend.membership, "c", kept)
    assert [host.key.id for host in found.hosts if host.other] == [101]
    assert "1 of 3 voters answer and 2 are needed" in found.sentence


class Unloaded:
    """Stands for a real quorum without a leader: a simulated controller answers whatever it has loaded."""

    def __init__(self, told: Unknown) -> None:
        self.told = told

    async def every_address(self, _further: object) -> EveryAddress:
        loaded = NodeProbe("h1:9093", "c", 1, -1, (0, 1), 42, Unknown(Why.NOT_ALLOWED, ""))
        nodes = (
            ClusterNode(1, ProcessRole.CONTROLLER, "h1:9093", loaded),
            ClusterNode(2, ProcessRole.CONTROLLER, "h2:9093", self.told),
            ClusterNode(3, ProcessRole.CONTROLLER, "h3:9093", Unknown(Why.NOT_ANSWERED, "")),
        )
        return EveryAddress((), nodes, {})


@pytest.mark.parametrize(
    "told",
    [
        Unknown(Why.NOT_OFFERED, f"UNSUPPORTED_VERSION: {UNLOADED}"),
        Unknown(Why.NOT_ANSWERED, f"h2:9093: {NOTHING_READ}, which needs a quorum with a leader"),
    ],
)
async def test_a_controller_that_answers_without_any_metadata_is_not_called_down(told: Unknown) -> None:
    membership: Any = Unloaded(told)
    found = await lost(membership, "c", None)
    assert [host.key.id for host in found.down] == [3]
    assert [host.key.id for host in found.without_metadata] == [2]
    row = next(line for line in lost_lines(found) if line.startswith("  2 "))
    assert "none reported" in row
    assert "DOWN" not in row


class Unreachable3:
    """Three controllers that were named by their addresses, each dead in its own way."""

    async def every_address(self, _further: object) -> EveryAddress:
        problems = ("connection refused", "connect timed out", "name not resolved")
        nodes = tuple(
            ClusterNode(-1, ProcessRole.CONTROLLER, f"kafka-{n}:9093", Unknown(Why.NOT_ANSWERED, why))
            for n, why in enumerate(problems)
        )
        return EveryAddress((), nodes, {})


async def test_each_controller_that_does_not_answer_has_its_own_reason() -> None:
    found = await lost(cast("Membership", Unreachable3()), "c", None)
    assert [host.why for host in found.hosts] == [
        "not answered: connection refused",
        "not answered: connect timed out",
        "not answered: name not resolved",
    ]
    assert [host.stopped for host in found.hosts] == [True, False, False]


async def test_a_controller_that_says_that_it_leads_is_no_proof_that_nobody_does() -> None:
    """The brokers that were asked are cut off from the controllers, and this side is not."""
    backend = cluster((100, 101, 102))
    await backend.open()
    found = await lost(backend.membership, backend.cluster_id, None)
    assert all(host.answers for host in found.hosts)
    assert not found.proved
    assert quorum_finding(found).state is QuorumState.NOT_REACHED_BY_BROKERS
    assert found.sentence.startswith(
        "controller 100 says that it leads. The brokers that answer are cut off from it"
    )
    await backend.close()
