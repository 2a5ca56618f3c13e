"""Incidents: successive snapshots in which a partition is in a bad state, with bounds for their duration.

A run that continues an earlier one begins with the states that it left, and reads rows only of the snapshots since.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from pipeline.history.history_sources import HistorySources
from pipeline.plan import duplicate_rows
from pipeline.snapshot.state_sources import KEY
from pipeline.tables.history_schemas import HISTORY_STATES, INCIDENTS
from pipeline.tables.schemas import MOMENT, PARTITION_STATES, QUARANTINED_ROWS
from pipeline.tables.spark_tables import local_rows

KINDS = {
    "offline": "leader = -1",
    "under min ISR": "leader <> -1 AND size(isr) < min_isr",
    "ELR in use": "leader <> -1 AND coalesce(size(elr), 0) > 0",
}
"""The condition for each kind of incident; null if a snapshot does not show it."""

_NAMELESS = "no topic or partition"

_FLAW = f"""
    CASE WHEN coalesce(topic, '') = '' OR partition IS NULL OR partition < 0 THEN '{_NAMELESS}'
    WHEN copies IS NOT NULL THEN {duplicate_rows.REASON}
    WHEN deleted THEN NULL
    WHEN leader IS NULL OR leader < -1 THEN 'no leader, epoch or id is given'
    WHEN isr IS NULL OR exists(isr, broker -> broker IS NULL) THEN 'ISR is missing or broken' END"""
"""Some of the checks of :mod:`pipeline.plan.row_checks`, with the same reasons."""

ACTIONS = pa.schema(
    [
        *(INCIDENTS.schema.field(name) for name in KEY),
        ("at", MOMENT),
        ("who", pa.string()),
        ("how", pa.string()),
    ]
)

_STATE = (*KEY, "kind", "bad", "number", "at", "segment", "before", "known_before", "leader", "isr", "elr")
"""What a snapshot says of a partition, for each kind, with what the timeline says of the snapshot."""


def rows_of(spark: Any, sources: HistorySources) -> Any:
    """The rows that are to be read, with their ``flaw``. A partition that is twice in a snapshot gives one row."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    rows = sources.frame(spark, PARTITION_STATES).withColumn("deleted", f.expr("coalesce(deleted, false)"))
    once = [*KEY, "snapshot"]
    twice = duplicate_rows.repeated_keys(
        rows.select(*once).where("topic IS NOT NULL AND partition IS NOT NULL")
    )
    if twice is None:
        return rows.withColumn("copies", f.lit(None).cast("long")).withColumn("flaw", f.expr(_FLAW))
    rows = rows.join(f.broadcast(twice), once, "left")
    sound, copies = rows.where("copies IS NULL"), rows.where("copies IS NOT NULL").dropDuplicates(once)
    return sound.unionByName(copies).withColumn("flaw", f.expr(_FLAW))


def islands(spark: Any, sources: HistorySources, rows: Any) -> Any:
    """Of each partition and kind the times without a change of its state that are an incident, or from which the
    next run goes on; ``rows`` are those of :func:`rows_of`.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    moments = sources.moments(spark)
    rows = rows.join(f.broadcast(moments.where("unread")), ["cluster_id", "snapshot"])
    states = _states(_that_matter(rows, sources.carried(spark, HISTORY_STATES)))
    states = states.unionByName(_carried_states(spark, sources, moments))
    ends = moments.groupBy("cluster_id", "segment").agg(
        f.max("at").alias("segment_end"),
        f.max("last").alias("newest"),
        f.bool_or("newest_segment").alias("newest_segment"),
        f.bool_or("complete").alias("has_full"),
        f.expr("collect_list(CASE WHEN complete THEN struct(number, before) END)").alias("full_ones"),
    )
    found = _islands(states).where("bad AND NOT deleted OR next_segment IS NULL")
    found = found.join(f.broadcast(ends), ["cluster_id", "segment"])
    for name, expression in _STEPS.items():
        found = found.withColumn(name, f.expr(expression))
    return found.where("bad AND NOT deleted OR carried")


def _that_matter(rows: Any, carried: Any) -> Any:
    """The rows of partitions that were in an incident, or whose state the next run has to know. These are few: the
    others need not be put in order.
    """
    shows = " OR ".join(f"({condition})" for condition in KINDS.values())
    bad = f"flaw IS NULL AND NOT deleted AND ({shows})"
    unknown = f"flaw IS NOT NULL OR NOT deleted AND ({shows}) IS NULL"
    shown = rows.where(f"({bad}) OR newest_segment AND (NOT segment_has_full OR {unknown})").select(*KEY)
    keys = shown.unionByName(carried.select(*KEY)).distinct()
    return rows.join(keys, list(KEY), "left_semi")


def _states(rows: Any) -> Any:
    """One row for each partition, kind and snapshot: ``bad`` or not, null if the snapshot does not show it."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    known = "CASE WHEN flaw IS NOT NULL THEN NULL WHEN deleted THEN false ELSE {} END"
    states = f.array(
        *(
            f.struct(f.lit(kind).alias("kind"), f.expr(known.format(condition)).alias("bad"))
            for kind, condition in KINDS.items()
        )
    )
    named = rows.where(f.expr(f"flaw IS NULL OR flaw <> '{_NAMELESS}'"))
    return named.withColumn("state", f.explode(states)).selectExpr(
        *("deleted", "state.*", *(name for name in _STATE if name not in ("kind", "bad")))
    )


def _carried_states(spark: Any, sources: HistorySources, moments: Any) -> Any:
    """The states that the earlier run left, as if the first and the last snapshot that show them were read."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    carried = sources.carried(spark, HISTORY_STATES).withColumns(
        {
            "number": f.expr("explode(array_distinct(array(first_number, last_number)))"),
            "deleted": f.lit(False),
            # Only of an incident's first snapshot: of it nobody asks.
            "leader": f.lit(None).cast("int"),
        }
    )
    of_number = moments.drop("snapshot", "known_before")
    return carried.join(f.broadcast(of_number), ["cluster_id", "number"]).select("deleted", *_STATE)


def _islands(states: Any) -> Any:
    """Successive snapshots with the same state as one row, with the states before and after them."""
    from pyspark.sql import Window  # noqa: PLC0415  # an extra
    from pyspark.sql import functions as f  # noqa: PLC0415

    line = Window.partitionBy(*KEY, "kind").orderBy("number")
    states = states.withColumns({"was_bad": f.lag("bad").over(line), "was_in": f.lag("segment").over(line)})
    begins = f.expr("NOT (was_bad <=> bad AND coalesce(was_in = segment, false) AND NOT deleted)")
    states = states.withColumn("island", f.sum(begins.cast("int")).over(line))
    found = states.groupBy(*KEY, "kind", "island").agg(
        f.first("bad").alias("bad"),
        f.bool_or("deleted").alias("deleted"),
        f.min("number").alias("first_number"),
        f.max("number").alias("last_number"),
        f.min("segment").alias("segment"),
        f.min_by("known_before", "number").alias("known_before"),
        f.min("at").alias("began_at"),
        f.min_by("before", "number").alias("sound_at"),
        f.max_by("isr", "number").alias("isr"),
        f.max_by("elr", "number").alias("elr"),
        f.min_by("leader", "number").alias("leader"),
    )
    order = Window.partitionBy(*KEY, "kind").orderBy("island")
    following = ("segment", "began_at", "leader", "deleted", "sound_at", "bad", "first_number")
    found = found.withColumns({f"next_{name}": f.lead(name).over(order) for name in following})
    return found.withColumns({f"last_{name}": f.lag(name).over(order) for name in ("bad", "segment")})


_CLOSED = "next_segment = segment AND NOT vanished"

_STEPS = {
    # The first full snapshot of the segment that is not of this state: without a row in it, the partition was
    # deleted or may not be seen since, and nobody knows how the incident ended.
    "other_full": "array_min(filter(full_ones, one -> one.number > last_number))",
    "vanished": (
        "other_full IS NOT NULL"
        " AND (next_segment IS NULL OR next_segment <> segment OR other_full.number < next_first_number)"
    ),
    # The start is unknown if the previous snapshot does not show the partition. It is unknown too if its
    # segment names the partition for the first time here, and has no earlier full snapshot.
    "sound_at": "CASE WHEN last_segment = segment AND last_bad IS NULL THEN NULL"
    " WHEN NOT known_before AND NOT coalesce(last_segment = segment, false) THEN NULL ELSE sound_at END",
    # What a later run must know of the time before: an incident that may go on, and a state that was unknown. That
    # a partition was sound follows from a full snapshot of the segment, if there is one.
    "carried": "next_segment IS NULL AND newest_segment AND (coalesce(bad, true) OR NOT has_full)",
}


def incidents(
    spark: Any, sources: HistorySources, found: Any, actions: Sequence[tuple[Any, ...]] = ()
) -> Any:
    """One row per incident of a partition; ``found`` are the :func:`islands`.

    ``at_least_s`` and ``at_most_s`` bound its duration. At least: from the first snapshot that shows it to
    the last. At most: from the snapshot before the first to the one after the last; null if one of these is
    missing, or if there is a gap. ``outcome``: recovered, ongoing, deleted, or unknown if there is a gap
    before the next snapshot, or the next snapshot does not show it.
    """
    new = _with_bounds(found.where("bad AND NOT deleted"))
    columns = (*KEY, "kind", *_BOUND_COLUMNS)
    over = _over_already(spark, sources).select(*columns)
    return _with_actor(spark, over.unionByName(new.select(*columns)), actions)


def _over_already(spark: Any, sources: HistorySources) -> Any:
    """The incidents of the earlier run that later snapshots cannot change: all but those that it carried over."""
    carried = sources.carried(spark, HISTORY_STATES).where("bad").withColumnRenamed("first_number", "number")
    begun = carried.join(sources.moments(spark), ["cluster_id", "number"])
    same = [*KEY, "kind", "began_at"]
    begun = begun.withColumnRenamed("at", "began_at").select(*same)
    return sources.carried(spark, INCIDENTS).join(begun, same, "left_anti")


def _with_bounds(found: Any) -> Any:
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    steps = {
        "outcome": (
            f"CASE WHEN {_CLOSED} AND next_bad IS NULL THEN 'unknown'"
            f" WHEN {_CLOSED} AND next_deleted THEN 'deleted' WHEN {_CLOSED} THEN 'recovered'"
            " WHEN next_segment IS NULL AND newest AND NOT vanished THEN 'ongoing' ELSE 'unknown' END"
        ),
        "ended_at": f"CASE WHEN {_CLOSED} AND next_bad IS NOT NULL THEN next_began_at END",
        # The last snapshot that still shows it: the one before the end, or the last before the gap.
        "last_seen_at": (
            f"CASE WHEN {_CLOSED} THEN next_sound_at WHEN vanished THEN other_full.before ELSE segment_end END"
        ),
    }
    for name, expression in steps.items():
        found = found.withColumn(name, f.expr(expression))
    return found.withColumns(
        {
            "at_least_s": f.expr("cast(unix_micros(last_seen_at) - unix_micros(began_at) AS double) / 1e6"),
            "at_most_s": f.expr("cast(unix_micros(ended_at) - unix_micros(sound_at) AS double) / 1e6"),
            "how": f.expr(
                "CASE WHEN outcome <> 'recovered' OR kind <> 'offline' THEN NULL"
                " WHEN array_contains(isr, next_leader) THEN 'elected from the ISR'"
                " WHEN array_contains(elr, next_leader) THEN 'elected from the ELR'"
                " ELSE 'elected outside ISR and ELR' END"
            ),
        }
    )


def _with_actor(spark: Any, found: Any, actions: Sequence[tuple[Any, ...]]) -> Any:
    """Adds who recovered it: the journal's last action on that partition between the start of the incident
    and its end, or the last snapshot that still shows it. A later action may have ended it without a snapshot
    in between.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    table = local_rows(spark, actions, ACTIONS).alias("act")
    same = [f.col(f"found.{name}") == f.col(f"act.{name}") for name in KEY]
    during = f.expr(
        "act.at >= found.began_at AND act.at <= coalesce(found.ended_at, found.last_seen_at)"
        " AND found.kind = 'offline'"
    )
    joined = found.alias("found").join(f.broadcast(table), [*same, during], "left")
    columns = [f.col(f"found.{name}").alias(name) for name in (*KEY, "kind", *_BOUND_COLUMNS)]
    chosen = joined.groupBy(*columns).agg(
        f.max_by("act.who", "act.at").alias("who"), f.max_by("act.how", "act.at").alias("act")
    )
    return chosen


_BOUND_COLUMNS = ("began_at", "last_seen_at", "ended_at", "at_least_s", "at_most_s", "outcome", "how")


def states_to_carry(found: Any) -> Any:
    """What the next run has to know of partitions; ``found`` are the :func:`islands`."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    return found.where("carried").withColumn("known_before", f.col("sound_at").isNotNull())


def quarantined(spark: Any, sources: HistorySources, rows: Any) -> Any:
    """How many rows of each cluster are broken, by reason: the state of their partitions is unknown."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    flaws = rows.where("flaw IS NOT NULL").selectExpr(
        "cluster_id", "flaw AS reason", "coalesce(copies, 1L) AS rows"
    )
    known = sources.carried(spark, QUARANTINED_ROWS).select(*flaws.columns)
    return flaws.unionByName(known).groupBy("cluster_id", "reason").agg(f.sum("rows").alias("rows"))
