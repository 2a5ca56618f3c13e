"""Commits for consumer groups the offsets that they have to go back to, and undoes it from the journal."""

# ruff: noqa: ARG002  # the signatures are the change's

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from backends.base.errors import BackendError
from backends.base.protocol import Backend
from console.change.change import Change, ChangeRun, Conclusion, Operator, Question
from console.errors import InputError, NotDone, Status
from console.jobs.consumers.group_offsets import (
    GroupOffset,
    GroupOffsets,
    GroupSelection,
    StayingLog,
    read_group_offsets,
    refuse_unknown,
)
from console.journal.change_kinds import COMMIT_OFFSETS
from console.journal.run_records import read_runs
from console.new_files import write_new
from console.plan_file_checks import refuse_other_cluster
from console.reading.consumer_reading import ConsumerOffsets, contradicted, offsets_as_consumer
from recovery.groups.group_values import CommittedOffset, ConsumerGroup
from recovery.groups.offset_judgement import LastReadPlace, OffsetJudgement
from recovery.model import TopicPartition, Unknown
from recovery.wording.group_text import PENDING
from recovery.wording.quantity_text import counted

OFFSETS_AN_ENTRY = 2_000
"""About so many offsets are under one entry of the journal; those of a group are never divided."""


class OffsetFix(NamedTuple):
    """``before`` is what is committed now, ``after`` what will be. ``judgement`` is None where a fix is undone."""

    group: ConsumerGroup
    tp: TopicPartition
    before: CommittedOffset
    after: CommittedOffset
    judgement: OffsetJudgement | None


class NotFixed(NamedTuple):
    """An offset that is not changed, and why in one line."""

    group: str
    tp: TopicPartition
    why: str


@dataclass(frozen=True, slots=True)
class PreparedGroupFix:
    """What would be committed. ``after_stopping`` are those of groups that have members: Kafka refuses them until
    the members are stopped. ``offsets`` is None where a fix is undone; ``undone`` counts what is as it was before
    the fix already.
    """

    cluster_id: str
    fixes: tuple[OffsetFix, ...]
    left: tuple[NotFixed, ...]
    offsets: GroupOffsets | None = None
    after_stopping: tuple[OffsetFix, ...] = ()
    undone: int = 0

    @property
    def groups(self) -> int:
        return len({fix.group.name for fix in self.fixes})


@dataclass(frozen=True, slots=True)
class FixedGroups:
    """The result; ``failures`` are those that are not committed, or that were not found so afterwards.
    ``consumer``: where consumers go on, of what was read back here as committed.
    """

    prepared: PreparedGroupFix
    sent: bool = False
    failures: tuple[NotFixed, ...] = ()
    consumer: ConsumerOffsets | None = None


@dataclass(frozen=True, slots=True)
class FixGroups(Change[Backend, PreparedGroupFix, FixedGroups]):
    """Commits the divergence for groups on the branch that was cut off.

    ``uncertain``: also where it is not certain which branch the group has read. ``undo``: restores what the newest
    run of this command replaced, or the newest for each group that is named. ``title`` names the cluster in the
    question. ``export``: nothing is sent, and the offsets are written to this file, if there are any. ``shown``:
    what was confirmed on a screen before; nothing else is sent.
    """

    selection: GroupSelection
    title: str
    reason: str
    seconds: float
    uncertain: bool = False
    undo: bool = False
    dry_run: bool = False
    export: Path | None = None
    shown: PreparedGroupFix | None = None

    def without_lock(self, cluster_id: str) -> None:
        if self.selection.plan is not None:
            refuse_other_cluster(self.selection.plan, cluster_id)

    async def prepare(
        self, cluster: Backend, cluster_id: str, operator: Operator[PreparedGroupFix]
    ) -> PreparedGroupFix:
        if self.undo:
            return self._as_shown(await _undone(cluster, cluster_id, self.selection.groups))
        offsets = await read_group_offsets(cluster, self.selection, self.seconds, operator.progress)
        prepared = prepared_fix(cluster_id, offsets, uncertain=self.uncertain)
        if self.export is not None and (prepared.fixes or prepared.after_stopping):
            write_new(self.export, reset_file(prepared))
        return self._as_shown(prepared)

    def _as_shown(self, now: PreparedGroupFix) -> PreparedGroupFix:
        return now if self.shown is None else _unchanged(self.shown, now)

    def nothing_to_send(self, prepared: PreparedGroupFix) -> FixedGroups | None:
        nothing_to_send = self.dry_run or self.export is not None or not prepared.fixes
        return FixedGroups(prepared) if nothing_to_send else None

    def question(self, prepared: PreparedGroupFix) -> Question:
        number = len(prepared.fixes)
        what = "put back" if self.undo else "moved to where the logs part"
        text = (
            f"{counted(number, 'committed offset')} of {counted(prepared.groups, 'group')} will be {what} on"
            f" cluster {prepared.cluster_id} ({self.title})."
        )
        return Question.number(text, "the number of offsets", number, _warnings(prepared))

    async def recheck(
        self,
        cluster: Backend,
        prepared: PreparedGroupFix,
        answer: str,
        operator: Operator[PreparedGroupFix],
    ) -> PreparedGroupFix:
        return _unchanged(prepared, await self.prepare(cluster, prepared.cluster_id, operator))

    async def execute(
        self, cluster: Backend, prepared: PreparedGroupFix, run: ChangeRun[PreparedGroupFix]
    ) -> FixedGroups:
        by_group: dict[ConsumerGroup, list[OffsetFix]] = defaultdict(list)
        for fix in prepared.fixes:
            by_group[fix.group].append(fix)
        failures: list[NotFixed] = []
        with run.stop.in_flight():
            for part in _parts(list(by_group.values()), OFFSETS_AN_ENTRY):
                if run.stop:
                    failures.extend(_not_fixed(part, "stopped before its turn"))
                    continue
                failures.extend(await self._commit(cluster, part, run))
        left = await _read_back(cluster, prepared.fixes, failures)
        not_fixed = {(one.group, one.tp) for one in left}
        committed: dict[str, dict[TopicPartition, int]] = defaultdict(dict)
        for fix in prepared.fixes:
            if (fix.group.name, fix.tp) not in not_fixed:
                committed[fix.group.name][fix.tp] = fix.after.offset
        consumer = await offsets_as_consumer(cluster, {} if run.stop else committed)
        return FixedGroups(prepared, True, left, consumer)

    async def _commit(
        self, cluster: Backend, part: Sequence[Sequence[OffsetFix]], run: ChangeRun[PreparedGroupFix]
    ) -> list[NotFixed]:
        """Some groups under one entry of the journal."""
        detail = {"undo": self.undo, "offsets": [_entry(fix) for fixes in part for fix in fixes]}
        entry = run.journal.before(COMMIT_OFFSETS, detail)
        writer = cluster.offset_writer()
        failures: list[NotFixed] = []
        for fixes in part:
            group = fixes[0].group
            try:
                ended = await writer.commit(group, {fix.tp: fix.after for fix in fixes})
            except BackendError as error:
                failures.extend(_not_fixed([fixes], str(error)))
                continue
            failures.extend(NotFixed(group.name, tp, why) for tp, why in ended.items() if why is not None)
        not_committed = [{"group": f.group, "partition": str(f.tp), "why": f.why} for f in failures]
        run.journal.after(entry, {"notCommitted": not_committed})
        return failures

    def conclusion(self, result: FixedGroups) -> Conclusion:
        counts = {
            "committed": len(result.prepared.fixes) - len(result.failures) if result.sent else 0,
            "failed": len(result.failures),
        }
        offsets = result.prepared.offsets
        whole = offsets is None or offsets.complete
        open_ones = result.failures or result.prepared.left or result.prepared.after_stopping or not whole
        open_ones = open_ones or contradicted(result.consumer)
        return Conclusion(Status.PARTLY if open_ones else Status.DONE, counts)


def _unchanged(shown: PreparedGroupFix, now: PreparedGroupFix) -> PreparedGroupFix:
    if [fix[1:4] for fix in now.fixes] != [fix[1:4] for fix in shown.fixes]:
        raise NotDone("groups or logs changed while the question stood open; nothing was sent")
    return now


def prepared_fix(cluster_id: str, offsets: GroupOffsets, *, uncertain: bool) -> PreparedGroupFix:
    """Which of the offsets are changed, and why the others that are concerned are not."""
    fixes: list[OffsetFix] = []
    stopped_first: list[OffsetFix] = []
    left: list[NotFixed] = []
    for row in offsets.concerned:
        why = _why_not(row, offsets, uncertain)
        log = offsets.logs[row.tp]
        if why is not None or isinstance(log, Unknown) or isinstance(row.judgement, Unknown):
            left.append(NotFixed(row.group.name, row.tp, why or "its log is not known"))
            continue
        back = row.judgement.go_back_to
        assert back is not None, "a judgement without an offset is refused above"
        after = CommittedOffset(back, log.surviving.epoch_at(back - 1), row.committed.metadata)
        fix = OffsetFix(row.group, row.tp, row.committed, after, row.judgement)
        (fixes if row.group.empty else stopped_first).append(fix)
    return PreparedGroupFix(cluster_id, tuple(fixes), tuple(left), offsets, tuple(stopped_first))


def reset_file(prepared: PreparedGroupFix) -> str:
    """What ``kafka-consumer-groups --reset-offsets --from-file`` takes: group, topic, partition and offset."""
    fixes = sorted((*prepared.fixes, *prepared.after_stopping), key=lambda fix: (fix.group.name, fix.tp))
    return "".join(
        f"{_csv(f.group.name)},{_csv(f.tp.topic)},{f.tp.partition},{f.after.offset}\n" for f in fixes
    )


def _csv(text: str) -> str:
    return text if text.isprintable() and not set(text) & set(',"') else '"' + text.replace('"', '""') + '"'


def _why_not(row: GroupOffset, offsets: GroupOffsets, uncertain: bool) -> str | None:
    judgement, log = row.judgement, offsets.logs[row.tp]
    if row.committed.pending:
        return PENDING
    if isinstance(judgement, Unknown):
        return str(judgement)
    if isinstance(log, StayingLog) and not log.elected:
        return "the partition has no leader yet: elect one first"
    if judgement.go_back_to is None:
        what = "no log that is known says where to go back to; the client's auto.offset.reset decides"
        return f"{judgement.place}: {what}"
    certain = judgement.exact and judgement.place is not LastReadPlace.EITHER
    if not certain and not uncertain:
        return f"{judgement.place}: not certain (--uncertain takes {judgement.go_back_to:,})"
    return None


def _warnings(prepared: PreparedGroupFix) -> tuple[str, ...]:
    alone = sorted({fix.group.name for fix in prepared.fixes if not fix.group.protocol_type})
    if not alone:
        return ()
    names = ", ".join(alone[:_NAMED]) if len(alone) <= _NAMED else f"these {len(alone)} groups"
    return (
        f"Make sure that no consumer runs in {names}.",
        "Kafka does not show consumers that assign partitions themselves.",
    )


_NAMED = 3


async def _read_back(
    cluster: Backend, fixes: Sequence[OffsetFix], failures: Sequence[NotFixed]
) -> tuple[NotFixed, ...]:
    """What is not committed now. A coordinator may have done it without an answer."""
    reported = {(failure.group, failure.tp): failure.why for failure in failures}
    groups = list(dict.fromkeys(fix.group for fix in fixes))
    found = await cluster.consumer_groups().committed(groups, {fix.tp for fix in fixes})
    left: list[NotFixed] = []
    for fix in fixes:
        commits, why = found.get(fix.group.name), reported.get((fix.group.name, fix.tp))
        if commits is None or isinstance(commits, Unknown):
            left.append(NotFixed(fix.group.name, fix.tp, why or f"could not be read back: {commits}"))
        elif commits.get(fix.tp) != fix.after:
            left.append(NotFixed(fix.group.name, fix.tp, why or f"reads back as {commits.get(fix.tp)}"))
    return tuple(left)


async def _undone(cluster: Backend, cluster_id: str, only: tuple[str, ...]) -> PreparedGroupFix:
    """What the newest run committed, the other way round, where nobody has committed since. ``only``: the newest
    that committed for each of these groups, which may be several: those with members are fixed later.
    """
    wanted = _newest_fix(cluster_id, only)
    listed = {group.name: group for group in (await cluster.consumer_groups().listed()).groups}
    groups = [listed[name] for name in dict.fromkeys(line["group"] for line in wanted) if name in listed]
    partitions = {TopicPartition(line["topic"], line["partition"]) for line in wanted}
    found = await cluster.consumer_groups().committed(groups, partitions)
    fixes: list[OffsetFix] = []
    left: list[NotFixed] = []
    undone = 0
    for line in wanted:
        name, tp = line["group"], TopicPartition(line["topic"], line["partition"])
        group, commits = listed.get(name), found.get(name)
        before, after = _offset_of(line["before"]), _offset_of(line["after"])
        if group is None or commits is None or isinstance(commits, Unknown):
            left.append(
                NotFixed(name, tp, f"its offsets cannot be read: {commits or 'the group is not listed'}")
            )
        elif commits.get(tp) == before:
            undone += 1
        elif commits.get(tp) != after:
            left.append(NotFixed(name, tp, "the group has committed another offset since"))
        elif not group.empty:
            left.append(NotFixed(name, tp, f"the group is {group.state}: stop its members first"))
        else:
            fixes.append(OffsetFix(group, tp, after, before, None))
    return PreparedGroupFix(cluster_id, tuple(fixes), tuple(left), undone=undone)


def _newest_fix(cluster_id: str, only: tuple[str, ...]) -> list[Mapping[str, Any]]:
    """The offsets of the newest run that fixed groups, or of the newest for each of ``only``. Raises InputError
    where there is none, JournalError.
    """
    fixes = []
    for run in reversed(read_runs(cluster_id)):
        entries = [begun for begun, _ in run.entries(COMMIT_OFFSETS)]
        if entries and not entries[0].detail["undo"]:
            fixes.append([line for entry in entries for line in entry.detail["offsets"]])
    if not fixes:
        raise InputError(
            "the journal of this host has no fix of consumer groups on this cluster; nothing was sent"
        )
    if not only:
        return fixes[0]
    newest: dict[str, list[Mapping[str, Any]]] = {}
    for lines in fixes:
        fixed_before = frozenset(newest)
        for line in lines:
            if line["group"] not in fixed_before:
                newest.setdefault(line["group"], []).append(line)
    refuse_unknown("group", only, newest, "in the fixes of this host's journal")
    return [line for name in dict.fromkeys(only) for line in newest[name]]


def _entry(fix: OffsetFix) -> dict[str, object]:
    return {
        "group": fix.group.name,
        "topic": fix.tp.topic,
        "partition": fix.tp.partition,
        "before": fix.before._asdict(),
        "after": fix.after._asdict(),
    }


def _offset_of(fields: Mapping[str, Any]) -> CommittedOffset:
    return CommittedOffset(fields["offset"], fields["epoch"], fields["metadata"])


def _parts(groups: list[list[OffsetFix]], size: int) -> Iterator[list[list[OffsetFix]]]:
    part: list[list[OffsetFix]] = []
    for fixes in groups:
        part.append(fixes)
        if sum(map(len, part)) >= size:
            yield part
            part = []
    if part:
        yield part


def _not_fixed(groups: Sequence[Sequence[OffsetFix]], why: str) -> list[NotFixed]:
    return [NotFixed(fix.group.name, fix.tp, why) for fixes in groups for fix in fixes]
