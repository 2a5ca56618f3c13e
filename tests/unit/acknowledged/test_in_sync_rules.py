"""One rule at a time about who held every acknowledged record, where random incidents seldom show a broken one."""

from __future__ import annotations

import pytest

from recovery.acknowledged.broker_restarts import LastStop, broker_restarts
from recovery.acknowledged.from_metadata_log import InSyncHistories
from recovery.acknowledged.in_sync_history import InSyncHistory
from recovery.acknowledged.verdict import Condition, ConditionKind, EvidenceKind, VerdictKind
from recovery.controller.registration import LeaderRecoveryState, PartitionChange, Registration
from recovery.metadata_log.log_changes import MetadataLogRecord
from recovery.metadata_log.partition_states import EventKind, kind_of_move
from recovery.metadata_log.rebuilt_log import RebuiltLog
from recovery.metadata_log.record_codec import encode
from recovery.metadata_log.records import PartitionRecord, RemoveTopicRecord, UnregisterControllerRecord
from recovery.model import EpochSpan, Lineage, ReplicaLog, Unknown
from tests.unit.acknowledged.controller_log import NOBODY_ANSWERED, ControllerLog
from tests.unit.recovery.surveys import SILENT, log

KEPT = ConditionKind.RECORDS_KEPT


def two_led_last() -> ControllerLog:
    """3 drops out, then 1; 2 leads alone, below min ISR, and dies."""
    controller = ControllerLog()
    controller.isr(1, 2)
    controller.isr(2, leader=2)
    controller.isr(2, leader=-1)
    return controller


def test_a_shutdown_does_not_excuse_a_later_crash() -> None:
    controller = two_led_last()
    controller.shuts_down(2)
    controller.starts(2)
    controller.starts(2)
    whole = controller.history().whole(2)
    assert whole is not None
    assert [one.stop for one in whole.restarts] == [LastStop.SHUT_DOWN, LastStop.UNCLEAN]


@pytest.mark.parametrize(
    ("leader", "change", "stop"),
    [
        (1, PartitionChange(isr=(1, 2)), LastStop.UNTOLD),
        (3, PartitionChange(isr=(1, 2), leader=1), LastStop.UNCLEAN),
        # The leader that was moved in the same batch was another broker's.
        (2, PartitionChange(isr=(1,), leader=1), LastStop.UNTOLD),
    ],
)
def test_how_a_broker_stopped_that_led_nothing_is_not_known_and_one_that_led_was_killed(
    leader: int, change: PartitionChange, stop: LastStop
) -> None:
    """Kafka moves the leaders away from a broker that shuts down cleanly, and records that it does."""
    controller = ControllerLog()
    controller.isr(1, 2, 3, leader=leader)
    controller.fences(3, change)
    controller.starts(3)
    assert [one.stop for one in broker_restarts(controller.folded(), 3)][-1] is stop


def test_a_fenced_broker_that_is_fenced_again_with_another_one_stopped_the_first_time() -> None:
    controller = ControllerLog()
    controller.isr(1, 2, 3, leader=2)
    controller.fences(3, PartitionChange(isr=(1, 2)))
    controller.isr(1, 2, leader=3)  # so that the second time would count
    controller.fences(3, PartitionChange(isr=(), leader=-1))
    controller.starts(3)
    assert broker_restarts(controller.folded(), 3)[-1].stop is LastStop.UNTOLD


def test_every_restart_counts_since_the_replica_was_proved_to_hold_everything() -> None:
    """2, the last ISR member, restarts, leads and dies again: the first restart may have cost records."""
    controller = two_led_last()
    controller.starts(2)
    controller.isr(2, leader=2)
    controller.isr(2, leader=-1)
    whole = controller.history().whole(2)
    assert whole is not None
    assert len(whole.restarts) == 1
    verdict = controller.verdict(2, {1: SILENT, 2: log((0, 0, 900)), 3: SILENT})
    assert Condition(KEPT, (2,), doubtful=True) in verdict.conditions


def test_restarts_count_after_a_snapshot_whatever_offsets_its_records_have() -> None:
    controller = ControllerLog(in_snapshot=True)
    controller.isr(1, 2)
    controller.isr(2, leader=2)
    controller.isr(2, leader=-1)
    controller.starts(2)
    whole = controller.history().whole(2)
    assert whole is not None
    assert len(whole.restarts) == 1


def test_who_enters_the_isr_with_an_election_has_not_shown_that_it_caught_up() -> None:
    """A leader adds a replica in its own epoch. A change that also elects comes from the controller."""
    controller = ControllerLog()
    controller.isr(1, 3)
    controller.isr(1, leader=-1)
    controller.changes(PartitionChange(leader=1, isr=(1, 2)))
    assert controller.history().whole(2) is None
    joined = ControllerLog()
    joined.isr(1, 3)
    joined.isr(1, 2)
    assert joined.history().whole(2) is not None


def test_a_leader_that_recovers_when_the_log_begins_was_elected_uncleanly() -> None:
    (doubt,) = ControllerLog(in_snapshot=True, epoch=5, recovering=True).history().doubts
    assert (doubt.leader, doubt.unclean) == (1, True)
    assert ControllerLog(in_snapshot=True, epoch=5).history().doubts == ()


def led_again_after_a_crash() -> ControllerLog:
    """2, the last ISR member, crashes, is elected again, and takes 3 back into the ISR, which then leads."""
    controller = two_led_last()
    controller.starts(2)
    controller.isr(2, leader=2)
    controller.isr(2, 3)
    controller.isr(3, leader=3)
    controller.isr(3, leader=-1)
    return controller


def test_what_a_leader_lost_in_a_crash_is_lost_for_those_who_followed_it() -> None:
    controller = led_again_after_a_crash()
    (doubt,) = controller.history().doubts
    assert (doubt.leader, doubt.unclean) == (2, False)
    verdict = controller.verdict(3, {1: SILENT, 2: SILENT, 3: log((0, 0, 900), (4, 900, 950))})
    assert (verdict.kind, verdict.conditions) == (VerdictKind.NONE, (Condition(KEPT, (2,), doubtful=True),))


def test_an_emptied_log_does_not_vouch_for_one_that_crashed() -> None:
    """3 was shut down cleanly and is empty now: so 2, the other last member, must have kept its records."""
    controller = ControllerLog()
    controller.isr(2, 3, leader=2)
    controller.isr(2, 3, leader=-1)
    controller.starts(2)
    controller.shuts_down(3)
    controller.starts(3)
    logs: dict[int, ReplicaLog | Unknown] = {1: SILENT, 2: log((0, 0, 900)), 3: log()}
    verdict = controller.verdict(2, logs)
    assert (verdict.kind, verdict.conditions) == (VerdictKind.NONE, (Condition(KEPT, (2,), doubtful=True),))
    whole = controller.verdict(2, {**logs, 3: log((0, 0, 900))})
    assert whole.conditions == (Condition(KEPT, (3,)),), "3 has kept everything, and 2 is as long"


def test_a_silent_replica_that_joined_before_an_unclean_election_may_hold_the_other_branch() -> None:
    controller = two_led_last()
    controller.isr(2, leader=2)
    controller.isr(1, 2)
    controller.isr(1, leader=1)
    controller.isr(1, leader=-1)
    controller.isr(3, leader=3, recovering=True)
    controller.isr(3, leader=-1)
    logs: dict[int, ReplicaLog | Unknown] = {
        1: SILENT,
        2: log((0, 0, 900)),
        3: log((0, 0, 500), (6, 500, 600)),
    }
    assert controller.history().joined_after(1, 0)
    assert controller.verdict(3, logs).at_most is None


def test_what_an_unclean_election_cut_off_was_not_lost_by_the_leader_that_it_elected() -> None:
    """1 and 3 acknowledged without 2, which was elected all the same, and crashed later."""
    controller = ControllerLog()
    controller.isr(1, 3)
    controller.isr(1, leader=-1)
    controller.isr(2, leader=2, recovering=True)
    controller.starts(2)
    controller.isr(2, leader=-1)
    logs: dict[int, ReplicaLog | Unknown] = {
        1: SILENT,
        2: log((0, 0, 500), (2, 500, 600)),
        3: log((0, 0, 910))._replace(high_watermark=900),
    }
    verdict = controller.verdict(2, logs)
    assert (verdict.kind, verdict.at_least) == (VerdictKind.SOME, 400)
    assert EvidenceKind.RECORDS_LOST not in {one.kind for one in verdict.evidence}


def test_offsets_whose_epoch_is_not_known_count_as_the_branch_that_may_be_lost() -> None:
    """3 was elected uncleanly and its epochs are known from 500 on: up to there its log and 2's may differ."""
    controller = ControllerLog()
    controller.isr(1, 2)
    controller.isr(1, leader=-1)
    controller.isr(3, leader=3, recovering=True)
    controller.isr(3, 1)
    controller.isr(3)
    controller.isr(3, leader=-1)
    epochs = Lineage(2, (EpochSpan(2, 500, 600),), 500)
    logs: dict[int, ReplicaLog | Unknown] = {
        1: SILENT,
        2: log((0, 0, 900)),
        3: log((2, 500, 600))._replace(log_start_offset=0, lineage=epochs),
    }
    verdict = controller.verdict(3, logs)
    assert (verdict.kind, verdict.at_most, verdict.uncertain) == (VerdictKind.OPEN, 900, ((0, 500, 900),))


def test_a_log_with_damaged_records_is_not_used() -> None:
    controller = two_led_last()
    survey, history = controller.facts(NOBODY_ANSWERED).survey, controller.folded()
    assert not isinstance(InSyncHistories(history).of(survey), Unknown)
    history.extend([MetadataLogRecord(99, 99_000, 99, b"\x01\x05\x00cut")])
    assert history.counts.malformed == 1
    unusable = InSyncHistories(history).of(survey)
    assert isinstance(unusable, Unknown) and "offset 99 is damaged" in unusable.detail


def test_a_controller_that_was_unregistered_leaves_the_log_usable() -> None:
    """Kafka 4.4 writes type 29, of controllers only; a type of a later release is named with its offset."""
    controller = two_led_last()
    survey, history = controller.facts(NOBODY_ANSWERED).survey, controller.folded()
    history.extend([MetadataLogRecord(99, 99_000, 99, encode(UnregisterControllerRecord(102)))])
    assert not isinstance(InSyncHistories(history).of(survey), Unknown)
    history.extend([MetadataLogRecord(100, 99_000, 99, b"\x01\x1e\x00\x00")])
    unusable = InSyncHistories(history).of(survey)
    assert isinstance(unusable, Unknown) and "offset 100 has type 30" in unusable.detail


def test_a_log_in_which_the_topic_was_deleted_is_not_used() -> None:
    """The survey is older than the deletion."""
    controller = two_led_last()
    survey = controller.facts(NOBODY_ANSWERED).survey
    controller.says(RemoveTopicRecord("id"))
    assert isinstance(InSyncHistories(controller.folded()).of(survey), Unknown)


def moves(controller: ControllerLog, *, unclean: bool = False) -> None:
    """A reassignment of [1, 2] to [3, 2], which ends with the ISR of both and with 3 as the leader."""
    controller.isr(1, 2)
    controller.changes(PartitionChange(replicas=(3, 2, 1), adding=(3,), removing=(1,)))
    state = LeaderRecoveryState.RECOVERING if unclean else None
    done = PartitionChange(
        leader=3, isr=(3,) if unclean else (2, 3), replicas=(3, 2), leader_recovery_state=state
    )
    controller.changes(done._replace(adding=(), removing=()))


def test_a_replica_that_a_reassignment_adds_was_let_into_the_isr_by_the_leader_of_before() -> None:
    controller = ControllerLog()
    moves(controller)
    history = controller.history({3: SILENT, 2: SILENT})
    assert history.doubts == ()
    assert history.whole(3) is not None
    before, after = (one.registration for one in history.intervals[-2:])
    assert kind_of_move(before, after) is EventKind.REASSIGNMENT


def test_after_an_unclean_election_at_the_end_of_a_reassignment_nobody_is_known_to_hold_everything() -> None:
    controller = ControllerLog()
    moves(controller, unclean=True)
    assert [one.leader for one in controller.history({3: SILENT, 2: SILENT}).doubts] == [3]


def test_a_replica_that_a_cancelled_reassignment_leaves_alone_in_the_isr_did_not_catch_up() -> None:
    """Its members were all added by the reassignment; Kafka takes the first of the others all the same."""
    controller = ControllerLog()
    controller.isr(1, 2)
    controller.changes(PartitionChange(replicas=(2, 1, 3), adding=(3,), removing=()))
    controller.isr(3, leader=3)
    controller.changes(PartitionChange(leader=2, isr=(2,), replicas=(2, 1), adding=(), removing=()))
    history = controller.history({2: SILENT, 1: SILENT})
    assert [one.leader for one in history.doubts] == [3, 2]
    assert history.whole(1) is None


@pytest.mark.parametrize("known_before", [True, False], ids=["copy knew it", "kept from disks"])
def test_what_came_before_a_rebuild_of_the_quorum_proves_nothing_of_who_was_in_sync(
    known_before: bool,
) -> None:
    """The copy has 1 in the ISR; the lost quorum had gone on with 2 alone, which no log tells. The rebuild wrote
    the ISR that the disks justify. (Tried on 4.3.1: 1 was called whole, and lacked 40 acknowledged records.)
    """
    controller = ControllerLog(min_isr=1, epoch=0 if known_before else 1_000)
    logs: dict[int, ReplicaLog | Unknown] = {1: log((0, 0, 100)), 2: SILENT, 3: SILENT}
    if known_before:
        controller.isr(1, 2)
        assert controller.history(logs).last_in_sync(1, controller.history(logs).newest) is not None
        controller.says(PartitionRecord("id", 0, Registration((1, 2, 3), (2,), -1, 1_001)))
    else:
        controller = ControllerLog(min_isr=1, epoch=1_001, replicas_in_sync=(2,))
    controller.changes(PartitionChange(isr=(), leader=-1, elr=(2,)))
    history = controller.history(logs)
    assert history.last_in_sync(1, history.newest) is None and not history.known_from_start
    assert controller.verdict(1, logs).kind is not VerdictKind.NONE
    verdict = controller.verdict(1, logs)
    assert not any(one.kind is KEPT for one in verdict.conditions), verdict
    assert history.begins == "the rebuild of the quorum, which wrote the partition"


def test_a_rebuild_may_have_lost_a_lower_min_isr_of_partitions_that_it_did_not_write() -> None:
    """3 left the ISR, and acks=all was refused since, by the copy; that min ISR was set to 2 then is in no log."""
    controller = ControllerLog(min_isr=3)
    logs: dict[int, ReplicaLog | Unknown] = {1: SILENT, 2: SILENT, 3: log((0, 0, 100))}
    end = controller.isr(1, 2) // 1000 + 1
    controller.isr(1, 2, leader=-1)
    assert controller.history(logs).whole(3) is not None
    history = controller.folded()
    history.rebuilt = RebuiltLog(end, end + 1, 1_001, ())
    found = InSyncHistories(history).of(controller.facts(logs, 3).survey)
    assert isinstance(found, InSyncHistory)
    assert found.whole(3) is None and not found.known_from_start
    assert found.begins == "the rebuild of the quorum"
    history.rebuilt = RebuiltLog(0, 1, 1_001, ())
    found = InSyncHistories(history).of(controller.facts(logs, 3).survey)
    assert isinstance(found, InSyncHistory) and found.whole(3) is not None, "the topic was made since"
