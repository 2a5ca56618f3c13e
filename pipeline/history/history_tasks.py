"""The two steps of a history on Spark: tasks that read, and tasks that find the incidents of one shard each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline.history.earlier_run import RULES, HistoryMark
from pipeline.history.events import FactChanges
from pipeline.history.history_sources import HistorySources
from pipeline.history.history_splits import HistorySplit, SplitReader, shards_of, splits_of
from pipeline.history.incidents import Action, incidents, over_already, states_to_carry, with_actors
from pipeline.history.islands import islands, rows_of_kind, state_rows
from pipeline.history.moment_columns import MomentColumns, moment_columns
from pipeline.history.packed_rows import (
    FACTS,
    PACKED,
    STATES,
    cluster_hash,
    names_of,
    packed_row,
    shard_of,
    unpacked,
)
from pipeline.history.state_rows import FLAWS, KINDS
from pipeline.snapshot.input_splits import cost_of_piece, pack
from pipeline.tables.history_schemas import EVENTS, HISTORY_MARKS, HISTORY_STATES, INCIDENTS
from pipeline.tables.schemas import QUARANTINED_ROWS, without_run
from recovery.arrays.nested_arrays import Array

Found = Mapping[str, pa.Table]
"""The rows of each table of a result, by its name, without the run."""


@dataclass(frozen=True, slots=True)
class HistoryTasks:
    """What each task knows: in how many ``shards`` the partitions are, the clusters of which an earlier run is
    ``continued``, their ``moments`` and new ``marks``, and the journal's ``actions``.
    """

    shards: int
    continued: tuple[str, ...]
    moments: MomentColumns
    marks: Mapping[str, HistoryMark]
    actions: tuple[Action, ...]

    def read(self, splits: Sequence[HistorySplit]) -> Iterator[pa.RecordBatch]:
        """The packed rows of those splits. Without splits: a row for each shard, which has marks also if nothing is
        read.
        """
        if not splits:
            return (packed_row(shard, "", b"") for shard in range(self.shards))
        return SplitReader(self.shards, self.continued, self.moments).read(splits)

    def found(self, packed: pa.Table) -> Found:
        """The rows of every table for one shard."""
        rows = unpacked(packed)
        states = state_rows(rows[STATES], rows[HISTORY_STATES.name], self.moments)
        new, carried = [], []
        for kind in range(len(KINDS)):
            lines = islands(rows_of_kind(states, kind, self.moments), self.moments)
            new.append(incidents(kind, lines, states.partitions, self.moments))
            carried.append(states_to_carry(kind, lines, states.partitions, self.moments))
        over = over_already(rows[INCIDENTS.name], rows[HISTORY_STATES.name], self.moments)
        facts = FactChanges(rows[FACTS], self.moments)
        return {
            INCIDENTS.name: with_actors(pa.concat_tables([over, *new]), self.actions),
            HISTORY_STATES.name: pa.concat_tables(carried),
            EVENTS.name: pa.concat_tables([rows[EVENTS.name], facts.events()]),
            HISTORY_MARKS.name: self._marks(packed["shard"][0].as_py(), facts),
            QUARANTINED_ROWS.name: pa.concat_tables(
                [rows[QUARANTINED_ROWS.name], self._broken(states.flaws)]
            ),
        }

    def _broken(self, flaws: Sequence[tuple[int, int, int, int]]) -> pa.Table:
        rows = [
            {
                "cluster_id": self.moments.clusters[cluster],
                "reason": FLAWS[flaw].format(copies),
                "rows": count,
            }
            for cluster, flaw, copies, count in flaws
        ]
        return pa.Table.from_pylist(rows, without_run(QUARANTINED_ROWS))

    def _marks(self, shard: int, facts: FactChanges) -> pa.Table:
        names = self.moments.clusters
        hashes = np.array([cluster_hash(name) for name in names], np.int64)
        mine: Array = np.flatnonzero(
            (shard_of(hashes, self.shards) == shard) & np.isin(names, list(self.marks))
        )
        marks = [self.marks[names[cluster]] for cluster in mine]
        columns = {
            "cluster_id": names_of(names, mine).cast(pa.string()),
            "snapshot": pa.array([mark.snapshot for mark in marks], pa.string()),
            "snapshots": pa.array([mark.snapshots for mark in marks], pa.int32()),
            "timeline": pa.array([mark.timeline for mark in marks], pa.string()),
            "rules": pa.array([mark.rules for mark in marks], pa.int32()),
            "facts": facts.newest_of(mine),
        }
        return pa.table(columns, schema=without_run(HISTORY_MARKS))


def history_tasks(sources: HistorySources, actions: Sequence[Action]) -> HistoryTasks:
    """The tasks for those snapshots."""
    lines = {name: one.timeline for name, one in sources.clusters.items()}
    marks = {
        name: HistoryMark(line.moments[-1].snapshot, len(line.moments), line.digest(len(line.moments)), RULES)
        for name, line in lines.items()
        if line.moments
    }
    continued = tuple(sources.continued)
    return HistoryTasks(shards_of(sources), continued, moment_columns(lines), marks, tuple(actions))


def answers_of_shards(
    spark: Any,
    sources: HistorySources,
    actions: Sequence[Action],
    answer: Callable[[Found], pa.Table],
    schema: str,
) -> Any:
    """What ``answer`` makes of the rows of each shard, as a DataFrame with that schema."""
    from pipeline.spark_tasks import answers, parallelism  # noqa: PLC0415  # needs an extra

    tasks = history_tasks(sources, actions)
    cores = parallelism(spark)
    packs = pack(splits_of(sources, tasks.moments, cores), cores, cost_of_piece)

    def answered(packed: pa.Table) -> pa.Table:
        return answer(tasks.found(packed))

    read = answers(spark, [(), *packs], tasks.read, PACKED)
    return read.groupBy("shard").applyInArrow(answered, schema)
