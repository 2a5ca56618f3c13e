"""Replicas are moved or added so that no rack takes too many of them, with as few copies as possible."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from random import Random

import pytest

from recovery.heal_plan import BrokerRoom, BrokerSpace
from recovery.model import Broker
from recovery.replica_spread import failure_domain, spread_assignment, spread_change

RACKS: dict[int, str | None] = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"}


def room(replicas: tuple[int, ...], racks: dict[int, str | None] = RACKS) -> Counter[str]:
    return Counter(failure_domain(broker, racks) for broker in racks if broker not in replicas)


def left(replicas: tuple[int, ...], racks: dict[int, str | None] = RACKS) -> int:
    """Replicas that are left whichever rack fails."""
    return len(replicas) - max(Counter(failure_domain(b, racks) for b in replicas).values())


@pytest.mark.parametrize(
    ("replicas", "need", "removed", "copies"),
    [
        ((1, 2), 1, (2,), 1),  # both in a rack: one goes
        ((1,), 1, (), 1),  # one alone: a second one
        ((1, 3), 2, (), 1),  # two that are both needed: a third
        ((1, 2, 3), 2, (2,), 1),  # two of three in a rack: one of them goes
        ((1, 2), 2, (2,), 2),  # a third, and one of the two goes
        ((1, 3, 5), 2, (), 0),
    ],
)
def test_as_few_are_copied_as_possible_and_moved_rather_than_added(
    replicas: tuple[int, ...], need: int, removed: tuple[int, ...], copies: int
) -> None:
    change = spread_change(replicas, RACKS, need, room(replicas))
    assert change is not None
    assert (change.removed, change.copies) == (removed, copies)


def test_where_there_is_one_rack_only_nothing_helps() -> None:
    racks: dict[int, str | None] = {1: "a", 2: "a", 3: "a"}
    assert spread_change((1, 2), racks, 1, room((1, 2), racks)) is None


def test_a_broker_without_a_rack_fails_alone() -> None:
    racks: dict[int, str | None] = {1: None, 2: None, 3: None}
    change = spread_change((1,), racks, 1, room((1,), racks))
    assert change is not None and change.added == ("broker 2",)


def test_no_fewer_copies_would_do_and_the_change_does_what_it_says() -> None:
    random = Random(4)
    brokers = list(RACKS)
    tried = 0
    for _ in range(300):
        replicas = tuple(random.sample(brokers, random.randint(1, 4)))
        need = random.randint(1, len(replicas))
        spaces = {broker: space(broker, 1000) for broker in brokers}
        after = spread_assignment(replicas, 1, need, RACKS, spaces)
        fewest = fewest_copies(replicas, need)
        if after is None:
            assert fewest is None
            continue
        assert left(after) >= need
        assert len(set(after) - set(replicas)) == fewest, (replicas, need, after)
        assert len(set(after)) == len(after) >= len(replicas)
        tried += fewest > 0
    assert tried > 50


def fewest_copies(replicas: tuple[int, ...], need: int) -> int | None:
    """By trying every assignment of at least as many replicas."""
    found = [
        len(set(after) - set(replicas))
        for size in range(len(replicas), len(RACKS) + 1)
        for after in combinations(RACKS, size)
        if left(after) >= need
    ]
    return min(found, default=None)


def space(broker: int, usable: int) -> BrokerSpace:
    listed = Broker(broker, "h", 9092, RACKS.get(broker), False)
    return BrokerSpace(BrokerRoom(listed, 1000 - usable, 1, ((1000, usable),)))


def test_room_is_respected_and_taken_and_the_emptiest_broker_comes_first() -> None:
    spaces = {1: space(1, 900), 3: space(3, 500), 4: space(4, 700), 5: space(5, 50), 6: space(6, 650)}
    assert spread_assignment((1,), 100, 1, RACKS, spaces) == (1, 4)
    # 4 holds more now than 6 does; and nothing of 600 fits anywhere with a tenth left free.
    assert spread_assignment((1,), 100, 1, RACKS, spaces) == (1, 6)
    assert spread_assignment((1,), 600, 1, RACKS, spaces) is None
