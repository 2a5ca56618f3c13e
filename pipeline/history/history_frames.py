"""The rows of a history as DataFrames: Spark reads the snapshots and brings the rows of a partition together, and
tasks find its incidents by the rules of :mod:`pipeline.history.islands`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from pipeline.history.earlier_run import RULES, HistoryMark
from pipeline.history.events import FACTS, FactChanges, facts_of
from pipeline.history.history_sources import HistorySources
from pipeline.history.incidents import SAME, Action, incidents, states_to_carry, with_actors
from pipeline.history.islands import islands, rows_of_kind, state_rows
from pipeline.history.moment_columns import MomentColumns, moment_columns
from pipeline.history.state_rows import FLAWS, KINDS, SHOWN_STATES, encoded, with_state_bits
from pipeline.snapshot.current_states import KEYS_OF_SNAPSHOT
from pipeline.tables.delta_table import table_place
from pipeline.tables.history_schemas import EVENTS, HISTORY_MARKS, HISTORY_STATES, INCIDENTS
from pipeline.tables.schema_conversion import conformed, ddl
from pipeline.tables.schemas import (
    MOMENT,
    OBSERVATIONS,
    PARTITION_STATES,
    QUARANTINED_ROWS,
    TableDefinition,
    without_run,
)
from pipeline.tables.spark_reads import read_files, with_columns

A_SHARD = 600_000
"""Rows that one task brings together, about; this bounds its memory."""

READ = pa.schema(
    [
        PARTITION_STATES.schema.field(name)
        for name in ("topic", "topic_id", "partition", "deleted", "leader", "isr", "elr", "min_isr")
    ]
)
"""What is read of a row."""

OBSERVED = pa.schema([OBSERVATIONS.schema.field(name) for name in ("brokers", "quorum")])
"""What is read of an observation."""

_CARRIED = [field for field in without_run(HISTORY_STATES) if field.name not in SHOWN_STATES.names]
LINES = pa.schema([*SHOWN_STATES, *_CARRIED])
"""A row that a snapshot shows, or with a ``kind`` a state that the earlier run left."""

_FOUND = {
    "incident": without_run(INCIDENTS),
    "carried": without_run(HISTORY_STATES),
    "flaw": without_run(QUARANTINED_ROWS),
}
_CHANGED = {
    "event": without_run(EVENTS),
    "mark": pa.schema([without_run(HISTORY_MARKS).field(name) for name in ("cluster_id", "facts")]),
}

KNOWN = pa.schema([("cluster_id", pa.string()), *FACTS])
"""Facts with their cluster. A row without a subject is there so that a cluster without facts has a mark too."""


class HistoryFrames(NamedTuple):
    """``tables``: DataFrames of the tables of a result, without the run. ``persisted``: what has to be freed."""

    tables: Mapping[str, Any]
    persisted: Sequence[Any]


@dataclass(frozen=True, slots=True)
class HistoryRules:
    """What each task knows: the moments of all clusters."""

    moments: MomentColumns

    def found(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Turns batches of :data:`LINES` with every row of their partitions into incidents, states to carry, and
        counts of broken rows.
        """
        rows = pa.Table.from_batches([conformed(batch, LINES) for batch in batches], LINES).combine_chunks()
        if not len(rows):
            return
        carried = rows.filter(rows["kind"].is_valid())
        shown = rows.filter(rows["kind"].is_null())
        states = state_rows(_coded(shown), carried.select(without_run(HISTORY_STATES).names), self.moments)
        new, left = [], []
        for kind in range(len(KINDS)):
            lines = islands(rows_of_kind(states, kind, self.moments), self.moments)
            new.append(incidents(kind, lines, states.partitions, self.moments))
            left.append(states_to_carry(kind, lines, states.partitions, self.moments))
        flaws = [
            {
                "cluster_id": self.moments.clusters[cluster],
                "reason": FLAWS[flaw].format(copies),
                "rows": count,
            }
            for cluster, flaw, copies, count in states.flaws
        ]
        broken = pa.Table.from_pylist(flaws, _FOUND["flaw"])
        yield from _tagged(
            _FOUND, {"incident": pa.concat_tables(new), "carried": pa.concat_tables(left), "flaw": broken}
        )

    def changed(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Turns batches of :data:`KNOWN` with every fact of their clusters into events and what is known last."""
        rows = pa.Table.from_batches([conformed(batch, KNOWN) for batch in batches], KNOWN).combine_chunks()
        if not len(rows):
            return
        names = set(rows["cluster_id"].to_pylist())
        mine = np.flatnonzero(np.isin(self.moments.clusters, list(names)))
        facts = FactChanges(rows.filter(rows["subject"].is_valid()), self.moments)
        marks = pa.table(
            [
                pa.array([self.moments.clusters[number] for number in mine], pa.string()),
                facts.newest_of(mine),
            ],
            schema=_CHANGED["mark"],
        )
        yield from _tagged(_CHANGED, {"event": facts.events(), "mark": marks})


def _coded(rows: pa.Table) -> pa.Table:
    names = ("topic", "topic_id")
    return pa.table(
        {name: encoded(rows[name]) if name in names else rows[name] for name in rows.column_names}
    )


def _tagged(schemas: Mapping[str, pa.Schema], tables: Mapping[str, pa.Table]) -> Iterator[Any]:
    """The rows of several tables in one schema: a struct for each table, of which one is not null."""
    whole = _whole(schemas)
    for name, table in tables.items():
        for batch in table.combine_chunks().to_batches():
            struct = pa.StructArray.from_arrays(batch.columns, fields=list(schemas[name]))
            columns = [
                struct if field.name == name else pa.nulls(batch.num_rows, field.type) for field in whole
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=whole)


def _whole(schemas: Mapping[str, pa.Schema]) -> pa.Schema:
    return pa.schema([(name, pa.struct(list(schema))) for name, schema in schemas.items()])


def marks_of(sources: HistorySources) -> dict[str, HistoryMark]:
    """Up to where each cluster is read then."""
    lines = {name: one.timeline for name, one in sources.clusters.items()}
    return {
        name: HistoryMark(line.moments[-1].snapshot, len(line.moments), line.digest(len(line.moments)), RULES)
        for name, line in lines.items()
        if line.moments
    }


def shards_of(sources: HistorySources) -> int:
    """How many tasks find incidents."""
    rows = sum(one.changed for cluster in sources.clusters.values() for one in cluster.unread)
    if sources.earlier is not None and sources.continued:
        rows += sum(file.rows for file in sources.earlier.files)
    return max(1, math.ceil(rows / A_SHARD))


def history_frames(
    spark: Any, sources: HistorySources, actions: Sequence[Action], *, keep: bool = False
) -> HistoryFrames:
    """Every table of a result. ``keep``: what several of them are made of is persisted. Raises PipelineError if a
    file is gone.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    moments = moment_columns({name: one.timeline for name, one in sources.clusters.items()})
    rules, shards = HistoryRules(moments), shards_of(sources)
    times = f.broadcast(_times(spark, sources, moments))
    earlier = {definition.name: _earlier(spark, sources, definition) for definition in _OF_EARLIER}

    unread = times.where("unread")
    read = _read(spark, sources, PARTITION_STATES, READ).join(unread, ["cluster_id", "snapshot"])
    lines = [with_columns(with_state_bits(read), LINES)]
    carried = earlier[HISTORY_STATES.name]
    if carried is not None:
        lines.append(with_columns(carried, LINES))
    gathered = _union(lines).repartition(shards, "cluster_id", "topic", "partition")
    found = gathered.mapInArrow(rules.found, ddl(_whole(_FOUND)))

    facts = _read(spark, sources, OBSERVATIONS, OBSERVED).join(unread, ["cluster_id", "snapshot"])
    known = [facts.select("cluster_id", "moment", "brokers", "quorum").mapInArrow(facts_of, ddl(KNOWN))]
    marks = spark.createDataFrame(_mark_table(marks_of(sources)))
    known.append(
        marks.selectExpr(
            "cluster_id", "0 AS moment", "CAST(NULL AS string) AS subject", "CAST(NULL AS string) AS value"
        )
    )
    before = earlier[HISTORY_MARKS.name]
    if before is not None:
        earlier_facts = before.selectExpr("cluster_id", "inline(facts)")
        known.append(earlier_facts.join(times, ["cluster_id", "number"]).select(*KNOWN.names))
    clusters = min(max(1, len(sources.clusters)), shards + 3)
    changed = (
        _union(known).repartition(clusters, "cluster_id").mapInArrow(rules.changed, ddl(_whole(_CHANGED)))
    )

    if keep:
        found, changed = found.persist(), changed.persist()
    ended = [_part(found, "incident")]
    over = earlier[INCIDENTS.name]
    if over is not None and carried is not None:
        # Later snapshots cannot change the others.
        goes_on = carried.where("bad").withColumnRenamed("first_number", "number")
        goes_on = goes_on.join(times, ["cluster_id", "number"]).withColumnRenamed("at", "began_at")
        ended.append(over.join(f.broadcast(goes_on.select(*SAME)), list(SAME), "left_anti"))
    incidents_ = _union([rows.select(*without_run(INCIDENTS).names) for rows in ended])
    if actions:
        done, schema = tuple(actions), without_run(INCIDENTS)

        def acted(batches: Iterable[Any]) -> Iterator[Any]:
            for batch in batches:
                yield from with_actors(pa.table(conformed(batch, schema)), done).to_batches()

        incidents_ = incidents_.mapInArrow(acted, ddl(schema))
    tables = {
        INCIDENTS.name: incidents_,
        HISTORY_STATES.name: _part(found, "carried"),
        EVENTS.name: _union([_part(changed, "event"), *_there(earlier[EVENTS.name])]),
        QUARANTINED_ROWS.name: _union([_part(found, "flaw"), *_there(earlier[QUARANTINED_ROWS.name])]),
        HISTORY_MARKS.name: marks.join(_part(changed, "mark"), ["cluster_id"], "left"),
    }
    return HistoryFrames(tables, (found, changed) if keep else ())


_OF_EARLIER = (INCIDENTS, HISTORY_STATES, EVENTS, QUARANTINED_ROWS, HISTORY_MARKS)


def _there(rows: Any | None) -> list[Any]:
    return [] if rows is None else [rows]


def _union(frames: Sequence[Any]) -> Any:
    return reduce(lambda one, other: one.unionByName(other), frames)


def _part(tagged: Any, name: str) -> Any:
    return tagged.where(f"{name} IS NOT NULL").select(f"{name}.*")


def _times(spark: Any, sources: HistorySources, moments: MomentColumns) -> Any:
    """The moments that are used: cluster, snapshot, its ``number`` in the cluster, ``moment`` in all, time, and
    whether the snapshot is to be read.
    """
    rows = [
        (
            name,
            moment.snapshot,
            moment.number,
            int(first) + moment.number,
            moment.at,
            moment.number >= one.read,
        )
        for first, (name, one) in zip(moments.first, sources.clusters.items(), strict=False)
        for moment in one.timeline.moments
    ]
    schema = pa.schema(
        [
            ("cluster_id", pa.string()),
            ("snapshot", pa.string()),
            ("number", pa.int32()),
            ("moment", pa.int32()),
            ("at", MOMENT),
            ("unread", pa.bool_()),
        ]
    )
    columns = [
        pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), schema, strict=True)
    ]
    return spark.createDataFrame(pa.table(columns, schema=schema))


def _mark_table(marks: Mapping[str, HistoryMark]) -> pa.Table:
    schema = pa.schema([field for field in without_run(HISTORY_MARKS) if field.name != "facts"])
    rows = [
        {
            "cluster_id": name,
            "snapshot": mark.snapshot,
            "snapshots": mark.snapshots,
            "timeline": mark.timeline,
            "rules": mark.rules,
        }
        for name, mark in marks.items()
    ]
    return pa.Table.from_pylist(rows, schema)


def _read(spark: Any, sources: HistorySources, definition: TableDefinition, schema: pa.Schema) -> Any:
    """The rows of the snapshots that are read, of any root."""
    places: dict[str, Any] = {}
    files: dict[str, list[Any]] = {}
    for one in sources.reads:
        if one.definition.name == definition.name:
            root = sources.clusters[one.cluster_id].root
            places[root.uri] = table_place(root, definition)
            files.setdefault(root.uri, []).append(one.file)
    whole = pa.schema([*schema, *KEYS_OF_SNAPSHOT])
    frames = [read_files(spark, places[root], mine, whole) for root, mine in files.items()]
    return _union(frames) if frames else spark.createDataFrame([], ddl(whole))


def _earlier(spark: Any, sources: HistorySources, definition: TableDefinition) -> Any | None:
    """The rows of the continued clusters in the earlier run; None: there are none."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    if sources.earlier is None or not sources.continued:
        return None
    files = [
        file for its, file in sources.earlier.files_by_table if its.name == definition.name and file.rows
    ]
    schema = ddl(without_run(definition))
    if not files:
        return spark.createDataFrame([], schema)
    rows = spark.read.schema(schema).parquet(*(file.place.hadoop for file in files))
    return rows.where(f.col("cluster_id").isin(sources.continued))
