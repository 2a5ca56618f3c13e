"""``python -m benchmarks.bare_requests ADDRESS``: the change requests of a recovery, and nothing else.

The same partitions as the measured recovery, in parts of the same size: write the order, elect, revert the order.
Nothing is read, judged, saved or verified, and the leaders are known beforehand. A recovery that elects by
reordering cannot be faster than this.
"""

from __future__ import annotations

import asyncio
import sys
from functools import partial

from backends.live.calls.elect_leaders import elect_leaders
from backends.live.calls.reassignments import write_assignments
from backends.live.client.addresses import parse_addresses
from backends.live.client.settings import ClientSettings
from backends.live.nodes.brokers import BrokerFleet
from benchmarks.bench_cluster import PARTITIONS, SURVIVORS, TOPIC, assignment
from console.jobs.elect.election_batches import PARTS_AT_ONCE
from recovery.model import TopicPartition
from recovery.plan.election_requests import PART


def main() -> int:
    asyncio.run(_elect_all(sys.argv[1]))
    return 0


async def _elect_all(bootstrap: str) -> None:
    fleet = BrokerFleet(ClientSettings(parse_addresses(bootstrap)))
    turn = asyncio.Semaphore(PARTS_AT_ONCE)
    try:
        await fleet.open()
        await asyncio.gather(*(_elect_part(fleet, turn, first) for first in range(0, PARTITIONS, PART)))
    finally:
        await fleet.close()


async def _elect_part(fleet: BrokerFleet, turn: asyncio.Semaphore, first: int) -> None:
    numbers = range(first, min(first + PART, PARTITIONS))
    original = {TopicPartition(TOPIC, number): assignment(number) for number in numbers}
    designated = {tp: _chosen_first(order) for tp, order in original.items()}
    async with turn:
        for call in (
            partial(write_assignments, orders=designated),
            partial(elect_leaders, partitions=original, preferred=False),
            partial(write_assignments, orders=original),
        ):
            answers = (await fleet.any(call, again=False)).value
            if refused := {tp: why for tp, why in answers.items() if why is not None}:
                sys.exit(f"refused: {refused}")


def _chosen_first(order: tuple[int, ...]) -> tuple[int, ...]:
    chosen = SURVIVORS[1]
    return chosen, *(broker for broker in order if broker != chosen)


if __name__ == "__main__":
    sys.exit(main())
