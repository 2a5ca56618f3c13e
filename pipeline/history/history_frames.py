"""The rows of a history as DataFrames: Spark reads the snapshots, brings the rows of a partition together, of which
tasks find the islands (:mod:`pipeline.history.islands`), and finds incidents by the queries of
:mod:`pipeline.history.history_queries`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import reduce
from itertools import groupby
from typing import Any, NamedTuple

import pyarrow as pa

from pipeline.history import history_queries as queries
from pipeline.history.earlier_run import RULES, HistoryMark
from pipeline.history.history_sources import HistorySources
from pipeline.history.islands import ISLANDS, LINES, islands_of
from pipeline.history.timeline import Moment
from pipeline.plan import row_checks
from pipeline.snapshot.current_states import KEYS_OF_SNAPSHOT
from pipeline.tables.delta_table import table_place
from pipeline.tables.history_schemas import EVENTS, HISTORY_MARKS, HISTORY_STATES, INCIDENTS
from pipeline.tables.schema_conversion import ddl
from pipeline.tables.schemas import (
    MOMENT,
    OBSERVATIONS,
    PARTITION_STATES,
    QUARANTINED_ROWS,
    TableDefinition,
    without_run,
)
from pipeline.tables.spark_reads import read_files

Action = tuple[str, str, int, datetime, str, str]
"""What this host's journal says that somebody did: cluster, topic, partition, when, who, and how."""

A_TASK = 600_000
"""Rows of which one task finds the islands, about; this bounds its memory."""

READ = pa.schema(
    [
        PARTITION_STATES.schema.field(name)
        for name in ("topic", "topic_id", "partition", "deleted", "leader", "isr", "elr", "min_isr")
    ]
)
"""What is read of a row."""

_OBSERVED = pa.schema([OBSERVATIONS.schema.field(name) for name in ("brokers", "quorum")])
"""What is read of an observation."""

_MOMENTS = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("snapshot", pa.string()),
        ("number", pa.int32()),
        ("at", MOMENT),
        ("before", MOMENT),
        ("segment", pa.int32()),
        ("known_before", pa.bool_()),
        ("unread", pa.bool_()),  # the snapshot is to be read
        ("newest", pa.bool_()),  # its segment is the newest of the cluster
        ("to_newest", pa.bool_()),  # its segment goes on to the newest snapshot, with nothing lost after it
        ("has_full", pa.bool_()),  # its segment has a full snapshot
        ("segment_end", MOMENT),
        ("next_full", pa.int32()),  # the next full snapshot in the segment
        ("shown_until", MOMENT),  # the snapshot before that one
    ]
)
"""The snapshots that are used, see :class:`~pipeline.history.timeline.Moment`."""

_FLAWS = {
    "nameless": row_checks.NAMELESS,
    "no_leader": row_checks.NO_LEADER,
    "broken_isr": row_checks.BROKEN_ISR,
    "copies": row_checks.COPIES,
}
"""The texts of those checks of the plan that concern a history."""

_OF_EARLIER = (INCIDENTS, HISTORY_STATES, EVENTS, QUARANTINED_ROWS, HISTORY_MARKS)
_SAME = ("cluster_id", "topic", "partition", "kind", "began_at")
"""What an incident of two runs has in common."""


class HistoryFrames(NamedTuple):
    """``tables``: DataFrames of the tables of a result, without the run. ``persisted``: what has to be freed."""

    tables: Mapping[str, Any]
    persisted: Sequence[Any]


def history_frames(
    spark: Any, sources: HistorySources, actions: Sequence[Action], *, keep: bool = False
) -> HistoryFrames:
    """Every table of a result. ``keep``: what several of them are made of is persisted. Raises PipelineError if a
    file is gone.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    moments = f.broadcast(spark.createDataFrame(moment_table(sources)))
    unread = moments.where("unread").drop("unread")
    earlier = {definition.name: _earlier(spark, sources, definition) for definition in _OF_EARLIER}
    carried, over = earlier[HISTORY_STATES.name], earlier[INCIDENTS.name]

    read = _read(spark, sources, PARTITION_STATES, READ).join(unread, ["cluster_id", "snapshot"])
    kinds = f.array(*map(f.lit, queries.KINDS))
    lines = spark.sql(queries.STATES, rows=read, **_FLAWS)
    if carried is not None:
        left = carried.withColumnsRenamed({"bad": "carried", "first_number": "number"})
        left = left.withColumn("of_kind", (f.array_position(kinds, f.col("kind")) - 1).cast("int"))
        left = left.join(moments.drop("known_before"), ["cluster_id", "number"])
        lines = lines.unionByName(spark.sql(queries.CARRIED_LINES, rows=left))
    lines = lines.select(*LINES.names).repartition(_tasks_of(sources), "cluster_id", "topic", "partition")
    found = lines.mapInArrow(islands_of, ddl(ISLANDS))
    islands = spark.sql(queries.PLACED, rows=found, moments=moments)

    observed = _read(spark, sources, OBSERVATIONS, _OBSERVED).join(unread, ["cluster_id", "snapshot"])
    facts = spark.sql(queries.FACTS, observations=observed)
    known = earlier[HISTORY_MARKS.name]
    if known is not None:
        known = known.selectExpr("cluster_id", "inline(facts)")
        facts = facts.unionByName(known.join(moments, ["cluster_id", "number"]).select(*facts.columns))

    incidents = spark.sql(queries.INCIDENTS, islands=islands)
    if over is not None and carried is not None:
        # Later snapshots cannot change the others.
        goes_on = carried.where("bad").withColumnRenamed("first_number", "number")
        goes_on = goes_on.join(moments, ["cluster_id", "number"]).withColumnRenamed("at", "began_at")
        incidents = incidents.unionByName(
            over.join(f.broadcast(goes_on.select(*_SAME)), list(_SAME), "left_anti")
        )
    if actions:
        done = spark.createDataFrame(_action_table(actions)).groupBy("cluster_id", "topic", "partition")
        acted = done.agg(f.collect_list(f.struct("at", "who", "act")).alias("actions"))
        incidents = spark.sql(queries.ACTED, incidents=incidents, actions=f.broadcast(acted))
    marks = spark.createDataFrame(_mark_table(marks_of(sources)))
    tables = {
        INCIDENTS.name: incidents,
        HISTORY_STATES.name: spark.sql(queries.CARRIED, islands=islands),
        EVENTS.name: _with(spark.sql(queries.EVENTS, facts=facts), earlier[EVENTS.name]),
        QUARANTINED_ROWS.name: _with(
            spark.sql(queries.FLAWS, rows=found, **_FLAWS), earlier[QUARANTINED_ROWS.name]
        ),
        HISTORY_MARKS.name: marks.join(spark.sql(queries.NEWEST_FACTS, facts=facts), ["cluster_id"], "left"),
    }
    shaped = {one.name: tables[one.name].select(*without_run(one).names) for one in _OF_EARLIER}
    # Last: where a query has named a DataFrame and ends, Spark forgets what of it was persisted before.
    return HistoryFrames(shaped, tuple(one.persist() for one in (found, facts)) if keep else ())


def _tasks_of(sources: HistorySources) -> int:
    """How many tasks find islands. Spark does not choose by itself how many there are of what is persisted."""
    rows = sum(one.changed for cluster in sources.clusters.values() for one in cluster.unread)
    if sources.earlier is not None and sources.continued:
        rows += sum(file.rows for file in sources.earlier.files)
    return max(1, math.ceil(rows / A_TASK))


def _with(rows: Any, earlier: Any | None) -> Any:
    return rows if earlier is None else rows.unionByName(earlier)


def moment_table(sources: HistorySources) -> pa.Table:
    """The snapshots that are used, each with what its segment is."""
    rows: list[dict[str, Any]] = []
    for cluster_id, one in sources.clusters.items():
        moments = one.timeline.moments
        for segment, alike in groupby(moments, lambda moment: moment.segment):
            mine = list(alike)
            following: Moment | None = None
            for moment in reversed(mine):
                rows.append(
                    {
                        "cluster_id": cluster_id,
                        "unread": moment.number >= one.read,
                        "newest": segment == moments[-1].segment,
                        "to_newest": mine[-1].last,
                        "has_full": any(other.complete for other in mine),
                        "segment_end": mine[-1].at,
                        "next_full": following and following.number,
                        "shown_until": following and following.before,
                    }
                    | {
                        name: getattr(moment, name)
                        for name in ("snapshot", "number", "at", "before", "segment", "known_before")
                    }
                )
                following = moment if moment.complete else following
    return pa.Table.from_pylist(rows, _MOMENTS)


def marks_of(sources: HistorySources) -> dict[str, HistoryMark]:
    """Up to where each cluster is read then."""
    lines = {name: one.timeline for name, one in sources.clusters.items()}
    return {
        name: HistoryMark(line.moments[-1].snapshot, len(line.moments), line.digest(len(line.moments)), RULES)
        for name, line in lines.items()
        if line.moments
    }


def _mark_table(marks: Mapping[str, HistoryMark]) -> pa.Table:
    schema = pa.schema([field for field in without_run(HISTORY_MARKS) if field.name != "facts"])
    columns = ("snapshot", "snapshots", "timeline", "rules")
    rows = [
        {"cluster_id": name} | {column: getattr(mark, column) for column in columns}
        for name, mark in marks.items()
    ]
    return pa.Table.from_pylist(rows, schema)


def _action_table(actions: Sequence[Action]) -> pa.Table:
    columns = (*INCIDENTS.schema.names[1:4], "at", "who", "act")
    kinds = (pa.string(), pa.string(), pa.int32(), MOMENT, pa.string(), pa.string())
    return pa.Table.from_pylist(
        [dict(zip(columns, one, strict=True)) for one in actions],
        pa.schema(list(zip(columns, kinds, strict=True))),
    )


def _read(spark: Any, sources: HistorySources, definition: TableDefinition, schema: pa.Schema) -> Any:
    """The rows of the snapshots that are read, of any root."""
    whole = pa.schema([*schema, *KEYS_OF_SNAPSHOT])
    frames = [
        read_files(spark, table_place(root, definition), files, whole)
        for root, files in sources.files_of(definition)
        if files
    ]
    if not frames:
        return spark.createDataFrame([], ddl(whole))
    return reduce(lambda one, other: one.unionByName(other), frames)


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
