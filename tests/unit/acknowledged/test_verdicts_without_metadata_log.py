"""What can be said of acknowledged records from the replicas' logs alone."""

from __future__ import annotations

import pytest

from recovery.acknowledged.candidate_verdicts import partition_verdicts
from recovery.acknowledged.complete_logs import proofs_without_history
from recovery.acknowledged.lacking_spans import lacking
from recovery.acknowledged.partition_facts import PartitionFacts
from recovery.acknowledged.verdict import (
    AutomaticElectionKind,
    ConditionKind,
    DeciderKind,
    EvidenceKind,
    VerdictKind,
)
from recovery.model import EpochSpan, Lineage, ReplicaLog, Standing, Survey, Unknown, Why
from recovery.plan.plan_review import acknowledged_loss
from recovery.wording.verdict_text import short_verdict, verdict_text
from tests.unit.recovery.surveys import NO_READ, SILENT, log, survey


def marked(found: ReplicaLog, high_watermark: int) -> ReplicaLog:
    return found._replace(high_watermark=high_watermark)


def kinds(told: Survey, **known: object) -> dict[int, VerdictKind]:
    found = partition_verdicts(PartitionFacts(told, **known))  # type: ignore[arg-type]
    return {broker: verdict.kind for broker, verdict in found.candidates.items()}


def test_a_high_watermark_proves_that_the_other_branch_was_committed() -> None:
    """1 holds 0 to 1499 and knew 1500; 2 was elected without them and took 300 more."""
    told = survey({1: marked(log((0, 0, 1500)), 1500), 2: log((0, 0, 1000), (2, 1000, 1300)), 3: SILENT})
    verdict = partition_verdicts(PartitionFacts(told)).candidates[2]
    assert (verdict.kind, verdict.at_least) == (VerdictKind.SOME, 500)
    assert verdict.committed == ((0, 1000, 1500),)
    assert verdict.at_most is None, "overlap says that 2 lacks nothing, and is contradicted"
    assert verdict.evidence[0].kind is EvidenceKind.HIGH_WATERMARK
    assert verdict.evidence[0].offset == 1500


BRANCH = log((0, 0, 1000), (2, 1000, 1300))


def test_where_every_log_is_known_nothing_but_what_was_committed_is_lost() -> None:
    told = survey({1: marked(log((0, 0, 1500)), 1500), 2: BRANCH, 3: BRANCH})
    verdict = partition_verdicts(PartitionFacts(told, compacted=False)).candidates[2]
    assert (verdict.at_least, verdict.at_most, verdict.exact) == (500, 500, True)
    assert short_verdict(verdict) == "500 committed"
    assert verdict_text(verdict) == "loses 500 offsets that a high watermark proves committed, and no others"
    assert str(acknowledged_loss((verdict,))) == "500 committed"


def test_where_every_log_is_known_the_records_beyond_the_high_watermark_are_the_bound() -> None:
    told = survey({1: marked(log((0, 0, 1500)), 1400), 2: BRANCH, 3: BRANCH})
    verdict = partition_verdicts(PartitionFacts(told, compacted=False)).candidates[2]
    assert (verdict.at_least, verdict.at_most, verdict.exact) == (400, 500, False)
    assert short_verdict(verdict) == "400+ committed"
    assert verdict_text(verdict).endswith("proves committed; at most 500 acknowledged offsets are lost")
    assert str(acknowledged_loss((verdict,))) == "400 or more committed"


def test_a_bound_that_rests_on_something_unchecked_says_so_beside_what_is_proved() -> None:
    """3 could hold more, unless what the overlap rests on is true."""
    told = survey({1: marked(log((0, 0, 1500)), 1400), 2: log((0, 0, 1300)), 3: SILENT})
    verdict = partition_verdicts(PartitionFacts(told, compacted=False)).candidates[2]
    assert (verdict.at_least, verdict.at_most, verdict.exact) == (100, 200, False)
    assert "at most 200 acknowledged offsets are lost, if min ISR was never lower" in verdict_text(verdict)


def test_a_stale_high_watermark_proves_nothing() -> None:
    told = survey({1: log((0, 0, 1500)), 2: log((0, 0, 1000)), 3: SILENT})._replace(min_isr=1)
    verdict = partition_verdicts(PartitionFacts(told)).candidates[2]
    assert (verdict.kind, verdict.at_least, verdict.at_most) == (VerdictKind.OPEN, 0, None)
    assert {decider.kind for decider in verdict.decided_by} >= {
        DeciderKind.BROKER_ANSWER,
        DeciderKind.BROKER_DISK,
        DeciderKind.METADATA_LOG,
    }


def test_one_silent_replica_of_three_at_min_isr_two_can_hold_nothing_acknowledged_alone() -> None:
    told = survey({1: log((0, 0, 900)), 2: log((0, 0, 940)), 3: SILENT}, isr=(3,), elr=None)
    found = partition_verdicts(PartitionFacts(told, elr_enabled=False))
    best, other = found.candidates[2], found.candidates[1]
    assert best.kind is VerdictKind.NONE
    assert {condition.kind for condition in best.conditions} >= {
        ConditionKind.MIN_ISR_NEVER_LOWER,
        ConditionKind.NO_UNCLEAN_ELECTION,
    }
    assert (other.kind, other.at_most, other.uncertain) == (VerdictKind.OPEN, 40, ((0, 900, 940),))
    elected = found.automatic_elections[0]
    assert (elected.broker, elected.kind, elected.checks_records) == (
        3,
        AutomaticElectionKind.ISR_MEMBER,
        False,
    )


def test_two_silent_replicas_may_have_acknowledged_between_them() -> None:
    told = survey({1: log((0, 0, 900)), 2: SILENT, 3: SILENT})
    assert kinds(told) == {1: VerdictKind.OPEN}
    facts = PartitionFacts(told)
    assert not proofs_without_history(facts, facts.known_logs()), "the one that answered proves nothing"


def test_the_newest_epoch_and_not_the_longest_log_holds_everything() -> None:
    told = survey({1: log((0, 0, 1500)), 2: log((0, 0, 1000), (2, 1000, 1300)), 3: SILENT})
    assert kinds(told) == {1: VerdictKind.OPEN, 2: VerdictKind.NONE}


def test_without_the_metadata_log_every_silent_broker_is_needed() -> None:
    """Each of them may hold records that the other one lacks."""
    told = survey({1: log((0, 0, 900)), 2: SILENT, 3: SILENT})
    deciders = {one.kind: one for one in partition_verdicts(PartitionFacts(told)).candidates[1].decided_by}
    answer = deciders[DeciderKind.BROKER_ANSWER]
    assert (answer.brokers, answer.every) == ((2, 3), True)


def test_an_unknown_min_isr_is_no_min_isr() -> None:
    told = survey({1: log((0, 0, 900)), 2: log((0, 0, 900)), 3: SILENT})
    unknown = told._replace(min_isr=Unknown(Why.NOT_ALLOWED, "DESCRIBE_CONFIGS"))
    assert set(kinds(unknown).values()) == {VerdictKind.OPEN}
    verdict = partition_verdicts(PartitionFacts(unknown)).candidates[1]
    assert DeciderKind.MIN_ISR in {decider.kind for decider in verdict.decided_by}


def test_a_topic_that_elects_uncleanly_by_itself_proves_nothing_by_overlap() -> None:
    told = survey({1: log((0, 0, 900)), 2: log((0, 0, 940)), 3: SILENT})
    assert kinds(told, unclean_elections=True) == {1: VerdictKind.OPEN, 2: VerdictKind.OPEN}
    found = partition_verdicts(PartitionFacts(told, unclean_elections=True))
    assert [(e.broker, e.kind) for e in found.automatic_elections] == [
        (3, AutomaticElectionKind.UNCLEAN_TOPIC)
    ]


def test_when_every_replica_answered_the_loss_is_bounded_without_conditions() -> None:
    told = survey({1: log((0, 0, 900)), 2: log((0, 0, 940)), 3: log((0, 0, 900))})
    unsure = PartitionFacts(told, unclean_elections=True, compacted=False)
    verdict = partition_verdicts(unsure).candidates[1]
    assert (verdict.kind, verdict.at_most, verdict.conditions) == (VerdictKind.OPEN, 40, ())
    best = partition_verdicts(unsure).candidates[2]
    assert (best.kind, best.conditions) == (VerdictKind.NONE, ())


def test_an_emptied_disk_is_no_witness() -> None:
    """Broker 2 came back with an empty disk, 3 is silent: the two may have acknowledged without 1."""
    told = survey({1: log((0, 0, 900)), 2: log(), 3: SILENT})
    assert kinds(told) == {1: VerdictKind.OPEN, 2: VerdictKind.OPEN}


def test_what_must_hold_of_the_witnesses_does_not_name_an_emptied_disk() -> None:
    """Four replicas, min ISR 3: 3 is empty and 4 is silent, so 1 and 2 must both have kept their records."""
    told = survey({1: log((0, 0, 900)), 2: log((0, 0, 900)), 3: log(), 4: SILENT})._replace(min_isr=3)
    verdict = partition_verdicts(PartitionFacts(told)).candidates[1]
    (kept,) = (one for one in verdict.conditions if one.kind is ConditionKind.RECORDS_KEPT)
    assert (verdict.kind, kept.brokers, kept.tolerated) == (VerdictKind.NONE, (1, 2), 0)


def test_a_disk_that_was_read_counts_as_an_answer() -> None:
    told = survey({1: log((0, 0, 900)), 2: log((0, 0, 880)), 3: SILENT}, standings={2: Standing.FENCED})
    first, second, third = told.replicas
    read = told._replace(replicas=(first, second._replace(disk_read_ms=1), third))
    assert kinds(read)[1] is VerdictKind.NONE


def test_a_log_without_epochs_is_not_known() -> None:
    told = survey({1: log((0, 0, 900)), 2: log((0, 0, 900))._replace(lineage=NO_READ), 3: SILENT})
    assert kinds(told) == {1: VerdictKind.OPEN}


def test_an_elr_member_holds_everything_that_was_committed() -> None:
    told = survey({1: log((0, 0, 900)), 2: SILENT, 3: SILENT}, elr=(1,))
    assert kinds(told) == {1: VerdictKind.NONE}


def test_compacted_logs_of_different_sizes_put_a_verdict_in_question() -> None:
    logs: dict[int, ReplicaLog | Unknown] = {
        1: log((0, 0, 900))._replace(size=100),
        2: log((0, 0, 900))._replace(size=90),
        3: SILENT,
    }
    verdict = partition_verdicts(PartitionFacts(survey(logs), compacted=True)).candidates[1]
    assert verdict.kind is VerdictKind.NONE
    assert verdict.doubtful


def test_what_retention_removed_is_no_loss() -> None:
    told = survey({1: log((0, 100, 900), start=100), 2: log((0, 0, 900)), 3: log((0, 0, 900))})
    verdict = partition_verdicts(PartitionFacts(told)).candidates[1]
    assert (verdict.kind, verdict.expired) == (VerdictKind.NONE, 100)


def test_of_a_pair_only_what_retention_is_known_to_have_removed_is_no_loss() -> None:
    """2 starts at 0 and 1 at 100. Where the epochs below 200 are not known, the first 100 may be other records."""
    whole, later = log((0, 0, 900)), log((0, 100, 900), start=100)
    told = survey({1: later, 2: whole, 3: SILENT})
    assert (lacking(told, later, whole).at_most, lacking(told, later, whole).expired) == (0, 100)
    epochs = Lineage(0, (EpochSpan(0, 200, 900),), 200)
    blind = [one._replace(lineage=epochs) for one in (later, whole)]
    assert (lacking(told, *blind).at_most, lacking(told, *blind).expired) == (100, 0)


def test_an_elr_member_with_an_emptied_log_holds_nothing() -> None:
    told = survey({1: log((0, 0, 900)), 2: log(), 3: SILENT}, elr=(2,))
    assert kinds(told) == {1: VerdictKind.OPEN, 2: VerdictKind.OPEN}


def test_while_replicas_are_reassigned_nothing_follows_from_overlap() -> None:
    told = survey({1: log((0, 0, 900)), 2: log((0, 0, 940)), 3: SILENT})._replace(reassigning=True)
    assert kinds(told) == {1: VerdictKind.OPEN, 2: VerdictKind.OPEN}


@pytest.mark.parametrize(("min_isr", "tolerated"), [(2, 0), (3, 1)])
def test_so_many_witnesses_may_have_lost_unflushed_records(min_isr: int, tolerated: int) -> None:
    """Each acknowledged record was on min ISR replicas, and only one of them is silent."""
    told = survey({1: log((0, 0, 900)), 2: log((0, 0, 940)), 3: SILENT})._replace(min_isr=min_isr)
    verdict = partition_verdicts(PartitionFacts(told)).candidates[2]
    kept = next(one for one in verdict.conditions if one.kind is ConditionKind.RECORDS_KEPT)
    assert (set(kept.brokers), kept.tolerated) == ({1, 2}, tolerated)


def test_without_the_metadata_log_the_history_that_was_not_checked_is_named_for_bounds_too() -> None:
    told = survey({1: log((0, 0, 900)), 2: log((0, 0, 940)), 3: SILENT}, isr=(3,), elr=None)
    found = partition_verdicts(PartitionFacts(told, elr_enabled=False, compacted=False)).candidates
    for verdict in (found[1], found[2]):
        assert {condition.kind for condition in verdict.conditions} == {
            ConditionKind.MIN_ISR_NEVER_LOWER,
            ConditionKind.NO_UNCLEAN_ELECTION,
            ConditionKind.SAME_REPLICAS,
            ConditionKind.RECORDS_KEPT,
        }


def test_a_cleanup_policy_that_is_not_known_may_have_left_holes() -> None:
    sizes: dict[int, ReplicaLog | Unknown] = {
        1: log((0, 0, 900))._replace(size=100),
        2: log((0, 0, 900))._replace(size=90),
        3: log((0, 0, 900))._replace(size=100),
    }
    (holes,) = partition_verdicts(PartitionFacts(survey(sizes))).candidates[1].conditions
    assert (holes.kind, holes.doubtful) == (ConditionKind.NO_COMPACTION_HOLES, True)
    assert partition_verdicts(PartitionFacts(survey(sizes), compacted=False)).candidates[1].conditions == ()


def test_a_broker_whose_disk_failed_is_not_asked_for_an_answer_but_its_disk_is() -> None:
    told = survey({1: log((0, 0, 900)), 2: SILENT, 3: SILENT})
    facts = PartitionFacts(told, failed_disks=frozenset({3}))
    deciders = {one.kind: one.brokers for one in partition_verdicts(facts).candidates[1].decided_by}
    assert deciders[DeciderKind.BROKER_ANSWER] == (2,)
    assert deciders[DeciderKind.BROKER_DISK] == (2, 3)
