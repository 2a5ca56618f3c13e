"""Checks what was claimed about each choice of leader against the disks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from benchmarks.ground_truth.disk_records import DiskReplica, Place
from recovery.acknowledged.verdict import Condition, ConditionKind, PartitionVerdicts, Verdict
from recovery.loss import Loss, loss
from recovery.model import Survey


@dataclass
class TopicHistory:
    """What happened to one topic with one partition.

    ``acknowledged`` are the values of records that the cluster acknowledged with acks=all, those of a transaction
    only once it was committed. ``deleted`` are the values that DeleteRecords or retention removed. ``emptied`` are
    the brokers that lost their disk; ``unclean``: a leader was elected uncleanly; ``lowered``: min ISR was lower
    for a while; ``moved``: replicas were reassigned.
    """

    name: str
    compacted: bool = False
    acknowledged: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    emptied: set[int] = field(default_factory=set)
    unclean: bool = False
    lowered: bool = False
    moved: bool = False

    def holds(self, condition: Condition) -> bool:
        """Whether the condition of a verdict is true in this history."""
        emptied = self.emptied & set(condition.brokers)
        match condition.kind:
            case ConditionKind.RECORDS_KEPT:
                return len(emptied) <= condition.tolerated
            case ConditionKind.NOT_EMPTIED:
                return not emptied
            case ConditionKind.MIN_ISR_NEVER_LOWER:
                return not self.lowered
            case ConditionKind.NO_UNCLEAN_ELECTION:
                return not self.unclean and not self.emptied
            case ConditionKind.SAME_REPLICAS:
                return not self.moved
            case ConditionKind.NO_COMPACTION_HOLES:
                return not self.compacted


@dataclass
class PromiseCounts:
    """``choices`` is the number of candidates that were judged; ``excused`` are false verdicts by the condition
    that they named and that did not hold.
    """

    choices: int = 0
    bounded: int = 0
    nothing: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    excused: Counter[str] = field(default_factory=Counter)


def broken_promises(
    topic: TopicHistory,
    survey: Survey,
    judged: PartitionVerdicts | None,
    disks: Mapping[int, DiskReplica],
    counts: PromiseCounts,
) -> Iterator[str]:
    """One line for each claim about a candidate that is not true. ``disks`` has every replica, also the silent
    ones.
    """
    for broker, chosen in disks.items():
        if survey.log(broker) is None:
            continue
        counts.choices += 1
        others = {other: disk for other, disk in disks.items() if other != broker}
        reported = loss(survey, broker)
        counts.bounded += reported.at_most is not None
        counts.nothing += reported.none
        answered = {other for other in others if survey.log(other) is not None}
        for line in _broken_loss(topic, reported, chosen, others, answered):
            yield f"{survey.tp}, choice {broker}: {line}"
        verdict = judged.candidates.get(broker) if judged is not None else None
        if verdict is None:
            continue
        counts.verdicts[verdict.kind.value] += 1
        wrong = list(_broken_verdict(topic, chosen, others, verdict))
        false = [str(one.kind) for one in verdict.conditions if not topic.holds(one)]
        if wrong and false:
            counts.excused.update(false)
        else:
            for line in wrong:
                yield f"{survey.tp}, choice {broker}: {line}"


def _broken_loss(
    topic: TopicHistory,
    reported: Loss,
    chosen: DiskReplica,
    others: Mapping[int, DiskReplica],
    answered: set[int],
) -> Iterator[str]:
    records_lost = lost_records(topic, chosen, others)
    if reported.at_most is not None and reported.at_most < len(records_lost):
        yield f"loses {len(records_lost)} records, at most {reported.at_most} promised: {sorted(records_lost)[:3]}"
    if topic.compacted:
        return  # its losses are reported as offsets, and compaction leaves gaps in them
    lost = set[Place]().union(*(others[broker].places for broker in answered)) - chosen.places
    if reported.at_least > len(lost):
        yield f"loses {len(lost)} offsets of the disks that answered, at least {reported.at_least} told"
    on_other_disks = sum(len(disk.places) for disk in others.values())
    if reported.at_most is not None and reported.at_most > on_other_disks:
        yield f"at most {reported.at_most} offsets told, and the other disks hold {on_other_disks}"


def _broken_verdict(
    topic: TopicHistory, chosen: DiskReplica, others: Mapping[int, DiskReplica], verdict: Verdict
) -> Iterator[str]:
    lost = lost_records(topic, chosen, others)
    # What retention or DeleteRecords removed is reported as expired.
    acknowledged = {
        place for place, value in lost.items() if value in topic.acknowledged and place[1] >= chosen.start
    }
    if verdict.none and acknowledged:
        yield f"verdict none, and {len(acknowledged)} acknowledged records are lost: {sorted(acknowledged)[:3]}"
    elif verdict.at_most is not None and verdict.at_most < len(acknowledged):
        yield f"{len(acknowledged)} acknowledged records are lost, the verdict allows {verdict.at_most}"
    if topic.compacted:
        return
    places = set[Place]().union(*(disk.places for disk in others.values())) - chosen.places
    if verdict.at_least > len(places):
        yield f"the verdict proves {verdict.at_least} offsets lost, and the disks hold {len(places)} of them"


def lost_records(
    topic: TopicHistory, chosen: DiskReplica, others: Mapping[int, DiskReplica]
) -> Mapping[Place, str]:
    """Every record that another disk holds, that nobody deleted, and that the chosen one lacks, with its value. In
    a compacted topic a newer record of the same key stands for it.
    """
    newest = chosen.newest_by_key() if topic.compacted else {}
    return {
        place: record.value
        for disk in others.values()
        for place, record in disk.records.items()
        if record.value
        and place not in chosen.records
        and record.value not in topic.deleted
        and newest.get(record.key, -1) < place[1]
    }
