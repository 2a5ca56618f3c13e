"""Checks what was claimed about each choice of leader against what producers were told and what is left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from benchmarks.ground_truth.disk_records import DiskReplica, Place
from recovery.acknowledged.verdict import Condition, ConditionKind, PartitionVerdicts, Verdict, VerdictValue
from recovery.loss import Loss, loss
from recovery.model import Survey, Unknown


class ProducedRecord(NamedTuple):
    """One record that a producer sent; ``number`` counts all of an incident."""

    partition: int
    key: str
    tombstone: bool
    number: int


@dataclass(eq=False)
class TopicHistory:
    """What happened to one topic from its creation to its deletion; one that is made again has another history.

    ``partitions`` are those that are written to and judged, of ``count``. ``acknowledged`` are the values of
    records that a producer was told to be written, with acks=all, those of a transaction once it was committed;
    ``alone`` are those with acks=1. ``deleted`` are the values that DeleteRecords or retention removed. ``emptied``
    are the brokers that lost their disk; ``unclean``: a leader was elected uncleanly, at the latest when the record
    ``unclean_at`` was sent; ``lowest``: the lowest min.insync.replicas that a leader may have had;
    ``moved``: replicas were reassigned. ``min_isr`` is the topic's own value, ``ghosts`` are those of topics of the
    same name from before, which a restarted broker brings back, and
    ``once_compacted``: one of them was compacted. ``led`` are the partitions that had a leader when
    they were last looked at.
    """

    name: str
    partitions: tuple[int, ...] = (0,)
    count: int = 1
    replicas: frozenset[int] = frozenset()
    compacted: bool = False
    once_compacted: bool = False
    acknowledged: set[str] = field(default_factory=set)
    alone: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    sent: dict[str, ProducedRecord] = field(default_factory=dict)
    emptied: set[int] = field(default_factory=set)
    unclean: bool = False
    unclean_at: int = -1
    lowest: int | None = None
    moved: bool = False
    min_isr: int | None = None
    ghosts: set[int] = field(default_factory=set)
    led: tuple[int, ...] = ()

    def observed(self, values: Iterable[int]) -> None:
        """These values of min.insync.replicas may be in force now."""
        self.lowest = min((*values, *(() if self.lowest is None else (self.lowest,))))

    def holds(self, condition: Condition, min_isr: int | Unknown) -> bool:
        """Whether the condition of a verdict is true in this history; ``min_isr`` is as the cluster told it.

        A condition that the bench does not know counts as true: it excuses nothing.
        """
        emptied = self.emptied & set(condition.brokers)
        true = {
            ConditionKind.RECORDS_KEPT: len(emptied) <= condition.tolerated,
            ConditionKind.NOT_EMPTIED: not emptied,
            ConditionKind.MIN_ISR_NEVER_LOWER: self.lowest is None
            or isinstance(min_isr, Unknown)
            or self.lowest >= min_isr,
            ConditionKind.NO_UNCLEAN_ELECTION: not self.unclean and not self.emptied,
            ConditionKind.SAME_REPLICAS: not self.moved,
            ConditionKind.NO_COMPACTION_HOLES: not (self.compacted or self.once_compacted),
        }
        return true.get(condition.kind, True)

    def is_of_this_life(self, disk: DiskReplica) -> bool:
        """Whether the log is not that of a deleted topic of the same name, which a dead broker still has."""
        return disk.values <= self.sent.keys()

    def of(self, values: Iterable[str], partition: int) -> set[str]:
        """Those that were sent to this partition."""
        return {v for v in values if v in self.sent and self.sent[v].partition == partition}


@dataclass
class PromiseCounts:
    """``choices`` is the number of candidates that were judged; ``excused`` are false verdicts by the condition
    that they named and that did not hold. ``verdicts`` counts them by what was at hand (the metadata log, the disks
    of dead brokers, neither) and by what was told, ``open_for`` the open ones by what would decide them, and
    by what was lost; ``best`` counts partitions by what their best candidate was told. ``alone``: records that were
    acknowledged with acks=1 only, and that an election with the verdict none lost.
    """

    choices: int = 0
    bounded: int = 0
    nothing: int = 0
    alone: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    open_for: Counter[str] = field(default_factory=Counter)
    best: Counter[str] = field(default_factory=Counter)
    excused: Counter[str] = field(default_factory=Counter)

    def add(self, other: PromiseCounts) -> None:
        self.choices += other.choices
        self.bounded += other.bounded
        self.nothing += other.nothing
        self.alone += other.alone
        self.verdicts.update(other.verdicts)
        self.open_for.update(other.open_for)
        self.best.update(other.best)
        self.excused.update(other.excused)


def broken_promises(
    topic: TopicHistory,
    survey: Survey,
    judged: PartitionVerdicts | None,
    disks: Mapping[int, DiskReplica],
    counts: PromiseCounts,
    *,
    at_hand: str = "log",
) -> Iterator[str]:
    """One line for each claim about a candidate that is not true. ``disks`` has every replica, also the silent
    ones. ``at_hand`` says by what was judged.
    """
    if judged is not None and judged.candidates:
        values = {verdict.value for verdict in judged.candidates.values()}
        counts.best[f"{at_hand}: {next(value for value in VerdictValue if value in values)}"] += 1
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
        counts.verdicts[f"{at_hand}: {verdict.value}"] += 1
        if verdict.value is VerdictValue.OPEN:
            needed = " or ".join(sorted({str(one.kind) for one in verdict.decided_by})) or "nothing any more"
            limit = "no limit" if verdict.at_most is None else "a limit"
            really = "lost some" if acknowledged_lost(topic, chosen, others) else "lost none"
            counts.open_for[f"{at_hand}: {needed} ({limit} known, {really})"] += 1
        for line in excused(topic, survey, verdict, _broken_verdict(topic, chosen, others, verdict), counts):
            yield f"{survey.tp}, choice {broker}, {verdict.value} ({at_hand}): {line}"


def excused(
    topic: TopicHistory, survey: Survey, verdict: Verdict, wrong: Iterable[str], counts: PromiseCounts
) -> list[str]:
    """The lines of what is wrong with a verdict: none if it names a condition that was false in this history."""
    lines = list(wrong)
    false = [str(one.kind) for one in verdict.conditions if not topic.holds(one, survey.min_isr)]
    if lines and false:
        counts.excused.update(false)
        return []
    return lines


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
    if topic.compacted or topic.once_compacted:
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
    lost = acknowledged_lost(topic, chosen, others)
    yield from _beyond(verdict, lost)
    if topic.compacted:
        return
    places = set[Place]().union(*(disk.places for disk in others.values())) - chosen.places
    if verdict.at_least > len(places):
        yield f"the verdict proves {verdict.at_least} offsets lost, and the disks hold {len(places)} of them"


def _beyond(verdict: Verdict, lost: Set[str]) -> Iterator[str]:
    if verdict.none and lost:
        yield f"verdict none, and {len(lost)} acknowledged records are lost: {sorted(lost)[:3]}"
    elif verdict.at_most is not None and verdict.at_most < len(lost):
        yield f"{len(lost)} acknowledged records are lost, the verdict allows {verdict.at_most}"


def unread_promises(
    topic: TopicHistory,
    partition: int,
    verdict: Verdict,
    existed: Set[str],
    read: Set[str],
) -> Iterator[str]:
    """What a consumer did not read after the election of this verdict's replica, of what producers had been told.

    ``existed``: what any disk had before the election, and what was acknowledged after it.
    """
    lost = topic.of(topic.acknowledged & existed - topic.deleted, partition) - read
    if topic.compacted:
        lost = {value for value in lost if _stands_for_itself(topic, value)} | _came_back(
            topic, partition, read
        )
    for line in _beyond(verdict, lost):
        yield f"{line} (read by a consumer)"


def _stands_for_itself(topic: TopicHistory, value: str) -> bool:
    """Whether no newer record of its key was sent to a compacted topic, and it is no tombstone."""
    one = topic.sent[value]
    newer = (
        other.number > one.number
        for other in topic.sent.values()
        if (other.partition, other.key) == (one.partition, one.key)
    )
    return not one.tombstone and not any(newer)


def _came_back(topic: TopicHistory, partition: int, read: Set[str]) -> set[str]:
    """Acknowledged tombstones whose key has an older value again, and nothing newer; since an unclean election that
    may have cut them off.
    """
    newest: dict[str, tuple[int, str]] = {}
    for value in topic.of(read, partition):
        one = topic.sent[value]
        newest[one.key] = max(newest.get(one.key, (-1, "")), (one.number, value))
    back = set()
    for value in topic.of(topic.acknowledged, partition):
        one = topic.sent[value]
        if (
            one.tombstone
            and one.number > topic.unclean_at
            and 0 <= newest.get(one.key, (-1, ""))[0] < one.number
        ):
            back.add(value)
    return back


def acknowledged_lost(
    topic: TopicHistory, chosen: DiskReplica, others: Mapping[int, DiskReplica]
) -> frozenset[str]:
    """Of what producers were told, what other disks hold and the chosen one lacks. What retention or DeleteRecords
    removed is reported as expired.
    """
    lost = lost_records(topic, chosen, others)
    return frozenset(v for at, v in lost.items() if v in topic.acknowledged and at[1] >= chosen.start)


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
        and record.value not in chosen.values
        and record.value not in topic.deleted
        and newest.get(record.key, -1) < place[1]
    }
