"""Consumer groups of the served simulator, as the live adapter reads and fixes them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from backends.live.adapter import LiveBackend
from backends.live.client.addresses import parse_addresses
from backends.live.client.settings import ClientSettings
from backends.simulator.scenario.files import read
from backends.simulator.served.served_cluster import ServedCluster, ServedClusterOptions
from recovery.groups.group_values import CommittedOffset, GroupKind
from recovery.model import TopicPartition, Unknown

PAYMENTS, NEVER_READ = TopicPartition("payments", 0), TopicPartition("payments", 7)
COMMITTED = {
    "audit": {PAYMENTS: CommittedOffset(1450)},
    "billing": {PAYMENTS: CommittedOffset(1450, 0)},
    "reports": {PAYMENTS: CommittedOffset(900, 0)},
    "shipping": {PAYMENTS: CommittedOffset(1200, 2)},
}


@pytest.fixture
async def served() -> AsyncIterator[ServedCluster]:
    async with ServedCluster(read("groups-on-the-stale-tail"), ServedClusterOptions(speed=0)) as found:
        yield found


@pytest.fixture
async def backend(served: ServedCluster) -> AsyncIterator[LiveBackend]:
    found = LiveBackend(ClientSettings(parse_addresses(served.bootstrap)))
    await found.open()
    try:
        yield found
    finally:
        await found.close()


async def test_groups_are_listed_with_what_they_committed(backend: LiveBackend) -> None:
    groups = backend.consumer_groups()
    listing = await groups.listed()
    assert [(g.name, g.kind, g.empty) for g in listing.groups] == [
        (name, GroupKind.CLASSIC, True) for name in COMMITTED
    ]
    assert not listing.not_listed
    assert await groups.committed(listing.groups, None) == COMMITTED
    assert await groups.committed(listing.groups, [PAYMENTS, NEVER_READ]) == COMMITTED
    many = [TopicPartition("payments", number) for number in range(100)]
    assert await groups.committed(listing.groups, many) == COMMITTED, "more than are named in a request"
    assert await groups.committed(listing.groups[:1], [NEVER_READ]) == {"audit": {}}


async def test_a_broker_that_does_not_coordinate_refuses(backend: LiveBackend) -> None:
    billing = next(g for g in (await backend.consumer_groups().listed()).groups if g.name == "billing")
    elsewhere = billing._replace(coordinator=2)
    told = await backend.offset_writer().commit(elsewhere, {PAYMENTS: CommittedOffset(0)})
    assert "NOT_COORDINATOR" in str(told[PAYMENTS])


async def test_a_coordinator_that_is_gone_is_said_to_be(served: ServedCluster, backend: LiveBackend) -> None:
    groups = backend.consumer_groups()
    listed = (await groups.listed()).groups
    served.world.kill_broker(1)
    answers = await groups.committed(listed, None)
    assert all(isinstance(answer, Unknown) for answer in answers.values()), answers
