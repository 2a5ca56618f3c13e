"""The history job: incidents by partition, with bounds for their duration, and how they ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeline.history.history_sources import HistorySources
from pipeline.plan import duplicate_rows
from pipeline.results import JobOutput, RunTarget
from pipeline.snapshot.state_sources import KEY
from pipeline.tables.schemas import EVENTS, INCIDENTS, OBSERVATIONS, PARTITION_STATES, QUARANTINED_ROWS
from pipeline.tables.spark_tables import rows_of_run, write_rows
from pipeline.undecodable_files import leaving_out_undecodable

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

ACTIONS = "cluster_id string, topic string, partition int, at timestamp, who string, how string"


def rows_of(spark: Any, sources: HistorySources) -> Any:
    """The rows of each partition with their ``flaw``. A partition that is twice in a snapshot gives one row."""
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


def incidents(spark: Any, sources: HistorySources, rows: Any, actions: Sequence[tuple[Any, ...]]) -> Any:
    """One row per incident of a partition; ``rows`` are those of :func:`rows_of`.

    ``at_least_s`` and ``at_most_s`` bound its duration. At least: from the first snapshot that shows it to
    the last. At most: from the snapshot before the first to the one after the last; null if one of these is
    missing, or if there is a gap. ``outcome``: recovered, ongoing, deleted, or unknown if there is a gap
    before the next snapshot, or the next snapshot does not show it.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    moments = sources.moments(spark)
    islands = _islands(_states(_of_partitions_in_incidents(rows), moments))
    ends = moments.groupBy("cluster_id", "segment").agg(
        f.max("at").alias("segment_end"),
        f.max("last").alias("newest"),
        f.expr("collect_list(CASE WHEN complete THEN struct(number, before) END)").alias("full_ones"),
    )
    found = islands.where("bad AND NOT deleted").join(f.broadcast(ends), ["cluster_id", "segment"])
    return _with_actor(spark, _with_bounds(found), actions)


def _of_partitions_in_incidents(rows: Any) -> Any:
    """Most partitions are never in one, and their rows need not be put in order."""
    shows = " OR ".join(f"({condition})" for condition in KINDS.values())
    shown = rows.where(f"flaw IS NULL AND NOT deleted AND ({shows})").select(*KEY).distinct()
    return rows.join(shown, list(KEY), "left_semi")


def _states(rows: Any, moments: Any) -> Any:
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
    states = (
        named.select(*KEY, "snapshot", "leader", "isr", "elr", "deleted", f.explode(states).alias("state"))
        .select("*", "state.kind", "state.bad")
        .drop("state")
    )
    return states.join(f.broadcast(moments), ["cluster_id", "snapshot"])


def _islands(states: Any) -> Any:
    """Successive snapshots with the same state as one row, with the states before and after them."""
    from pyspark.sql import Window  # noqa: PLC0415  # an extra
    from pyspark.sql import functions as f  # noqa: PLC0415

    line = Window.partitionBy(*KEY, "kind").orderBy("number")
    states = states.withColumns({"was_bad": f.lag("bad").over(line), "was_in": f.lag("segment").over(line)})
    begins = f.expr("NOT (was_bad <=> bad AND coalesce(was_in = segment, false) AND NOT deleted)")
    states = states.withColumn("island", f.sum(begins.cast("int")).over(line))
    islands = states.groupBy(*KEY, "kind", "island").agg(
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
    islands = islands.withColumns({f"next_{name}": f.lead(name).over(order) for name in following})
    return islands.withColumns({f"last_{name}": f.lag(name).over(order) for name in ("bad", "segment")})


def _with_bounds(found: Any) -> Any:
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    closed = "next_segment = segment AND NOT vanished"
    steps = {
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
        "outcome": (
            f"CASE WHEN {closed} AND next_bad IS NULL THEN 'unknown'"
            f" WHEN {closed} AND next_deleted THEN 'deleted' WHEN {closed} THEN 'recovered'"
            " WHEN next_segment IS NULL AND newest AND NOT vanished THEN 'ongoing' ELSE 'unknown' END"
        ),
        "ended_at": f"CASE WHEN {closed} AND next_bad IS NOT NULL THEN next_began_at END",
        # The last snapshot that still shows it: the one before the end, or the last before the gap.
        "last_seen_at": (
            f"CASE WHEN {closed} THEN next_sound_at WHEN vanished THEN other_full.before ELSE segment_end END"
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

    table = spark.createDataFrame(list(actions), ACTIONS).alias("act")
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


def events(spark: Any, sources: HistorySources) -> Any:
    """What changed between two snapshots: the quorum's leader and voters, brokers, log dirs."""
    from pyspark.sql import Window  # noqa: PLC0415  # an extra
    from pyspark.sql import functions as f  # noqa: PLC0415

    moments = sources.moments(spark)
    rows = sources.frame(spark, OBSERVATIONS)
    quorum = rows.where("quorum IS NOT NULL").select("cluster_id", "snapshot", "quorum.*")
    brokers = rows.selectExpr("cluster_id", "snapshot", "inline(brokers)")
    facts = _quorum_facts(quorum).unionByName(_broker_facts(brokers))
    line = Window.partitionBy("cluster_id", "subject").orderBy("number")
    states = facts.join(f.broadcast(moments), ["cluster_id", "snapshot"]).withColumns(
        {"was": f.lag("told").over(line), "was_in": f.lag("segment").over(line)}
    )
    changed = states.where("was IS NOT NULL AND was <> told")
    return changed.select(
        "cluster_id",
        "at",
        "subject",
        "was",
        f.col("told").alias("now"),
        f.expr("was_in <> segment").alias("in_a_gap"),
    )


def _quorum_facts(rows: Any) -> Any:
    ids = "array_join(array_sort(transform({}, n -> n.id)), ', ')"
    return rows.selectExpr(
        "cluster_id",
        "snapshot",
        "explode(map('quorum leader', CASE WHEN unknown IS NULL THEN cast(leader AS string) ELSE 'unknown' END,"
        f" 'quorum voters', CASE WHEN unknown IS NULL THEN {ids.format('voters')} ELSE 'unknown' END))"
        " AS (subject, told)",
    )


def _broker_facts(rows: Any) -> Any:
    standing = (
        "CASE WHEN fenced THEN 'fenced' WHEN unanswered IS NOT NULL THEN concat('did not answer: ', unanswered.why)"
        " ELSE 'up' END"
    )
    dirs = (
        "transform(coalesce(log_dirs, array()), d -> struct("
        "concat('log dir ', d.path, ' of broker ', id) AS subject,"
        " coalesce(concat('failed: ', d.error), 'online') AS told))"
    )
    return rows.selectExpr(
        "cluster_id",
        "snapshot",
        f"inline(concat(array(struct(concat('broker ', id) AS subject, {standing} AS told)), {dirs}))",
    )


LISTED = 100
"""Rows of each list in the summary."""


def outcome(
    spark: Any, sources: HistorySources, actions: Sequence[tuple[Any, ...]], target: RunTarget
) -> JobOutput:
    """Runs the job and makes its summary; the same for the command line and spark-submit. Raises PipelineError
    if no snapshot can be read.
    """
    sources, _ = leaving_out_undecodable(
        spark, sources, target.discard, lambda found: run(spark, found, actions, target)
    )
    return JobOutput(sources.asked, summarise(spark, target, LISTED) | sources.summary)


def run(spark: Any, sources: HistorySources, actions: Sequence[tuple[Any, ...]], target: RunTarget) -> None:
    """Writes incidents, events, and the counts of broken rows."""
    rows = rows_of(spark, sources)
    found = incidents(spark, sources, rows, actions)
    for definition, part in (
        (QUARANTINED_ROWS, quarantined(rows)),
        (INCIDENTS, found),
        (EVENTS, events(spark, sources)),
    ):
        write_rows(part, target.root, definition, target.run_id)


def quarantined(rows: Any) -> Any:
    """How many rows of each cluster are broken, by reason: the state of their partitions is unknown."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    flaws = rows.where("flaw IS NOT NULL").groupBy("cluster_id", f.col("flaw").alias("reason"))
    return flaws.agg(f.expr("sum(coalesce(copies, 1L))").alias("rows"))


def summarise(spark: Any, target: RunTarget, count: int) -> dict[str, Any]:
    """Counts by kind and outcome, the partitions hit most often, the longest incidents, and the newest
    events.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    found = rows_of_run(spark, target.root, INCIDENTS, target.run_id)
    counts = found.groupBy("cluster_id", "kind", "outcome").agg(
        f.count("*").alias("incidents"), f.sum("at_least_s").alias("at_least_s")
    )
    offenders = found.groupBy(*KEY, "kind").agg(
        f.count("*").alias("incidents"), f.sum("at_least_s").alias("at_least_s")
    )
    offenders = offenders.orderBy(f.desc("incidents"), f.desc("at_least_s"), *KEY).limit(count)
    text = f.date_format("began_at", "yyyy-MM-dd HH:mm:ss").alias("began")
    longest = found.orderBy(f.desc("at_least_s"), *KEY, "kind", "began_at").limit(count)
    events = rows_of_run(spark, target.root, EVENTS, target.run_id)
    when = f.date_format("at", "yyyy-MM-dd HH:mm:ss").alias("when")
    newest = events.orderBy(f.desc("at"), "cluster_id", "subject").limit(count)
    flaws = rows_of_run(spark, target.root, QUARANTINED_ROWS, target.run_id).drop("run_id")
    return {
        "quarantined": [row.asDict() for row in flaws.orderBy("cluster_id", "reason").collect()],
        "counts": [row.asDict() for row in counts.orderBy("cluster_id", "kind", "outcome").collect()],
        "offenders": [row.asDict() for row in offenders.collect()],
        "longest": [
            row.asDict()
            for row in longest.select(
                *KEY, "kind", text, "at_least_s", "at_most_s", "outcome", "how", "who"
            ).collect()
        ],
        "events": [
            row.asDict()
            for row in newest.select("cluster_id", when, "subject", "was", "now", "in_a_gap").collect()
        ],
    }
