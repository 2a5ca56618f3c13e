"""Reads which consumer groups have committed offsets, and judges each against the log that stays."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from backends.base.answers import Depth, Partitions, SurveyRequest
from backends.base.consumer_groups import Commits, GroupListing
from backends.base.errors import BackendError
from backends.base.metadata_log import MetadataLogSource
from backends.base.protocol import Backend, Progress
from console.errors import InputError
from console.reading.partition_selection import described
from recovery.groups.group_values import (
    CommittedOffset,
    ConsumerGroup,
    GroupKind,
    GroupMembers,
    GuessedUse,
    guessed_use,
)
from recovery.groups.offset_judgement import (
    LastReadPlace,
    OffsetJudgement,
    SurvivingLog,
    judge_offset,
    no_branch_below,
    other_leaders,
)
from recovery.loss import divergence, loss, without
from recovery.metadata_log.history import MetadataHistory
from recovery.metadata_log.log_changes import PartitionSubject
from recovery.model import EpochSpan, Lineage, ReplicaLog, Survey, TopicPartition, Unknown, Why
from recovery.plan.values import BarePlan, Plan, PlanRow
from recovery.wording.quantity_text import printable, some_of

NO_LEADER_YET = Unknown(Why.NO_LEADER, "a plan file says which log stays: ktriage groups show PLAN")


class StayingLog(NamedTuple):
    """The log that a partition's offsets are judged against. ``elected``: it is the leader's; otherwise the plan's
    choice, and nothing is decided yet. ``as_planned``: it holds all of the log that the plan chose.
    ``forgotten_below``, ``no_branch_below`` and ``planned_end``: as in :func:`judge_offset`.
    """

    surviving: SurvivingLog
    cut_off: tuple[EpochSpan, ...]
    all_logs_known: bool
    elected: bool
    as_planned: bool = False
    forgotten_below: int = 0
    no_branch_below: int = 0
    planned_end: int | None = None


class GroupOffset(NamedTuple):
    """One committed offset. ``log_end`` is that of the log that stays, -1 where it is not known."""

    group: ConsumerGroup
    tp: TopicPartition
    committed: CommittedOffset
    judgement: OffsetJudgement | Unknown
    log_end: int = -1

    @property
    def lag(self) -> int | None:
        """Offsets that are still to be read; None where the log end is not known, or lies before the offset."""
        return self.log_end - self.committed.offset if self.log_end >= self.committed.offset else None

    @property
    def concerned(self) -> bool:
        """Whether the group is not known to read on where it should."""
        if isinstance(self.judgement, Unknown) or self.committed.pending:
            return True
        return not self.judgement.harmless

    @property
    def not_judged(self) -> bool:
        """Whether no more is known than that it has an offset: nobody can say yet whether it needs somebody."""
        return isinstance(self.judgement, Unknown) and not self.committed.pending


@dataclass(frozen=True, slots=True)
class GroupOffsets:
    """Every committed offset that could be read, and what could not. ``members`` of the groups that are concerned
    and not empty; ``uses`` are guesses.
    """

    listing: GroupListing
    rows: tuple[GroupOffset, ...]
    unread: Mapping[str, Unknown]
    logs: Mapping[TopicPartition, StayingLog | Unknown]
    members: Mapping[str, GroupMembers | Unknown] = field(default_factory=dict)
    uses: Mapping[str, GuessedUse] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether every group and every offset was read."""
        return not self.listing.not_listed and not self.unread

    @property
    def concerned(self) -> tuple[GroupOffset, ...]:
        return tuple(row for row in self.rows if row.concerned)


@dataclass(frozen=True, slots=True)
class GroupSelection:
    """Which offsets are read: of the groups named or of all, on the plan's partitions, of ``topics``, or on all."""

    plan: Plan | BarePlan | None = None
    groups: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()

    def partitions(self) -> tuple[TopicPartition, ...] | None:
        """The plan's partitions; None without a plan."""
        if self.plan is None:
            return None
        return tuple(row.tp for row in self.plan.rows if not self.topics or row.tp.topic in self.topics)


async def read_group_offsets(
    cluster: Backend, selection: GroupSelection, seconds: float, progress: Progress | None = None
) -> GroupOffsets:
    """Lists the groups, reads their offsets, and surveys the partitions concerned. Raises BackendError."""
    api = cluster.consumer_groups()
    listing = await api.listed()
    if not listing.not_listed:
        refuse_unknown(
            "consumer group", selection.groups, {g.name for g in listing.groups}, "on this cluster"
        )
    if selection.plan is not None:
        of_plan = {row.tp.topic for row in selection.plan.rows}
        refuse_unknown("topic", selection.topics, of_plan, "in the plan")
    elif selection.topics:
        refuse_unknown_topics(selection.topics, await cluster.partitions(selection.topics))
    groups = [
        g
        for g in listing.groups
        if g.kind is not GroupKind.SHARE and (not selection.groups or g.name in selection.groups)
    ]
    if progress is not None:
        progress("reading committed offsets of groups", 0, len(groups))
    found = await api.committed(groups, selection.partitions())
    unread = {name: commits for name, commits in found.items() if isinstance(commits, Unknown)}
    commits = {name: offsets for name, offsets in found.items() if not isinstance(offsets, Unknown)}
    wanted = {
        tp
        for offsets in commits.values()
        for tp in offsets
        if not selection.topics or tp.topic in selection.topics
    }
    logs = await _staying_logs(cluster, selection.plan, sorted(wanted), seconds, progress)
    rows = tuple(_rows(groups, commits, logs, _cut_off_before(selection.plan)))
    concerned = {row.group.name for row in rows if row.concerned}
    members = await api.members([g for g in groups if g.name in concerned and not g.empty])
    topics = await _topics(cluster) if concerned else sorted({tp.topic for tp in wanted})
    uses = {g.name: guessed_use(g, _assignor(members.get(g.name)), topics) for g in groups}
    return GroupOffsets(
        listing, rows, unread, logs, members, {name: use for name, use in uses.items() if use is not None}
    )


def refuse_unknown(what: str, names: Sequence[str], known: Container[str], where: str) -> None:
    """Raises InputError for a name that is not among those known."""
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InputError(f"no {what} {printable(some_of(unknown))} {where}; nothing was sent")


def refuse_unknown_topics(names: Sequence[str], found: Partitions) -> None:
    """Raises InputError for a topic that is not in the cluster, or may not be seen. ``found`` has these topics."""
    known = {state.topic for state in found.states}
    refuse_unknown("topic", names, known, "on this cluster that may be seen")


async def _topics(cluster: Backend) -> list[str]:
    """Every topic that may be seen: a Streams application shows by its internal ones, where it may have committed
    nothing. Empty if they cannot be listed: what a group is used for is only a guess.
    """
    try:
        return sorted({state.topic for state in (await cluster.partitions()).states})
    except BackendError:
        return []


def _assignor(members: GroupMembers | Unknown | None) -> str:
    return members.assignor if isinstance(members, GroupMembers) else ""


def _rows(
    groups: Iterable[ConsumerGroup],
    commits: Mapping[str, Commits],
    logs: Mapping[TopicPartition, StayingLog | Unknown],
    before: Container[tuple[str, TopicPartition, int, int]],
) -> Iterable[GroupOffset]:
    known: dict[OffsetJudgement, OffsetJudgement] = {}
    for group in groups:
        for tp, committed in commits.get(group.name, {}).items():
            if tp not in logs:
                continue
            log = logs[tp]
            if isinstance(log, Unknown):
                yield GroupOffset(group, tp, committed, log)
                continue
            judged = judge_offset(
                committed,
                log.surviving,
                log.cut_off,
                all_logs_known=log.all_logs_known,
                forgotten_below=log.forgotten_below,
                no_branch_below=log.no_branch_below,
                planned_end=log.planned_end,
                was_cut_off=log.as_planned and (group.name, tp, committed.offset, committed.epoch) in before,
            )
            # Most are alike, and there may be millions.
            yield GroupOffset(group, tp, committed, known.setdefault(judged, judged), log.surviving.end)


def _cut_off_before(plan: Plan | BarePlan | None) -> frozenset[tuple[str, TopicPartition, int, int]]:
    """Which offsets were on the branch that is cut off when the plan was made, or beyond the chosen log's end.
    Later, without an epoch, nothing tells them from offsets that were committed after the election.
    """
    groups = plan.affected if isinstance(plan, Plan) else ()
    gone = (LastReadPlace.CUT_OFF, LastReadPlace.BEYOND_END)
    return frozenset((g.group, g.tp, g.offset, g.epoch) for g in groups if g.place in gone)


async def _staying_logs(
    cluster: Backend,
    plan: Plan | BarePlan | None,
    partitions: Sequence[TopicPartition],
    seconds: float,
    progress: Progress | None,
) -> dict[TopicPartition, StayingLog | Unknown]:
    missing = Unknown(Why.FAILED, "the partition does not exist any more, or may not be seen")
    logs: dict[TopicPartition, StayingLog | Unknown] = dict.fromkeys(partitions, missing)
    if not partitions:
        return logs
    states = (await described(cluster, partitions)).states
    request = SurveyRequest(states, seconds, Depth.FULL, log_dirs=False, leaders_only=plan is None)
    planned_rows = {} if plan is None else {row.tp: row for row in plan.rows}
    surveys = (await cluster.survey(request, progress)).surveys

    def staying(survey: Survey, history: MetadataHistory | None) -> StayingLog | Unknown:
        row = planned_rows.get(survey.tp)
        planned = row if isinstance(row, PlanRow) else None
        return staying_log(survey, planned, None if row is None else row.leader, history)

    logs |= {survey.tp: staying(survey, None) for survey in surveys}
    unsure = [survey for survey in surveys if _needs_history(logs[survey.tp])]
    if unsure:
        source = MetadataLogSource()
        history = None if await source.read(cluster) is not None else source.history
        if isinstance(history, MetadataHistory):
            logs |= {survey.tp: staying(survey, history) for survey in unsure}
    return logs


def _needs_history(log: StayingLog | Unknown) -> bool:
    """Whether a replica never told its log, and the epochs alone do not tell that it holds the same records."""
    return isinstance(log, StayingLog) and not log.all_logs_known and not log.no_branch_below


def staying_log(
    survey: Survey,
    row: PlanRow | None = None,
    designated: int | None = None,
    history: MetadataHistory | None = None,
) -> StayingLog | Unknown:
    """The leader's log; for a partition without a leader that of ``designated``. ``row`` tells what the election
    cut off, or will cut off; without it only replicas that are not truncated yet show that. ``history`` is the
    metadata log, None where it was not read.
    """
    state = survey.state
    if row is not None and row.topic_id != state.topic_id:
        return Unknown(Why.FAILED, "the topic was deleted and created again since the plan")
    broker = designated if state.offline else state.leader
    if broker is None:
        return NO_LEADER_YET
    log = survey.log(broker)
    if log is None or isinstance(log.lineage, Unknown):
        why = log.lineage if log is not None and isinstance(log.lineage, Unknown) else None
        return why or Unknown(Why.NOT_ANSWERED, f"broker {broker} did not report its log")
    now = loss(survey, broker)
    surviving = SurvivingLog(log.lineage, log.log_start_offset, log.log_end_offset)
    as_planned = row is not None and _holds_planned(surviving, row)
    # Kafka moves the leadership to the preferred replica within minutes: what was cut off is what the elected log
    # lacked, and not what the new leader's log lacked when the plan was made.
    candidate = None if row is None else row.chosen if as_planned else row.candidate(broker)
    planned = () if candidate is None else without(candidate.loss.tail, log.lineage.spans)
    silent = now.unanswered if row is None else () if candidate is None else candidate.loss.unanswered
    forgotten_below = _forgotten_below(survey, broker, surviving)
    known = not forgotten_below and (not silent if state.offline or row is not None else True)
    cut_off = tuple(dict.fromkeys((*planned, *now.tail)))
    end = None
    if as_planned and row is not None:
        end = row.chosen.log_end
    elif state.offline:
        end = surviving.end
    return StayingLog(
        surviving,
        cut_off,
        known,
        not state.offline,
        as_planned,
        forgotten_below,
        _no_branch_below(survey, surviving, history),
        end,
    )


def _no_branch_below(survey: Survey, surviving: SurvivingLog, history: MetadataHistory | None) -> int:
    """Below which offset no replica that is silent can hold other records, by the epochs and the metadata log."""
    state, lineage = survey.state, surviving.lineage
    answered = {
        r.broker
        for r in survey.replicas
        if isinstance(r.log, ReplicaLog) and isinstance(r.log.lineage, Lineage)
    }
    leaders = None
    if history is not None:
        subject = PartitionSubject(state.topic_id, state.partition)
        intervals = history.intervals(subject)
        first = min((span.epoch for span in lineage.spans), default=0)
        # A rebuild of the quorum wrote partitions whose last leaders are in no log.
        rebuilt = history.written_by_rebuild(subject) is not None
        if intervals and not rebuilt and intervals[0].registration.leader_epoch <= first:
            states = (one.registration for one in intervals)
            leaders = {(now.leader_epoch, now.leader) for now in states if now.has_leader}
    epochs = {span.epoch for span in lineage.spans}
    others = other_leaders(epochs, leaders, state.leader_epoch, answered)
    return no_branch_below(lineage, surviving.start, others)


def _forgotten_below(survey: Survey, broker: int, surviving: SurvivingLog) -> int:
    """Below which offset replicas have deleted records that may have been others than those of the kept log; 0:
    below none. Such a replica starts later, and no epoch that both hold makes the two equal up to its start.
    """
    logs = [survey.log(replica.broker) for replica in survey.replicas if replica.broker != broker]
    starts = [log.log_start_offset for log in logs if log is not None and not _same_before(log, surviving)]
    return max((start for start in starts if start > surviving.start), default=0)


def _same_before(log: ReplicaLog, surviving: SurvivingLog) -> bool:
    """Whether what the log has deleted was what the other one holds."""
    if isinstance(log.lineage, Unknown):
        return False
    parting = divergence(log.lineage, surviving.lineage)
    return parting is not None and parting >= log.log_start_offset


def _holds_planned(surviving: SurvivingLog, row: PlanRow) -> bool:
    """By its last record: logs that hold the same record are equal before it."""
    chosen = row.chosen
    return chosen.log_end > 0 and surviving.epoch_at(chosen.log_end - 1) == chosen.last_epoch
