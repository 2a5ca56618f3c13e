"""Default placement of a topic's replicas."""

from __future__ import annotations

from backends.simulator.topology import BrokerSpec


def spread(brokers: tuple[BrokerSpec, ...], replication_factor: int) -> tuple[tuple[int, ...], ...]:
    """Assignments to use in turn.

    Leaders are spread evenly. Followers shift from round to round, so that no two brokers share all partitions.
    Replicas are in different racks as far as possible, as with Kafka's own placement.
    """
    ordered = _by_rack(brokers)
    count = len(ordered)
    racks = {spec.id: spec.rack for spec in brokers}
    assignments = []
    for shift in range(max(count - 1, 1)):
        for first in range(count):
            ring = [ordered[first]]
            ring += [ordered[(first + 1 + (shift + step) % (count - 1)) % count] for step in range(count - 1)]
            assignments.append(_pick(ring, racks, replication_factor))
    return tuple(assignments)


def _by_rack(brokers: tuple[BrokerSpec, ...]) -> list[int]:
    """The brokers, one of each rack in turn."""
    racks: dict[str | None, list[int]] = {}
    for spec in brokers:
        racks.setdefault(spec.rack, []).append(spec.id)
    longest = max(map(len, racks.values()))
    return [members[turn] for turn in range(longest) for members in racks.values() if turn < len(members)]


def _pick(ring: list[int], racks: dict[int, str | None], replication_factor: int) -> tuple[int, ...]:
    chosen = [ring[0]]
    for again in (False, True):
        for broker in ring[1:]:
            used = {racks[taken] for taken in chosen}
            if (
                len(chosen) < replication_factor
                and broker not in chosen
                and (again or racks[broker] not in used)
            ):
                chosen.append(broker)
    return tuple(chosen)
