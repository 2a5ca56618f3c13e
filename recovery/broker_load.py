"""What hangs on each broker: its replicas, those in the ISR, those it leads, and who waits for its return."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from recovery.model import NO_LEADER, PartitionState


class BrokerLoad(NamedTuple):
    """Counts of partitions: with a replica here, with that replica in the ISR, led from here, offline, and offline
    with this broker in ISR or ELR, so that its return may end that.
    """

    replicas: int = 0
    in_isr: int = 0
    led: int = 0
    offline: int = 0
    waiting: int = 0


def broker_loads(states: Iterable[PartitionState]) -> Mapping[int, BrokerLoad]:
    """By broker. Many partitions have the same replicas and ISR, so these are counted first."""
    alike = Counter((s.replicas, s.isr, s.leader, s.elr) for s in states)
    found: defaultdict[int, BrokerLoad] = defaultdict(BrokerLoad)
    for (replicas, isr, leader, elr), count in alike.items():
        offline = count if leader == NO_LEADER else 0
        for broker in replicas:
            load, in_sync = found[broker], broker in isr
            found[broker] = BrokerLoad(
                load.replicas + count,
                load.in_isr + count * in_sync,
                load.led + count * (leader == broker),
                load.offline + offline,
                load.waiting + offline * (in_sync or broker in (elr or ())),
            )
    return dict(found)
