"""Other places for replicas, or more of them, so that no single failure takes too many of a partition: with as few
copies as possible.

What fails at once is a *failure domain*: a rack, or a broker whose rack is unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from recovery.heal_plan import BrokerSpace


class SpreadChange(NamedTuple):
    """``removed`` replicas go, and a new one is copied to each of the domains ``added`` (one each, may repeat)."""

    removed: tuple[int, ...]
    added: tuple[str, ...]

    @property
    def copies(self) -> int:
        return len(self.added)


def failure_domain(broker: int, racks: Mapping[int, str | None]) -> str:
    """What fails together with the broker."""
    rack = racks.get(broker)
    return f"broker {broker}" if rack is None else f"rack {rack}"


def spread_change(
    replicas: Sequence[int], racks: Mapping[int, str | None], need: int, room: Mapping[str, int]
) -> SpreadChange | None:
    """The change after which ``need`` replicas are left whichever domain fails; None: there is none.

    ``room``: how many other brokers in each domain can take a replica, the preferred domains first. Replicas are
    moved where that is enough; only where it is not, there will be more of them.
    """
    remaining = list(replicas)
    counts = Counter(failure_domain(broker, racks) for broker in replicas)
    removed: list[int] = []
    added: list[str] = []
    while sum(counts.values()) - max(counts.values()) < need:
        free = [name for name in room if room[name] > added.count(name)]
        if not free:
            return None
        target = min(free, key=lambda name: counts[name])
        worst = max(counts.values())
        if _can_be_moved(counts, added, room, need) and counts[target] + 1 < worst:
            # The first replica is the preferred leader, so it goes last.
            goes = next(b for b in reversed(remaining) if counts[failure_domain(b, racks)] == worst)
            remaining.remove(goes)
            removed.append(goes)
            counts[failure_domain(goes, racks)] -= 1
        added.append(target)
        counts[target] += 1
    return SpreadChange(tuple(removed), tuple(added))


def _can_be_moved(counts: Counter[str], added: Sequence[str], room: Mapping[str, int], need: int) -> bool:
    """Whether that many replicas can be placed so that ``need`` are left, without one more."""
    total = sum(counts.values())
    names = counts.keys() | room.keys()
    places = (min(counts[name] + room.get(name, 0) - added.count(name), total - need) for name in names)
    return sum(places) >= total


def spread_assignment(
    replicas: Sequence[int],
    size: int,
    need: int,
    racks: Mapping[int, str | None],
    spaces: Mapping[int, BrokerSpace],
) -> tuple[int, ...] | None:
    """The new assignment, with its room taken from ``spaces``; None: there is no room for one. A new replica takes
    the place of the one that goes, and goes to the broker of its domain that holds the least.
    """
    fitting = [
        broker
        for broker in sorted(spaces, key=lambda one: spaces[one].weight)
        if broker not in replicas and spaces[broker].fits(size)
    ]
    change = spread_change(
        replicas, racks, need, Counter(failure_domain(broker, racks) for broker in fitting)
    )
    if change is None:
        return None
    after = list(replicas)
    places = [after.index(broker) for broker in change.removed]
    for number, name in enumerate(change.added):
        broker = next(one for one in fitting if failure_domain(one, racks) == name)
        fitting.remove(broker)
        spaces[broker].take(size)
        if number < len(places):
            after[places[number]] = broker
        else:
            after.append(broker)
    return tuple(after)
