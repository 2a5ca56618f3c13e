"""Writes rescued records back: to a topic of their own, or behind the records of their source."""

# ruff: noqa: ARG002  # the signatures are the change's

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from backends.base.protocol import Backend, Progress
from console.errors import InputError, NotDone
from console.exit_status import Status
from console.journal.unfinished_entries import RESTORE_RECORDS
from console.operations.access import Access
from console.operations.change import Change, ChangeRun, Conclusion, Operator, Question
from console.operations.rescue.restore_run import RestoredBranch, RestoreRun
from console.rescue.rescued_branch import RescueContents, RescuedBranch, open_rescue
from console.rescue.restore_journal import RestoreJournal
from console.rescue.restore_selection import BranchCounts, RestoreSelection, count_branch
from recovery.model import PartitionState, TopicPartition, Unknown

COMPACTED = "compact"
RESCUE_TOPIC = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "max.message.bytes": "104857600",
}
"""What keeps the records until somebody deletes the topic, whatever their age and size."""


class TargetPartition(NamedTuple):
    """A branch, where its records go, and how many of them."""

    rescued: RescuedBranch
    tp: TopicPartition
    counts: BranchCounts


@dataclass(frozen=True, slots=True)
class PreparedRestore:
    """What would be written. ``creates`` is the topic that has to be made first, None if it is there.

    ``resumes``: an earlier run has written a part of it.
    """

    contents: RescueContents
    target: str
    rows: tuple[TargetPartition, ...]
    creates: str | None
    replicas: int
    min_isr: str | None
    notes: tuple[str, ...]
    written_before: int

    @property
    def records(self) -> int:
        """Records that are still to be written."""
        return sum(row.counts.selected for row in self.rows) - self.written_before


@dataclass(frozen=True, slots=True)
class RestoredRecords:
    """The result; ``branches`` is empty if nothing was to be sent. ``counted`` are the records of this producer
    that were found in the target's partitions afterwards, Unknown where they could not be read.
    """

    prepared: PreparedRestore
    branches: tuple[RestoredBranch, ...] = ()
    counted: Mapping[TopicPartition, int | Unknown] | None = None

    @property
    def failures(self) -> tuple[tuple[TopicPartition, str], ...]:
        """Each partition whose records are not all there, with the reason in one line."""
        found = {one.tp: one.problem for one in self.branches if one.problem is not None}
        expected: dict[TopicPartition, int] = {}
        for one in self.branches:
            expected[one.tp] = expected.get(one.tp, 0) + one.records
        for tp, number in (self.counted or {}).items():
            if isinstance(number, Unknown):
                found.setdefault(tp, f"could not be counted afterwards: {number}")
            elif number != expected.get(tp, 0):
                found.setdefault(
                    tp, f"{number:,} records found afterwards, {expected.get(tp, 0):,} were written"
                )
        return tuple(found.items())

    @property
    def records(self) -> int:
        return sum(one.records for one in self.branches)


@dataclass(frozen=True, slots=True)
class RestoreRecords(Change[Backend, PreparedRestore, RestoredRecords]):
    """Writes what is in ``directory`` to ``to_topic``, or to the source's own partitions where that is None.

    ``dry_run``: only shows what would be written. ``title`` names the cluster in the question. ``compared``: as a
    screen prepared it before it asked.
    """

    directory: Path
    to_topic: str | None
    selection: RestoreSelection
    title: str
    reason: str
    rate: int | None = None
    dry_run: bool = False
    compared: PreparedRestore | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """The target, as options of the command."""
        return ("--to-source",) if self.to_topic is None else ("--to-topic", self.to_topic)

    def without_lock(self, cluster_id: str) -> None:
        index = open_rescue(self.directory).index
        if index.header.cluster_id != cluster_id:
            raise InputError(
                f"{self.directory}: rescued from cluster {index.header.cluster_id}, and this is {cluster_id};"
                " nothing was sent"
            )

    async def settle(self, access: Access[Backend], run: ChangeRun[PreparedRestore]) -> None:
        """Elections that an earlier run left unfinished do not matter here."""

    async def prepare(
        self, cluster: Backend, cluster_id: str, operator: Operator[PreparedRestore]
    ) -> PreparedRestore:
        now = await self.read(cluster, cluster_id, operator.progress)
        return now if self.compared is None else _unchanged(self.compared, now)

    async def read(self, cluster: Backend, cluster_id: str, progress: Progress | None) -> PreparedRestore:
        """What would be written now. Raises InputError, BackendError."""
        contents = await asyncio.to_thread(open_rescue, self.directory)
        topics = self.selection.topics
        chosen = [one for one in contents.branches if not topics or one.branch.tp.topic in topics]
        if not chosen:
            raise InputError(f"{self.directory}: holds no branch of {', '.join(topics) or 'any topic'}")
        branches = [one for one in chosen if self._wanted(one)]
        target = self.to_topic or "source"
        journal = RestoreJournal(self.directory, cluster_id, target)
        rows = []
        for number, rescued in enumerate(branches):
            if progress is not None:
                progress("reading the rescue", number, len(branches))
            counts = await asyncio.to_thread(count_branch, rescued, self.selection)
            tp = rescued.branch.tp
            rows.append(
                TargetPartition(rescued, TopicPartition(self.to_topic or tp.topic, tp.partition), counts)
            )
        before = sum(held.records for held in journal.appended().values())
        prepared = PreparedRestore(contents, target, tuple(rows), None, -1, None, (), before)
        return (
            await self._to_source(cluster, prepared)
            if self.to_topic is None
            else await self._to_new(cluster, prepared, self.to_topic)
        )

    def _wanted(self, rescued: RescuedBranch) -> bool:
        """Raises InputError for a branch that is not whole and not wanted as it is."""
        if rescued.problem is not None and not self.selection.incomplete:
            branch = rescued.branch
            raise InputError(
                f"{rescued.directory}: {branch.tp} of broker {branch.broker} is not whole ({rescued.problem});"
                " read it again, or give --incomplete to write back what there is; nothing was sent"
            )
        return rescued.manifest is not None

    async def _to_source(self, cluster: Backend, prepared: PreparedRestore) -> PreparedRestore:
        """Raises InputError where the topic is not the one that was rescued, or a newer value could be hidden."""
        topics = sorted({row.tp.topic for row in prepared.rows})
        states = await _states(cluster, topics)
        for row in prepared.rows:
            branch, state = row.rescued.branch, states.get(row.tp)
            if state is None:
                raise InputError(
                    f"{row.tp}: there is no such partition, or it may not be seen; nothing was sent"
                )
            if state.topic_id != branch.topic_id:
                raise InputError(f"{row.tp}: the topic was deleted and created again; nothing was sent")
            if state.offline:
                raise InputError(f"{row.tp}: it has no leader yet: elect one first; nothing was sent")
        configs = await cluster.topic_configs(topics) if topics else {}
        for topic, config in configs.items():
            if isinstance(config, Unknown):
                raise InputError(f"{topic}: its cleanup.policy is not known ({config}); nothing was sent")
            if COMPACTED in config.get("cleanup.policy", "") or topic.startswith("__"):
                raise InputError(
                    f"{topic}: it is compacted or internal: an old value written back would take the place of a"
                    " newer one of the same key; write it to another topic with --to-topic; nothing was sent"
                )
        notes = (
            "records that were written since stay before those that are written back: their order is lost",
        )
        return replace(prepared, notes=notes)

    async def _to_new(self, cluster: Backend, prepared: PreparedRestore, topic: str) -> PreparedRestore:
        sources = sorted({row.rescued.branch.tp.topic for row in prepared.rows})
        if len(sources) > 1:
            raise InputError(
                f"{self.directory}: holds {len(sources)} topics ({', '.join(sources[:3])} …): give one of them with"
                " --topic; nothing was sent"
            )
        if topic in sources:
            raise InputError(f"{topic}: this is the source; give --to-source for that; nothing was sent")
        wanted = 1 + max((row.tp.partition for row in prepared.rows), default=0)
        states = await _states(cluster, [topic, *sources])
        there = [state for tp, state in states.items() if tp.topic == topic]
        if there and len(there) < wanted:
            raise InputError(f"{topic}: has {len(there)} partitions, {wanted} are needed; nothing was sent")
        if there:
            return prepared
        source = [state for tp, state in states.items() if tp.topic in sources]
        config = (await cluster.topic_configs(sources)).get(sources[0]) if sources else None
        min_isr = None if config is None or isinstance(config, Unknown) else config.get("min.insync.replicas")
        return replace(
            prepared,
            creates=topic,
            replicas=max((len(state.replicas) for state in source), default=-1),
            min_isr=min_isr,
        )

    def unsent(self, prepared: PreparedRestore) -> RestoredRecords | None:
        return RestoredRecords(prepared) if self.dry_run or prepared.records <= 0 else None

    def question(self, prepared: PreparedRestore) -> Question:
        """As strict as an election's: a number from the text is typed."""
        where = "their source" if self.to_topic is None else f"topic {self.to_topic}"
        text = (
            f"{prepared.records:,} records will be written to {where} on cluster"
            f" {prepared.contents.index.header.cluster_id} ({self.title}). They cannot be taken out again. To go"
            " on, type their number:"
        )
        return Question.number(text, prepared.records, prepared.notes)

    async def compare_again(
        self,
        cluster: Backend,
        prepared: PreparedRestore,
        answer: str,
        operator: Operator[PreparedRestore],
    ) -> PreparedRestore:
        cluster_id = prepared.contents.index.header.cluster_id
        return _unchanged(prepared, await self.prepare(cluster, cluster_id, operator))

    async def carry_out(
        self, cluster: Backend, prepared: PreparedRestore, run: ChangeRun[PreparedRestore]
    ) -> RestoredRecords:
        detail = {"target": prepared.target, "records": prepared.records, "directory": str(self.directory)}
        entry = run.journal.before(RESTORE_RECORDS, detail)
        writer = cluster.record_writer()
        if prepared.creates is not None:
            configs = dict(RESCUE_TOPIC)
            if prepared.min_isr is not None:
                configs["min.insync.replicas"] = prepared.min_isr
            wanted = 1 + max(row.tp.partition for row in prepared.rows)
            await writer.create_topic(prepared.creates, wanted, prepared.replicas, configs)
        journal = RestoreJournal(self.directory, run.cluster_id, prepared.target)
        work = RestoreRun(
            cluster,
            writer,
            journal,
            selection=self.selection,
            rate=self.rate,
            stop=run.stop,
            progress=run.operator.progress,
        )
        try:
            rows = [(row.rescued, row.tp, row.counts) for row in prepared.rows]
            with run.stop.in_flight():
                branches = await work.run(rows)
            counted = await work.count()
        finally:
            journal.close()
        result = RestoredRecords(prepared, branches, counted)
        refused = dict(result.failures)
        run.journal.after(entry, {"records": result.records, "refused": refused})
        return result

    def conclusion(self, result: RestoredRecords) -> Conclusion:
        return Conclusion(Status.PARTLY if result.failures else Status.DONE)


def _unchanged(asked: PreparedRestore, now: PreparedRestore) -> PreparedRestore:
    """Raises NotDone where it is not what was asked about."""
    if now.records != asked.records or now.creates != asked.creates:
        raise NotDone("what is to be written changed while the question stood open; nothing was sent")
    return now


async def _states(cluster: Backend, topics: list[str]) -> dict[TopicPartition, PartitionState]:
    return {state.tp: state for state in (await cluster.partitions(topics)).states} if topics else {}
