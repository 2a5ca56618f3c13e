"""Which partitions a rebuilt quorum's log ends with, and in which state."""

from __future__ import annotations

from recovery.controller.registration import Registration
from recovery.membership.rewritten_partitions import (
    KnownPartitions,
    RewrittenPartition,
    ScannedReplica,
    lost_partitions,
    partition_members,
    read_partition,
    rewritten_partitions,
)
from recovery.metadata_log.log_changes import PartitionSubject

TOPIC = "AAAAAAAAAAAAAAAAAAAA7w"
SUBJECT = PartitionSubject(TOPIC, 0)
NOW = Registration(
    (1, 2, 3), (1, 2), 1, leader_epoch=4, partition_epoch=6, elr=(3,), directories=("a", "b", "c")
)
KNOWN = KnownPartitions({SUBJECT: NOW}, {TOPIC: "orders"}, has_directories=True)


def disk(broker: int, epoch: int, end: int, last: int | None = None, topic_id: str = TOPIC) -> ScannedReplica:
    return ScannedReplica(
        broker, f"dir-{broker}", topic_id, "orders", 0, epoch, epoch if last is None else last, end
    )


def written(
    *disks: ScannedReplica, unscanned: tuple[int, ...] = (), is_stale: bool = False
) -> list[Registration]:
    made = rewritten_partitions(KNOWN, disks, unscanned, is_stale=is_stale, restores_lost=False)
    assert [read_partition(partition_members(one)) for one in made] == list(made)
    return [one.registration for one in made]


def test_nothing_is_written_where_the_copy_knows_every_epoch() -> None:
    assert written(disk(1, 4, 100), disk(2, 4, 100), disk(3, 2, 50)) == []


def test_a_leader_that_runs_is_trusted_with_its_isr() -> None:
    """2 is in the ISR and has not fetched the last records yet."""
    assert written(disk(1, 4, 100)._replace(runs=True), disk(2, 4, 90)) == []


def test_the_isr_is_the_best_log_by_the_epoch_of_its_last_record() -> None:
    """3 has the longest log, and 2 alone wrote in epoch 6; 1 only heard of epoch 8."""
    (after,) = written(disk(1, 8, 100, last=4), disk(2, 6, 110), disk(3, 4, 500))
    assert (after.isr, after.leader, after.leader_epoch, after.elr) == ((2,), -1, 1_008, ())
    assert (after.replicas, after.directories) == (NOW.replicas, NOW.directories)


def test_equal_logs_are_all_in_the_isr() -> None:
    (after,) = written(disk(1, 6, 110), disk(2, 6, 110), disk(3, 6, 90))
    assert after.isr == (1, 2)


def test_a_stale_copy_trusts_no_isr_member_whose_log_is_behind() -> None:
    """2 left the ISR after the copy's end; the leader, and so the leader epoch, stayed."""
    (after,) = written(disk(1, 4, 100)._replace(runs=True), disk(2, 4, 90), is_stale=True)
    assert after.isr == (1,)
    # Without any that runs there may be changes that no copy has.
    (after,) = written(disk(1, 4, 100), disk(2, 4, 90))
    assert after.isr == (1,)


def test_the_best_log_is_kept_where_a_reassignment_was_lost() -> None:
    (after,) = written(disk(4, 6, 110), disk(1, 4, 90))
    assert (after.replicas, after.isr, after.directories) == ((1, 2, 3, 4), (4,), ("a", "b", "c", "dir-4"))


def test_without_a_disk_the_state_stays_and_a_margin_covers_the_epoch() -> None:
    (after,) = written(disk(1, 4, 100), unscanned=(3,))
    assert after == NOW._replace(leader_epoch=1_004, partition_epoch=1_006)


def test_a_topic_that_the_copy_has_deleted_is_not_lost() -> None:
    gone = KnownPartitions({}, {TOPIC: "orders"}, has_directories=True)
    assert lost_partitions(gone, [disk(1, 4, 100)]) == ()
    other = disk(1, 4, 100, topic_id="AAAAAAAAAAAAAAAAAAAA8w")
    assert lost_partitions(gone, [other]) == (other,)


def test_a_lost_topic_has_the_replicas_that_were_scanned_the_best_first() -> None:
    nothing = KnownPartitions({}, {}, has_directories=True)
    disks = (disk(1, 4, 100), disk(2, 5, 90), disk(3, 5, 90))
    (one,) = rewritten_partitions(nothing, disks, (), is_stale=False, restores_lost=True)
    assert one == RewrittenPartition(
        "orders",
        TOPIC,
        0,
        -1,
        5,
        Registration((2, 3, 1), (2, 3), -1, leader_epoch=1_005, directories=("dir-2", "dir-3", "dir-1")),
    )
