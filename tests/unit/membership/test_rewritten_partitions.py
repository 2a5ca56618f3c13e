"""Which partitions a rebuilt quorum's log ends with, and in which state."""

from __future__ import annotations

from recovery.controller.registration import Registration
from recovery.membership.rewritten_partitions import (
    KnownPartitions,
    RewrittenPartition,
    ScannedReplica,
    partition_members,
    read_partition,
    rewritten_partitions,
    running_refusal,
    waits_for_dead,
)
from recovery.membership.stray_replicas import (
    LostTopic,
    StrayReplica,
    lost_partitions,
    lost_topics,
    stray_lines,
    stray_refusals,
    stray_replicas,
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
    made = rewritten_partitions(KNOWN, disks, unscanned, is_stale=is_stale)
    assert [read_partition(partition_members(one)) for one in made] == list(made)
    for one in made:
        assert set(one.registration.isr) <= set(one.registration.replicas), one
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


def test_with_elr_a_partition_without_a_leader_names_who_is_elected_when_it_is_back() -> None:
    """A killed broker leaves ISR and ELR when it registers; without a last known leader nobody is elected then."""
    known, logs = KNOWN._replace(has_elr=True), [disk(1, 8, 110, last=6), disk(2, 6, 110), disk(3, 4, 500)]
    (one,) = rewritten_partitions(known, logs, (), is_stale=True)
    assert (one.registration.isr, one.registration.leader, one.registration.last_known_elr) == (
        (1, 2),
        -1,
        (1,),
    )
    (one,) = rewritten_partitions(known, logs, (), is_stale=True, gone=(1,))
    assert one.registration.last_known_elr == (2,), "who is named dead may never be back"
    (one,) = rewritten_partitions(KNOWN, logs, (), is_stale=True)
    assert one.registration.last_known_elr == (), "older nodes could not read it"


def test_a_partition_that_only_the_dead_can_lead_has_no_leader_and_is_no_reason_to_stop_others() -> None:
    now = NOW._replace(isr=(1,), leader=1, elr=(), last_known_elr=())
    known = KNOWN._replace(present={SUBJECT: now}, has_elr=True)
    runs = disk(3, 4, 50)._replace(runs=True)
    written_now = rewritten_partitions(known, [runs], (1,), is_stale=False, gone=(1,))
    (one,) = written_now
    assert (one.registration.leader, one.registration.isr, one.registration.last_known_elr) == (
        -1,
        (1,),
        (1,),
    )
    assert waits_for_dead(one, (1,))
    assert list(running_refusal([runs], written_now, (1,))) == []
    assert list(running_refusal([runs], written_now)) != []


def test_an_elr_member_that_is_behind_is_not_elected_where_the_isr_is_empty_or_may_have_been_lost() -> None:
    """The rebuilt quorum fenced everybody, and left 2 in the ELR; under the old voters 1 wrote alone."""
    fenced = NOW._replace(isr=(), elr=(2,), leader=-1, leader_epoch=6)
    known = KNOWN._replace(present={SUBJECT: fenced})
    disks = [disk(1, 5, 140), disk(2, 5, 120)]
    for member in (fenced, fenced._replace(elr=(), last_known_elr=(2,))):
        known = KNOWN._replace(present={SUBJECT: member})
        (one,) = rewritten_partitions(known, disks, (), is_stale=True)
        after = one.registration
        assert (after.isr, after.elr, after.last_known_elr, after.leader_epoch) == ((1,), (), (), 1_006)
    # A copy that lacks nothing holds an ELR that is not elected while the ISR has members.
    assert written(disk(1, 4, 100), disk(2, 4, 100), disk(3, 2, 50)) == []
    (after,) = written(disk(1, 4, 100), disk(2, 4, 100), disk(3, 2, 50), is_stale=True)
    assert (after.isr, after.elr) == ((1, 2), ())


def test_a_leader_epoch_that_two_quorums_gave_out_is_not_gone_on_with() -> None:
    """The copy's quorum gave epoch 4 out, and the old voters another epoch 4, in which the disks were written."""
    disks = [disk(1, 4, 100), disk(2, 4, 100)]
    (one,) = rewritten_partitions(KNOWN, disks, (), is_stale=True, is_forked=True)
    assert (one.registration.leader_epoch, one.registration.isr) == (1_004, (1, 2))
    below = [disk(1, 3, 100), disk(2, 3, 100)]
    in_sync = KNOWN._replace(present={SUBJECT: NOW._replace(elr=())})
    assert rewritten_partitions(in_sync, below, (), is_stale=True, is_forked=True) == ()


def test_a_member_of_the_isr_that_runs_leads_in_the_place_of_one_that_never_comes_back() -> None:
    runs = disk(2, 4, 100)._replace(runs=True)
    (one,) = rewritten_partitions(KNOWN, [runs], (1,), is_stale=False, gone=(1,))
    after = one.registration
    assert (after.isr, after.leader, after.leader_epoch, after.replicas) == ((2,), 2, 1_004, (1, 2, 3))
    # Where changes are lost, or nobody runs, 1 may have been the last one in the ISR; it may also come back.
    for scanned, is_stale, gone in ((runs, True, (1,)), (disk(2, 4, 100), False, (1,)), (runs, False, ())):
        known = KNOWN._replace(present={SUBJECT: NOW._replace(elr=())})
        (one,) = rewritten_partitions(known, [scanned], (1,), is_stale=is_stale, gone=gone)
        assert (one.registration.isr, one.registration.leader) == ((1, 2), 1), (scanned, is_stale, gone)
        assert not waits_for_dead(one, (1,)) and waits_for_dead(one, (1, 2))


def test_the_broker_of_the_new_voters_node_leads_in_the_place_of_a_dead_one_although_it_is_stopped() -> None:
    """Else the controller fences it first, and the partition waits for a broker that is dead (seen on 4.4.0)."""
    known = KNOWN._replace(present={SUBJECT: NOW._replace(isr=(1, 2, 3), elr=())})
    (one,) = rewritten_partitions(known, [disk(3, 4, 100)], (1, 2), is_stale=False, gone=(1, 2), starts=(3,))
    assert (one.registration.isr, one.registration.leader, one.registration.replicas) == ((3,), 3, (1, 2, 3))
    # A log that is behind another one is not led by, whoever starts.
    logs = [disk(3, 4, 90), disk(2, 4, 100)]
    (one,) = rewritten_partitions(known, logs, (1,), is_stale=False, gone=(1,), starts=(3,))
    assert (one.registration.isr, one.registration.leader) == ((2,), -1)


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


def test_a_partly_moved_partition_has_both_brokers_with_the_newest_log_as_replicas() -> None:
    """The copy has 1, 2, 3; after its end 1 was replaced by 4. 2 is in both."""
    (after,) = written(disk(2, 6, 110), disk(4, 6, 110), disk(3, 5, 100))
    assert (after.replicas, after.isr) == ((1, 2, 3, 4), (2, 4))
    assert after.directories == ("a", "b", "c", "dir-4")
    (one,) = rewritten_partitions(KNOWN, [disk(2, 6, 110), disk(4, 6, 110)], (), is_stale=True)
    assert one.added == (4,)


def test_a_replica_that_was_removed_meanwhile_has_no_folder_and_is_not_in_the_isr() -> None:
    """1 was taken out of the assignment and deleted its log; the copy has it as leader, in the same epoch."""
    (after,) = written(disk(2, 4, 100), disk(3, 4, 100))
    assert (after.replicas, after.isr, after.leader) == ((1, 2, 3), (2, 3), -1)
    # It is not known where its disk was not read; an empty log is as good as none.
    assert written(disk(2, 4, 100), unscanned=(1,))[0].isr == NOW.isr
    assert written(disk(2, 0, 0, last=-1), disk(3, 0, 0, last=-1)) == []


def test_a_replica_that_was_added_meanwhile_is_named_where_the_copy_stays_as_it_is() -> None:
    disks = [disk(1, 4, 100), disk(2, 4, 100), disk(4, 4, 100)]
    assert written(*disks) == []
    (stray,) = stray_replicas(KNOWN, disks, (), ())
    why = "the broker is none of its replicas (1,2,3)"
    assert stray == StrayReplica("orders", TOPIC, 0, 4, 4, 100, why)
    head, line = stray_lines([stray])
    assert "1 folder on brokers' disks is not in the rebuilt quorum" in head
    assert line == f"  orders-0 ({TOPIC}) on broker 4, log end 100 (epoch 4): {why}"


def test_the_only_log_that_was_found_is_kept_where_the_isr_was_not_looked_at() -> None:
    """1 and 2 are the ISR, and may never come back: without a folder in the assignment 4 could not be elected."""
    (after,) = written(disk(4, 4, 100), unscanned=(1, 2))
    assert (after.replicas, after.isr, after.leader) == ((1, 2, 3, 4), (1, 2), 1)
    # A replica of the assignment has it too.
    (after,) = written(disk(4, 4, 100), disk(3, 4, 100), unscanned=(1, 2))
    assert after.replicas == (1, 2, 3)


def test_a_reassignment_that_the_copy_has_under_way_and_that_has_ended_since() -> None:
    """2 was to take the place of 1, and has: 1 deleted its log."""
    moving = Registration((1, 3, 2), (1, 3), 1, leader_epoch=4, removing=(1,), adding=(2,))
    known = KnownPartitions({SUBJECT: moving}, {TOPIC: "orders"}, has_directories=False)
    (one,) = rewritten_partitions(known, [disk(2, 5, 90), disk(3, 5, 90)], (), is_stale=True)
    after = one.registration
    assert (after.replicas, after.isr, after.directories) == ((1, 3, 2), (2, 3), ())
    assert (after.removing, after.adding) == ((1,), (2,))


def test_a_log_that_is_behind_and_outside_of_the_assignment_is_named() -> None:
    disks = [disk(1, 6, 110), disk(2, 6, 110), disk(4, 5, 80)]
    made = rewritten_partitions(KNOWN, disks, (), is_stale=True)
    assert [one.registration.replicas for one in made] == [(1, 2, 3)]
    assert [(s.broker, s.log_end) for s in stray_replicas(KNOWN, disks, (), made)] == [(4, 80)]


def test_without_a_disk_the_state_stays_and_a_margin_covers_the_epoch() -> None:
    (after,) = written(disk(1, 4, 100), unscanned=(2, 3))
    assert after == NOW._replace(leader_epoch=1_004, partition_epoch=1_006)


def test_a_topic_that_the_copy_has_deleted_is_not_lost() -> None:
    gone = KnownPartitions({}, {TOPIC: "orders"}, has_directories=True)
    assert lost_partitions(gone, [disk(1, 4, 100)]) == ()
    other = disk(1, 4, 100, topic_id="AAAAAAAAAAAAAAAAAAAA8w")
    assert lost_partitions(gone, [other]) == (other,)


def test_a_lost_topic_has_the_replicas_that_were_scanned_the_best_first() -> None:
    nothing = KnownPartitions({}, {}, has_directories=True)
    disks = (disk(1, 4, 100), disk(2, 5, 90), disk(3, 5, 90))
    (topic,) = lost_topics(nothing, lost_partitions(nothing, disks))
    (one,) = rewritten_partitions(nothing, disks, (), is_stale=False, restored=topic.keepable)
    assert one == RewrittenPartition(
        "orders",
        TOPIC,
        0,
        -1,
        5,
        Registration((2, 3, 1), (2, 3), -1, leader_epoch=1_005, directories=("dir-2", "dir-3", "dir-1")),
    )


# What can be kept, and what becomes a stray

AGAIN, LATER = "AAAAAAAAAAAAAAAAAAAA8w", "AAAAAAAAAAAAAAAAAAAA-w"


def refused(disks: list[ScannedReplica], *, accepts: bool = False, keeps: bool = False) -> list[str]:
    topics = lost_topics(KNOWN, lost_partitions(KNOWN, disks))
    return list(stray_refusals(KNOWN, topics, accepts_strays=accepts, keeps_strays=keeps))


def test_a_topic_that_cannot_be_kept_does_not_hold_up_the_others() -> None:
    """Topic orders was made again after the copy, later was made, and orders-2 added to the old one."""
    again, later = disk(1, 3, 10, topic_id=AGAIN), disk(2, 3, 10, topic_id=LATER)._replace(name="later")
    added = [disk(1, 4, 5)._replace(partition=n) for n in (1, 3)]
    disks = [again, later, *added]
    (unaccepted,) = refused(disks)
    assert f"topics whose ids the copy does not know: later ({LATER}), orders ({AGAIN});" in unaccepted
    assert "partitions that the copy does not know, of topics that it has: orders-1, orders-3." in unaccepted
    of_added, of_again = refused(disks, keeps=True)
    assert of_again.startswith(f"topic orders ({AGAIN}) cannot be kept: the copy has a topic of that name")
    assert of_added.startswith(f"orders-3 ({TOPIC}) cannot be kept: no scanned disk has its partitions 2.")
    assert refused(disks, keeps=True, accepts=True) == []
    topics = lost_topics(KNOWN, lost_partitions(KNOWN, disks))
    keepable = [subject for one in topics for subject in one.keepable]
    assert sorted(keepable) == sorted([PartitionSubject(LATER, 0), PartitionSubject(TOPIC, 1)])
    made = rewritten_partitions(KNOWN, disks, (1, 2, 3), is_stale=True, restored=keepable)
    strays = stray_replicas(KNOWN, disks, topics, made)
    assert [(one.topic, one.topic_id, one.partition, one.broker) for one in strays] == [
        ("orders", TOPIC, 3, 1),
        ("orders", AGAIN, 0, 1),
    ]
    shown = "\n".join(stray_lines(strays))
    assert f"orders-0 ({AGAIN}) on broker 1, log end 10 (epoch 3): the copy has a topic of that name" in shown
    assert (
        f"orders-3 ({TOPIC}) on broker 1, log end 5 (epoch 4): no scanned disk has its partitions 2" in shown
    )


def test_two_topics_of_one_name_that_no_copy_knows_are_not_both_written() -> None:
    """Kafka has no two topics of one name; which of them was deleted is in no folder."""
    disks = [disk(3, 1, 5, topic_id=one)._replace(name="later") for one in (AGAIN, LATER)]
    nothing = KnownPartitions({}, {}, has_directories=True)
    topics = lost_topics(nothing, disks)
    assert [one.keepable for one in topics] == [(), ()]
    assert all("another topic of that name" in one.why for one in topics)


def test_a_new_topic_is_kept_whole_or_not_at_all() -> None:
    disks = [disk(1, 1, 5, topic_id=LATER)._replace(name="later", partition=n) for n in (0, 2)]
    (topic,) = lost_topics(KNOWN, disks)
    assert topic == LostTopic(
        "later", LATER, (0, 2), (0, 2), "no scanned disk has its partitions 1", absent=(1,)
    )
