"""A broker does not come back: where its replicas go, and which partitions stay as they are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recovery.heal_plan import BrokerRoom, DamagedPartition, HealPlan, heal_plan, in_batches
from recovery.model import Broker, PartitionState


def load(
    broker: int,
    rack: str | None = None,
    *,
    held: int = 0,
    replicas: int = 0,
    usable: int = 900,
    total: int = 1000,
) -> BrokerRoom:
    return BrokerRoom(
        Broker(broker, f"kafka-{broker}", 9092, rack, False), held, replicas, ((total, usable),)
    )


def damaged(
    partition: int,
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    *,
    size: int = 10,
    leader: int | None = None,
    adding: tuple[int, ...] = (),
    removing: tuple[int, ...] = (),
) -> DamagedPartition:
    led = isr[0] if leader is None and isr else -1 if leader is None else leader
    state = PartitionState("orders", partition, "orders-id", led, 3, replicas, isr, (), (), (3,))
    return DamagedPartition(state, size, 2, adding, removing)


def after(plan: HealPlan) -> dict[int, tuple[int, ...]]:
    return {move.tp.partition: move.after for move in plan.moves}


def why(plan: HealPlan) -> dict[int, str]:
    return {one.tp.partition: one.why for one in plan.not_healed}


def test_the_new_replica_takes_the_place_of_the_lost_one_and_the_others_stay() -> None:
    plan = heal_plan({3}, [damaged(0, (1, 3, 2), (1, 2))], [load(1), load(2), load(4)])
    assert after(plan) == {0: (1, 4, 2)}
    assert plan.moves[0].added == (4,)
    assert plan.bytes_copied == 10


def test_a_rack_without_a_replica_comes_first_then_who_holds_the_least() -> None:
    loads = [load(1, "a"), load(2, "b"), load(4, "b"), load(5, "c", held=500), load(6, "c", held=400)]
    plan = heal_plan({3}, [damaged(0, (1, 2, 3), (1, 2))], loads)
    assert after(plan) == {0: (1, 2, 6)}
    assert not plan.moves[0].shares_rack


def test_a_shared_rack_is_better_than_no_replica_and_is_told() -> None:
    loads = [load(1, "a"), load(2, "b"), load(4, "b"), load(5, "c", usable=100)]
    plan = heal_plan({3}, [damaged(0, (1, 2, 3), (1, 2))], loads)
    assert after(plan) == {0: (1, 2, 4)}
    assert plan.moves[0].shares_rack


def test_the_load_is_spread_by_what_was_already_planned() -> None:
    partitions = [damaged(number, (1, 2, 3), (1, 2)) for number in range(6)]
    plan = heal_plan({3}, partitions, [load(1), load(2), load(4), load(5)])
    added = [move.added[0] for move in plan.moves]
    assert (added.count(4), added.count(5)) == (3, 3)


def test_no_disk_is_filled_beyond_its_reserve() -> None:
    """A tenth stays free: 900 usable of 1,000 hold 800, on the smallest of its dirs, whichever Kafka chooses."""
    small = BrokerRoom(Broker(4, "kafka-4", 9092, None, False), 0, 0, ((1000, 5000), (1000, 900)))
    partitions = [damaged(number, (1, 2, 3), (1, 2), size=300) for number in range(4)]
    plan = heal_plan({3}, partitions, [load(1), load(2), small])
    assert len(plan.moves) == 2
    assert all("do not fit on every log dir of broker 4" in reason for reason in why(plan).values())
    assert len(plan.not_healed) == 2


def test_a_broker_whose_disks_are_not_known_takes_nothing() -> None:
    unknown = BrokerRoom(Broker(4, "kafka-4", 9092, None, False), 0, 0, ((-1, -1),))
    assert not heal_plan({3}, [damaged(0, (1, 2, 3), (1, 2))], [unknown]).moves


def test_what_must_not_be_touched_is_named() -> None:
    partitions = [
        damaged(0, (1, 2, 3), ()),
        damaged(5, (3,), ()),
        damaged(1, (1, 4, 2, 3), (1, 2), adding=(4,), removing=(2,)),
        damaged(2, (1, 2, 3), (1, 2, 3)),
        damaged(3, (1, 2, 3), (1, 2), size=-1),
        damaged(4, (1, 2, 3), (1, 2)),
    ]
    plan = heal_plan({3}, partitions, [load(1), load(2), load(4)])
    assert after(plan) == {4: (1, 2, 4)}
    found = why(plan)
    assert "elect one first" in found[0]
    assert "nothing to copy from. Bring one of them back, or its disk" in found[5]
    assert "the partition begin empty (ktriage heal begin-empty)" in found[5]
    assert found[1] == (
        "it is being reassigned by somebody (broker 4 still copies): let that end first, or cancel it"
    )
    assert "is in its ISR, so it is not gone" in found[2]
    assert "size is not known" in found[3]


def test_a_reassignment_that_waits_for_the_broker_is_cancelled_where_that_can_be() -> None:
    """Kafka refuses to cancel it without a leader."""
    waiting = damaged(0, (1, 2, 3, 4), (1, 2, 4), adding=(3,), removing=(4,))
    offline = damaged(1, (1, 3), (), adding=(3,), removing=(1,))
    plan = heal_plan({3}, [waiting, offline], [load(1), load(2), load(4)])
    assert [(move.tp.partition, move.before, move.after) for move in plan.cancelled] == [
        (0, (1, 2, 4), (1, 2, 3))
    ]
    assert not plan.moves
    assert "elect one first" in why(plan)[1]


def test_every_broker_has_a_replica_already() -> None:
    plan = heal_plan({3}, [damaged(0, (1, 2, 3), (1, 2))], [load(1), load(2)])
    assert "every broker that is up has a replica" in why(plan)[0]


def test_the_most_endangered_come_first_and_batches_keep_that_order() -> None:
    partitions = [damaged(0, (1, 2, 3), (1, 2)), damaged(1, (1, 2, 3), (1,)), damaged(2, (1, 2, 3), (1, 2))]
    plan = heal_plan({3}, partitions, [load(1), load(2), load(4)])
    assert [[move.tp.partition for move in batch] for batch in in_batches(plan.moves, 2)] == [[1, 0], [2]]


@given(
    st.lists(
        st.tuples(st.lists(st.integers(1, 8), min_size=1, max_size=4, unique=True), st.integers(0, 400)),
        max_size=30,
    ),
    st.sets(st.integers(1, 8), min_size=1, max_size=3),
    st.lists(st.integers(0, 1000), min_size=8, max_size=8),
)
def test_whatever_is_planned_keeps_every_replica_that_is_left_and_every_disk(
    topics: list[tuple[list[int], int]], gone: set[int], usable: list[int]
) -> None:
    loads = [load(broker, "ab"[broker % 2], usable=usable[broker - 1]) for broker in range(1, 9)]
    partitions = [
        damaged(number, tuple(replicas), tuple(b for b in replicas if b not in gone), size=size)
        for number, (replicas, size) in enumerate(topics)
        if gone.intersection(replicas)
    ]
    plan = heal_plan(gone, partitions, loads)
    assert len(plan.moves) + len(plan.not_healed) == len(partitions)
    taken: dict[int, int] = {}
    for move in plan.moves:
        assert len(set(move.after)) == len(move.before) == len(move.after)
        assert not gone.intersection(move.after)
        pairs = zip(move.before, move.after, strict=True)
        assert all(new == old for old, new in pairs if old not in gone)
        for broker in move.added:
            taken[broker] = taken.get(broker, 0) + move.size
    assert all(usable[broker - 1] - size >= 100 for broker, size in taken.items())
