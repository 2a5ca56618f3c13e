"""Which silent logs a plan keeps, and what the metadata log shows of a broker that came back first."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from recovery.controller.registration import PartitionChange
from recovery.heal_plan import ReplicaMove
from recovery.log_preservation import followed_first, keep_plan
from recovery.model import PartitionState, Standing, TopicPartition, Unknown, Why
from recovery.unread_disks import UnreadDisk, UnreadDiskState, disk_outcomes
from tests.plan_rows import row
from tests.unit.acknowledged.controller_log import ControllerLog

TP = TopicPartition("t", 0)
STATE = PartitionState(TP.topic, TP.partition, "id", -1, 4, (1, 2, 3), (3,), None, None, ())
TAKES_3_OUT = ReplicaMove(TP, "id", (1, 2, 3), (1, 2), 0)
UP, FAILED = Standing.ELECTABLE, Standing.OFFLINE_REPLICA


@pytest.mark.parametrize(
    ("answered", "named", "min_isr", "after"),
    [
        ((1, 2), {3}, 2, (1, 2)),
        ((1, 2), set(), 1, (1, 2)),
        ((1,), {2, 3}, 1, (1,)),
        ((1,), set(), 1, (1,)),
    ],
)
def test_the_silent_brokers_are_taken_out_and_the_others_stay_in_their_order(
    answered: tuple[int, ...], named: set[int], min_isr: int, after: tuple[int, ...]
) -> None:
    plan = row(STATE, (1, 2, 3), dict.fromkeys(answered, (0, 500)))
    found = keep_plan([plan], frozenset(named), {TP.topic: min_isr})
    assert [(move.before, move.after) for move in found.moves] == [((1, 2, 3), after)]
    assert not found.not_preserved


@pytest.mark.parametrize(
    ("answered", "standings", "named", "min_isr", "why"),
    [
        ((1, 2, 3), {}, {3}, 1, "broker 3 answers: it follows the new leader at once"),
        ((1, 2), {3: UP}, {3}, 1, "broker 3 is up, as the controller says"),
        ((1, 2), {3: FAILED}, {3}, 1, "broker 3 is up and its disk failed: read that disk before"),
        ((1,), {}, {3}, 1, "broker 2 is silent too"),
        ((1, 2), {}, {3}, 3, "2 copies would remain, and min.insync.replicas is 3"),
        ((1,), {}, set(), 2, "1 copy would remain, and min.insync.replicas is 2"),
        ((1, 2), {}, {3}, Unknown(Why.NOT_ALLOWED, "no"), "min.insync.replicas is not known"),
    ],
)
def test_where_a_log_cannot_be_kept_it_is_said_why(
    answered: tuple[int, ...],
    standings: Mapping[int, Standing],
    named: set[int],
    min_isr: int | Unknown,
    why: str,
) -> None:
    plan = row(STATE, (1, 2, 3), dict.fromkeys(answered, (0, 500)), standings=standings)
    found = keep_plan([plan], frozenset(named), {TP.topic: min_isr})
    assert not found.moves
    (refused,) = found.not_preserved
    assert why in refused.why


def test_nothing_is_kept_of_a_partition_without_a_silent_broker() -> None:
    plan = row(STATE, (1, 2, 3), dict.fromkeys((1, 2, 3), (0, 500)))
    assert keep_plan([plan], frozenset(), {TP.topic: 1}) == ((), ())


@pytest.mark.parametrize("starts", ["never", "before it is out", "when it is out"])
def test_a_broker_that_started_while_it_was_still_a_replica_has_followed(starts: str) -> None:
    controller = ControllerLog()
    controller.isr(3, leader=3)
    controller.isr(3, leader=-1)
    controller.isr(1, leader=1, recovering=True)
    if starts == "before it is out":
        controller.starts(3)
    controller.changes(PartitionChange(leader=1, isr=(1, 2), replicas=(1, 2)))
    if starts == "when it is out":
        controller.starts(3)
    history, early = controller.folded(), starts == "before it is out"
    assert followed_first(history, TAKES_3_OUT, leader_epoch=2) == ((3,) if early else ())
    disk, now = UnreadDisk(3, TP, "id", leader_epoch=3), STATE._replace(leader=1, replicas=(1, 2), isr=(1, 2))
    became = UnreadDiskState.CAME_BACK if early else UnreadDiskState.NO_REPLICA
    assert disk_outcomes([disk], [now], {1, 2}, history) == {disk: became}
