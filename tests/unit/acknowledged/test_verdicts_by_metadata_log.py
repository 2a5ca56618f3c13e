"""What the metadata log adds: who was in the ISR when, and whether anything was acknowledged without a replica."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from recovery.acknowledged.candidate_verdicts import partition_verdicts
from recovery.acknowledged.from_metadata_log import InSyncHistories
from recovery.acknowledged.metadata_log_proofs import proofs_from_history
from recovery.acknowledged.verdict import (
    Condition,
    ConditionKind,
    Decider,
    DeciderKind,
    EvidenceKind,
    VerdictKind,
    VerdictValue,
)
from recovery.controller.registration import PartitionChange
from recovery.controller.rules import ELR_FEATURE
from recovery.metadata_log.records import ConfigRecord, FeatureLevelRecord, ResourceType
from recovery.model import ReplicaLog, Standing, Unknown
from recovery.wording.verdict_text import verdict_text
from tests.unit.acknowledged.controller_log import NOBODY_ANSWERED, ControllerLog
from tests.unit.recovery.surveys import SILENT, log


def last_replica_standing() -> ControllerLog:
    """3, then 2 drop out; 1 leads alone, below min ISR, and dies; the ELR is off."""
    told = ControllerLog()
    told.isr(1, 2)
    told.isr(1)
    told.isr(1, leader=-1)
    return told


ONE_AHEAD: dict[int, ReplicaLog | Unknown] = {1: SILENT, 2: log((0, 0, 900)), 3: log((0, 0, 500))}


def test_a_leader_alone_below_min_isr_acknowledged_nothing() -> None:
    verdict = last_replica_standing().verdict(2, ONE_AHEAD)
    assert (verdict.kind, verdict.conditions) == (VerdictKind.NONE, ())
    assert verdict.evidence[0].kind is EvidenceKind.NEVER_MIN_ISR_WITHOUT


def test_who_left_earlier_lacks_what_was_acknowledged_since() -> None:
    verdict = last_replica_standing().verdict(3, ONE_AHEAD)
    assert (verdict.kind, verdict.at_most, verdict.uncertain) == (VerdictKind.OPEN, 400, ((0, 500, 900),))
    assert verdict.since_ms == 6000


def test_with_both_others_silent_it_is_said_that_either_of_them_decides() -> None:
    told = ControllerLog()
    told.isr(1, 2)
    told.isr(2, leader=2)
    told.isr(2, leader=-1)
    verdict = told.verdict(3, {1: SILENT, 2: SILENT, 3: log((0, 0, 500))})
    assert (verdict.kind, verdict.at_most) == (VerdictKind.OPEN, None)
    answer = next(one for one in verdict.decided_by if one.kind is DeciderKind.BROKER_ANSWER)
    assert (set(answer.brokers), answer.every) == ({1, 2}, False)
    assert DeciderKind.METADATA_LOG not in {one.kind for one in verdict.decided_by}


def test_a_restart_without_a_shutdown_leaves_the_page_cache_in_question() -> None:
    told = last_replica_standing()
    told.starts(2)
    verdict = told.verdict(2, {1: SILENT, 2: log((0, 0, 900)), 3: SILENT})
    assert verdict.kind is VerdictKind.NONE
    assert verdict.conditions == (Condition(ConditionKind.RECORDS_KEPT, (2,), doubtful=True),)


def test_who_of_the_members_was_shut_down_cleanly_is_known() -> None:
    told = last_replica_standing()
    silent = told.facts(NOBODY_ANSWERED)
    known = [(one.broker, one.shut_down) for one in partition_verdicts(silent).automatic_elections]
    assert known == [(1, None)], "a clean stop of a broker that leads nothing leaves no record"
    told.shuts_down(1)
    silent = told.facts(NOBODY_ANSWERED)
    assert [(one.broker, one.shut_down) for one in partition_verdicts(silent).automatic_elections] == [
        (1, True)
    ]
    told.starts(1)
    assert told.history().shut_down == frozenset(), "a new process of it has not been shut down"


def test_after_a_controlled_shutdown_it_is_only_not_checked() -> None:
    told = last_replica_standing()
    told.shuts_down(2)
    told.starts(2)
    verdict = told.verdict(2, {1: SILENT, 2: log((0, 0, 900)), 3: SILENT})
    assert verdict.conditions == (Condition(ConditionKind.RECORDS_KEPT, (2,)),)


@pytest.mark.parametrize("in_snapshot", [True, False])
@pytest.mark.parametrize("level", [0, 1])
def test_a_place_in_an_elr_shows_a_clean_stop_only_while_the_feature_is_on(
    level: int, *, in_snapshot: bool
) -> None:
    """The ELR was turned off after 2 had come into it: the controller leaves 2 there, whatever 2 lost."""
    told = ControllerLog(in_snapshot=in_snapshot)
    told.says(FeatureLevelRecord(ELR_FEATURE, 1))
    told.isr(1, 2)
    told.changes(PartitionChange(isr=(1,), elr=(2,)))
    told.changes(PartitionChange(leader=-1, isr=(), elr=(1, 2)))
    told.says(FeatureLevelRecord(ELR_FEATURE, level))
    told.starts(2)
    verdict = told.verdict(2, {1: SILENT, 2: log((0, 0, 900)), 3: SILENT})
    assert verdict.kind is VerdictKind.NONE
    kept = Condition(ConditionKind.RECORDS_KEPT, (2,), doubtful=True)
    assert verdict.conditions == (() if level else (kept,))


def test_a_replaced_disk_holds_nothing_of_what_was_acknowledged() -> None:
    told = ControllerLog()
    told.starts(2, ("old",))
    told.isr(1, 2)
    told.starts(2, ("new",))
    told.isr(1)
    told.isr(1, leader=-1)
    assert told.verdict(2, {1: SILENT, 2: log((0, 0, 900)), 3: SILENT}).kind is VerdictKind.OPEN


def swapped(*, new_disk: bool) -> ControllerLog:
    """2 led alone when its disk failed; it is back, on a new disk or on the old one."""
    told = ControllerLog(min_isr=1)
    told.starts(2, ("a", "b"))
    told.changes(PartitionChange(directories=("x", "a", "y")))
    told.isr(2, leader=2)
    told.isr(2, leader=-1)
    told.starts(2, ("b", "new") if new_disk else ("a", "b"))
    return told


def test_an_empty_log_on_a_replaced_disk_is_no_answer_of_what_the_old_disk_held() -> None:
    """Nobody else has the records: that every replica answered proves nothing, for no candidate."""
    logs: dict[int, ReplicaLog | Unknown] = {1: log((0, 0, 100)), 2: log(), 3: log((0, 0, 100))}
    told = swapped(new_disk=True)
    for candidate in (1, 2, 3):
        verdict = told.verdict(candidate, logs)
        assert verdict.value not in (VerdictValue.NONE, VerdictValue.UNCHECKED, VerdictValue.IN_DOUBT)
        assert Decider(DeciderKind.BROKER_DISK, (2,), every=True) in verdict.decided_by
        assert "the disk of broker 2 was replaced" in verdict_text(verdict)


def test_an_empty_log_on_the_same_disk_is_only_in_doubt() -> None:
    logs: dict[int, ReplicaLog | Unknown] = {1: log(), 2: log(), 3: log()}
    assert swapped(new_disk=False).verdict(2, logs).value is VerdictValue.IN_DOUBT


def test_a_lower_min_isr_in_between_counts() -> None:
    told = ControllerLog()
    told.isr(1, 2)
    told.min_isr(1)
    told.isr(1)
    told.min_isr(2)
    told.isr(1, leader=-1)
    assert told.verdict(2, {1: SILENT, 2: log((0, 0, 900)), 3: SILENT}).kind is VerdictKind.OPEN


def test_after_an_unclean_election_the_other_branch_is_not_taken_for_lost_junk() -> None:
    """1 and 2 acknowledged without 3; 3 was elected all the same, and died."""
    told = ControllerLog()
    told.isr(1, 2)
    told.isr(1, leader=-1)
    told.isr(3, leader=3, recovering=True)
    told.isr(3, leader=-1)
    logs: dict[int, ReplicaLog | Unknown] = {
        1: SILENT,
        2: log((0, 0, 900)),
        3: log((0, 0, 500), (2, 500, 600)),
    }
    verdict = told.verdict(3, logs)
    assert (verdict.kind, verdict.at_most) == (VerdictKind.OPEN, None)
    assert EvidenceKind.UNCLEAN_ELECTION in {one.kind for one in verdict.evidence}
    seen = told.verdict(3, {**logs, 1: log((0, 0, 910))})
    assert (seen.at_most, seen.uncertain) == (410, ((0, 500, 910),))


def test_an_unclean_election_of_one_that_held_everything_lost_nothing() -> None:
    """The stale long tail: 1 took 500 records alone, below min ISR; 2, which had all before them, was elected."""
    told = ControllerLog()
    told.isr(1, 2)
    told.isr(1)
    told.isr(1, leader=-1)
    told.isr(2, leader=2, recovering=True)
    told.isr(2, leader=-1)
    verdict = told.verdict(2, {1: log((0, 0, 1500)), 2: log((0, 0, 1000), (2, 1000, 1300)), 3: SILENT})
    assert (verdict.kind, verdict.appended, verdict.conditions) == (VerdictKind.NONE, 500, ())


def test_elections_from_before_a_snapshot_are_not_known() -> None:
    told = ControllerLog(in_snapshot=True, epoch=5)
    told.isr(1, leader=-1)
    found = told.verdict(2, {1: SILENT, 2: log((5, 0, 900)), 3: log((5, 0, 950))})
    assert (found.kind, found.conditions) == (VerdictKind.NONE, ())
    branch = log((0, 0, 950))
    other = told.verdict(2, {1: SILENT, 2: log((0, 0, 800), (5, 800, 900)), 3: branch})
    assert {one.kind for one in other.conditions} == {ConditionKind.NO_UNCLEAN_ELECTION}


def test_a_log_that_ends_in_another_state_is_not_used() -> None:
    told = last_replica_standing()
    facts = told.facts(ONE_AHEAD)
    newer = facts.survey._replace(state=facts.survey.state._replace(leader_epoch=9))
    used = InSyncHistories(told.folded()).of(newer)
    assert isinstance(used, Unknown)
    found = partition_verdicts(replace(facts, survey=newer, in_sync=used)).candidates[2]
    assert ConditionKind.NO_UNCLEAN_ELECTION in {one.kind for one in found.conditions}


# Each rule by itself: random incidents reach some of them too seldom to notice that one is broken.


def unclean_election_of_3() -> ControllerLog:
    """1 and 2 acknowledged without 3; then 2 was alone, below min ISR, and 3 was elected uncleanly."""
    told = ControllerLog()
    told.isr(1, 2)
    told.isr(2, leader=2)
    told.isr(2, leader=-1)
    told.isr(3, leader=3, recovering=True)
    told.isr(3, leader=-1)
    return told


def test_who_may_have_followed_an_unclean_leader_is_not_known_to_hold_everything() -> None:
    before, after = ControllerLog(), unclean_election_of_3()
    before.isr(1, 2)
    before.isr(2, leader=2)
    before.isr(2, leader=-1)
    assert before.history().whole(2) is not None
    assert after.history().whole(2) is None


def test_after_an_unclean_election_a_higher_rank_proves_nothing() -> None:
    told = unclean_election_of_3()
    logs: dict[int, ReplicaLog | Unknown] = {**NOBODY_ANSWERED, 3: log((0, 0, 500), (2, 500, 600))}
    facts = told.facts(logs)
    (proof,) = proofs_from_history(facts, facts.known_logs(), told.history(logs), ())
    assert (proof.broker, proof.ranks) == (3, False)


def test_a_silent_replica_may_hold_the_branch_that_an_unclean_election_left() -> None:
    """Nothing of the branch is to be seen, and 1 and 2 had it."""
    logs: dict[int, ReplicaLog | Unknown] = {**NOBODY_ANSWERED, 3: log((0, 0, 500), (3, 500, 600))}
    verdict = unclean_election_of_3().verdict(3, logs)
    assert (verdict.kind, verdict.at_most) == (VerdictKind.OPEN, None)


def test_who_is_elected_has_not_joined_the_leader_it_is() -> None:
    told = unclean_election_of_3()
    assert not told.history().joined_after(3, 0)
    told.isr(3, leader=3)
    told.isr(3, 2)
    assert told.history().joined_after(2, 0)


def placed_on(*directories: str) -> ControllerLog:
    """2 has two log dirs, and leaves the ISR last but one; nothing is acknowledged without it."""
    told = ControllerLog()
    told.starts(2, ("a", "b"))
    told.changes(PartitionChange(directories=directories))
    told.isr(1, 2)
    return told


def test_the_loss_of_the_log_dir_that_held_the_replica_counts_and_of_another_does_not() -> None:
    for left, held in (("b", False), ("a", True)):
        told = placed_on("x", "a", "y")
        told.starts(2, (left, "new"))
        told.isr(1)
        told.isr(1, leader=-1)
        assert (told.history().whole(2) is not None) is held


def test_a_replica_that_was_removed_and_added_again_begins_anew() -> None:
    told = ControllerLog()
    told.isr(1, 2)
    told.changes(PartitionChange(isr=(1,), replicas=(1, 3)))
    told.changes(PartitionChange(replicas=(1, 2, 3)))
    told.isr(1, leader=-1)
    assert told.history().whole(2) is None
    verdict = told.verdict(2, {1: SILENT, 2: log((0, 0, 900)), 3: SILENT})
    assert verdict.kind is VerdictKind.OPEN


def test_min_isr_is_never_above_the_number_of_replicas() -> None:
    told = ControllerLog(min_isr=3)
    told.changes(PartitionChange(isr=(1, 2), replicas=(1, 2)))
    told.changes(PartitionChange(replicas=(1, 2, 3)))
    told.isr(1, 2, leader=-1)
    history = told.history()
    assert history.acknowledges(history.newest - 2)


def test_a_min_isr_of_the_brokers_own_files_is_named_as_not_checked() -> None:
    told = ControllerLog()
    told.says(ConfigRecord(ResourceType.BROKER, "", "min.insync.replicas", None))
    told.isr(1, 2)
    told.isr(1)
    told.isr(1, leader=-1)
    verdict = told.verdict(2, ONE_AHEAD)
    assert verdict.conditions == (Condition(ConditionKind.MIN_ISR_NEVER_LOWER, (1,)),)
    assert "if the file of broker 1 sets no lower min.insync.replicas (not asked)" in verdict_text(verdict)


@pytest.mark.parametrize(
    ("in_snapshot", "of_others", "later", "named"),
    [
        (True, 1, None, True),
        # The topic was made in the log, or its value was set there: no deleted topic had it.
        (False, 1, None, False),
        (True, 1, "2", False),
        # Without the topic's own value the same one would be in force.
        (True, 2, None, False),
    ],
)
def test_a_topics_value_in_a_snapshot_may_be_that_of_a_deleted_topic(
    *, in_snapshot: bool, of_others: int, later: str | None, named: bool
) -> None:
    told = ControllerLog(min_isr=of_others, topic_min_isr=2, in_snapshot=in_snapshot)
    if later is not None:
        told.says(ConfigRecord(ResourceType.TOPIC, "t", "min.insync.replicas", later))
    told.isr(2, 3, leader=2)
    told.starts(1)  # it goes by all of these values from here on
    told.isr(2, 3, 1)
    told.isr(2, 1, leader=1)
    told.isr(1)
    told.isr(1, leader=-1)
    verdict = told.verdict(2, ONE_AHEAD)
    assert verdict.none
    assert (Condition(ConditionKind.NOT_MADE_AGAIN) in verdict.conditions) is named
    text = "if no topic of this name was deleted and made again before the metadata log begins"
    assert (text in verdict_text(verdict)) is named


def shortened_witness(*, restarts: bool = True) -> ControllerLog:
    """3 drops out, then 2, which loses power; 1 leads alone and dies; 2 comes back."""
    told = last_replica_standing()
    if restarts:
        told.starts(2)
    return told


def test_a_witness_that_ends_below_an_earlier_ones_high_watermark_proves_nothing() -> None:
    """3 left the ISR first and knows 900 as committed: 2 had that too, and has lost it, and more perhaps."""
    logs: dict[int, ReplicaLog | Unknown] = {
        1: SILENT,
        2: log((0, 0, 500)),
        3: log((0, 0, 910))._replace(high_watermark=900),
    }
    for broker in (2, 3):
        verdict = shortened_witness().verdict(broker, logs)
        assert verdict.kind is not VerdictKind.NONE
        assert verdict.at_most is None
        lost = next(one for one in verdict.evidence if one.kind is EvidenceKind.RECORDS_LOST)
        assert (lost.brokers, lost.offset) == ((2,), 900)
    answer = next(
        one
        for one in shortened_witness().verdict(3, logs).decided_by
        if one.kind is DeciderKind.BROKER_ANSWER
    )
    assert answer.brokers == (1,)
    assert "broker 2 LOST records that it had" in verdict_text(shortened_witness().verdict(3, logs))


def test_a_witness_that_never_restarted_or_left_first_has_lost_nothing() -> None:
    ahead: dict[int, ReplicaLog | Unknown] = {
        1: SILENT,
        2: log((0, 0, 900))._replace(high_watermark=900),
        3: log((0, 0, 500)),
    }
    told = shortened_witness()
    told.starts(3)
    assert told.verdict(2, ahead).none, "3 left the ISR before 2: it lacks what came later"
    alone: dict[int, ReplicaLog | Unknown] = {
        1: log((0, 0, 950))._replace(high_watermark=950),
        2: log((0, 0, 900)),
        3: SILENT,
    }
    kinds = {one.kind for one in shortened_witness().verdict(2, alone).evidence}
    assert EvidenceKind.RECORDS_LOST not in kinds, "1 committed the rest alone, after 2 had left"
    behind: dict[int, ReplicaLog | Unknown] = {
        1: SILENT,
        2: log((0, 0, 500)),
        3: log((0, 0, 910))._replace(high_watermark=900),
    }
    kinds = {one.kind for one in shortened_witness(restarts=False).verdict(3, behind).evidence}
    assert EvidenceKind.RECORDS_LOST not in kinds


def test_a_disk_that_was_read_proves_nothing_of_what_its_host_had_not_written() -> None:
    """1, the last ISR member, has not restarted; its host may have lost power with records in its cache."""
    told = last_replica_standing()
    facts = told.facts({1: log((0, 0, 900)), 2: SILENT, 3: SILENT})
    first, *others = facts.survey.replicas
    read = first._replace(standing=Standing.FENCED, disk_read_ms=1)
    asked = facts.survey._replace(replicas=(read, *others))
    verdict = partition_verdicts(replace(facts, survey=asked)).candidates[1]
    assert [one.kind for one in verdict.conditions] == [ConditionKind.RECORDS_KEPT]


def test_who_is_put_into_an_empty_isr_without_a_leader_is_not_proved_to_have_caught_up() -> None:
    """A reassignment is cancelled while nobody leads: Kafka then puts the first replica into the ISR."""
    told = ControllerLog()
    told.isr(1, 2)
    told.isr(2, leader=2)
    told.changes(PartitionChange(leader=-1, isr=(), elr=(2, 1)))
    told.changes(PartitionChange(isr=(3,)))
    behind: dict[int, ReplicaLog | Unknown] = {1: SILENT, 2: SILENT, 3: log((0, 0, 500))}
    assert told.verdict(3, behind).kind is VerdictKind.OPEN
    told.isr(3, leader=3)
    (doubt,) = told.history().doubts
    assert (doubt.leader, doubt.unclean) == (3, True)
    before: dict[int, ReplicaLog | Unknown] = {
        1: log((0, 0, 900)),
        2: SILENT,
        3: log((0, 0, 500), (2, 500, 600)),
    }
    assert told.verdict(3, before).kind is VerdictKind.OPEN


def test_partitions_that_changed_alike_are_judged_as_each_one_alone() -> None:
    """They share their history; what a proof of one rests on must not be added to those of the others."""
    told = ControllerLog()
    told.says(ConfigRecord(ResourceType.BROKER, "", "min.insync.replicas", None))
    told.isr(1, 2)
    told.isr(1)
    told.isr(1, leader=-1)
    answers: list[dict[int, ReplicaLog | Unknown]] = [
        {1: SILENT, 2: log((0, 0, 900)), 3: SILENT},
        {1: log((0, 0, 800)), 2: SILENT, 3: SILENT},
        {1: SILENT, 2: log((0, 0, 700)), 3: log((0, 0, 650))},
        {1: log((0, 0, 600)), 2: SILENT, 3: log((0, 0, 650))},
    ]
    alone = [told.facts(logs) for logs in answers]
    conditions = [
        verdict.conditions for verdict in (told.verdict(2, answers[0]), told.verdict(1, answers[1]))
    ]
    assert conditions == [(Condition(ConditionKind.MIN_ISR_NEVER_LOWER, (1,)),), ()]
    for several in permutations(alone):
        shared = InSyncHistories(told.folded())
        for facts in several:
            together = replace(facts, in_sync=shared.of(facts.survey))
            assert partition_verdicts(together)[:2] == partition_verdicts(facts)[:2]
