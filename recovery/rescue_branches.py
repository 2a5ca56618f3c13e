"""What has to be read before an election, so that nothing is lost by it.

An election makes every other replica truncate to the chosen log. A branch is a run of offsets that one replica
holds and the chosen log does not. Where several replicas hold the same (epoch, offset), the one with the best log
has it read, and the others only what is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from recovery.lineages import reconciled_survey
from recovery.loss import lost_spans, without
from recovery.model import (
    NO_EPOCH,
    EpochSpan,
    Replica,
    ReplicaLog,
    Standing,
    Survey,
    TopicPartition,
    Unknown,
)

STRAY_MARK = "-stray"
"""The end of the folder's name of a log that its broker has set aside (Kafka's UnifiedLog)."""
_FIRST_DISK = 1 << 31
"""Disks stand among the replicas of a survey under numbers from here on. No broker has such an id (int32)."""


class BranchPart(StrEnum):
    """HEAD: before the chosen log's start. TAIL: from where the two logs differ."""

    HEAD = "head"
    TAIL = "tail"


class RescueBranch(NamedTuple):
    """Offsets ``start`` (inclusive) to ``end`` (exclusive) of the log on ``broker``, which electing ``leader``
    cuts off.

    ``spans`` are its epochs, ascending and without gaps; NO_EPOCH where the epoch is not known.
    ``size`` is about how many bytes it takes in the log, -1 if not known. ``log_dir`` is where it is read from the
    broker's disk (of a log that the broker has set aside, its folder); "": the broker itself is asked.
    """

    tp: TopicPartition
    topic_id: str
    leader: int
    broker: int
    part: BranchPart
    spans: tuple[EpochSpan, ...]
    size: int = -1
    log_dir: str = ""

    @property
    def stray(self) -> bool:
        """Whether it is read from a log that the broker has set aside."""
        return self.log_dir.endswith(STRAY_MARK)

    @property
    def start(self) -> int:
        return self.spans[0].start

    @property
    def end(self) -> int:
        return self.spans[-1].end

    def epoch_at(self, offset: int) -> int:
        """The epoch of the record at ``offset``, NO_EPOCH where it is not known or outside of the branch."""
        return next((span.epoch for span in self.spans if span.start <= offset < span.end), NO_EPOCH)


def cuts_off(survey: Survey, leader: int) -> bool:
    """Whether electing ``leader`` cuts off anything that a replica which told its log holds."""
    chosen = survey.log(leader)
    if chosen is None:
        return False
    for replica in survey.replicas:
        log = replica.log
        if replica.broker == leader or not isinstance(log, ReplicaLog):
            continue
        # Nearly all logs are equal: thousands of rows are not to be compared span by span.
        same = log.lineage == chosen.lineage and log.log_start_offset == chosen.log_start_offset
        if not same and lost_spans(survey, leader, replica.broker):
            return True
    return False


class UnreadReplica(NamedTuple):
    """A replica that may hold what the chosen log does not, and cannot be read; ``why`` in one line. ``partly``: a
    part of its log was read.
    """

    tp: TopicPartition
    broker: int
    why: str
    partly: bool = False


class DiskCopy(NamedTuple):
    """A log of the partition as a disk of ``broker`` has it; ``log.log_dir`` is where."""

    broker: int
    log: ReplicaLog


def rescue_branches(survey: Survey, leader: int) -> tuple[RescueBranch, ...]:
    """The branches that electing ``leader`` cuts off, of the replicas that told their logs."""
    chosen = survey.log(leader)
    if chosen is None:
        return ()
    covered: list[EpochSpan] = []
    branches: list[RescueBranch] = []
    for broker, log in _best_first(survey, leader):
        spans = lost_spans(survey, leader, broker)
        # Without an epoch the same offset on two replicas may be two records: both are read.
        left = without(spans, covered)
        covered.extend(span for span in left if span.epoch != NO_EPOCH)
        for run in _runs(left, chosen.log_start_offset):
            part = BranchPart.HEAD if run[-1].end <= chosen.log_start_offset else BranchPart.TAIL
            size = _size(log, run[-1].end - run[0].start)
            branches.append(RescueBranch(survey.tp, survey.state.topic_id, leader, broker, part, run, size))
    return tuple(branches)


def with_disk_copies(survey: Survey, copies: Sequence[DiskCopy]) -> Survey:
    """The survey with the copies as further replicas. A replica that is silent makes way for its copy; one that
    answers stays, because a copy that was taken earlier may hold what the broker has cut off since.
    """
    read = {copy.broker for copy in copies}
    replicas = [one for one in survey.replicas if one.broker not in read or isinstance(one.log, ReplicaLog)]
    for number, copy in enumerate(copies):
        replicas.append(Replica(_FIRST_DISK + number, Standing.FENCED, copy.log))
    return reconciled_survey(survey._replace(replicas=tuple(replicas)))


def branches_with_disks(survey: Survey, leader: int, copies: Sequence[DiskCopy]) -> tuple[RescueBranch, ...]:
    """As :func:`rescue_branches`, with what only a disk holds. What a broker holds too is read from the broker."""
    found = []
    for branch in rescue_branches(with_disk_copies(survey, copies), leader):
        if branch.broker < _FIRST_DISK:
            found.append(branch)
        else:
            broker, log = copies[branch.broker - _FIRST_DISK]
            found.append(branch._replace(broker=broker, log_dir=log.log_dir))
    return tuple(found)


def unread_replicas(
    survey: Survey, leader: int, copies: Sequence[DiskCopy] = ()
) -> tuple[UnreadReplica, ...]:
    """The replicas whose logs are known neither from their brokers nor from ``copies``, so that what they alone
    hold is cut off without a copy.
    """
    unread = []
    chosen = survey.log(leader)
    chosen_known = chosen is not None and not isinstance(chosen.lineage, Unknown)
    on_disk = {copy.broker for copy in copies}
    for replica in survey.replicas:
        log = replica.log
        if replica.broker == leader or (chosen_known and replica.broker in on_disk):
            continue
        if isinstance(log, Unknown):
            unread.append(UnreadReplica(survey.tp, replica.broker, str(log)))
        elif isinstance(log.lineage, Unknown):
            unread.append(UnreadReplica(survey.tp, replica.broker, str(log.lineage)))
        elif not chosen_known:
            unread.append(
                UnreadReplica(survey.tp, replica.broker, f"the log of broker {leader} is not known")
            )
    return tuple(unread)


def _best_first(survey: Survey, leader: int) -> list[tuple[int, ReplicaLog]]:
    """The other logs, by (last record's epoch, log end): the first holds most of what is cut off."""
    found = []
    for replica in survey.replicas:
        log = replica.log
        if replica.broker != leader and isinstance(log, ReplicaLog) and not isinstance(log.lineage, Unknown):
            found.append((-log.lineage.last_epoch, -log.log_end_offset, replica.broker, log))
    return [(broker, log) for _, _, broker, log in sorted(found, key=lambda row: row[:3])]


def _runs(spans: Iterable[EpochSpan], chosen_start: int) -> list[tuple[EpochSpan, ...]]:
    """The spans that follow each other without a gap; the head and the tail apart."""
    runs: list[list[EpochSpan]] = []
    for span in sorted(spans, key=lambda one: one.start):
        last = runs[-1][-1] if runs else None
        if last is not None and last.end == span.start and span.start != chosen_start:
            if last.epoch == span.epoch:
                runs[-1][-1] = EpochSpan(span.epoch, last.start, span.end)
            else:
                runs[-1].append(span)
        else:
            runs.append([span])
    return [tuple(run) for run in runs]


def _size(log: ReplicaLog, offsets: int) -> int:
    log_length = log.log_end_offset - max(log.log_start_offset, 0)
    return -1 if log.size < 0 or log_length <= 0 else log.size * offsets // log_length
