"""The history job: incidents by partition, with bounds for how long they lasted and how they ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pipeline.errors import PipelineError
from pipeline.history.spine import Moment
from pipeline.places import Place
from pipeline.snapshot.manifest import Manifest
from pipeline.sources import KEY, frame

INCIDENTS = "incidents"
EVENTS = "events"

KINDS = {
    "offline": "leader = -1",
    "under min ISR": "leader <> -1 AND size(isr) < min_isr",
    "ELR in use": "leader <> -1 AND size(elr) > 0",
}

MOMENTS = (
    "cluster_id string, snapshot string, number int, at timestamp, segment int, before timestamp,"
    " last boolean"
)
ACTS = "cluster_id string, topic string, partition int, at timestamp, who string, how string"


class Looked:
    """The clusters that are looked at: where their snapshots are, and when they were taken."""

    def __init__(self, parts: Iterable[tuple[Place, Sequence[Manifest], Sequence[Moment]]]) -> None:
        self.parts = [part for part in parts if part[2]]
        if not self.parts:
            raise PipelineError("no snapshot is in that time")

    def frame(self, spark: Any, table: str) -> Any:
        """The rows of a table of every usable snapshot."""
        frames = []
        for root, manifests, moments in self.parts:
            used = {moment.snapshot for moment in moments}
            mine = [manifest for manifest in manifests if manifest.snapshot in used and manifest.files(table)]
            if mine:
                frames.append(frame(spark, root, mine, table))
        whole = frames[0]
        for other in frames[1:]:
            whole = whole.unionByName(other)
        return whole

    def moments(self, spark: Any) -> Any:
        """The spine of every cluster as a small table."""
        rows = [tuple(moment) for _, _, moments in self.parts for moment in moments]
        return spark.createDataFrame(rows, MOMENTS)


def incidents(spark: Any, looked: Looked, acts: Sequence[tuple[Any, ...]]) -> Any:
    """One row an incident of a partition.

    ``at_least_s`` and ``at_most_s`` bound how long it lasted: from the first snapshot that shows it to the last,
    and between those around them that do not; null where there is none that does not, or a gap.
    ``outcome``: recovered, ongoing, deleted, or unknown where a gap lies before the next look.
    """
    from pyspark.sql import Window  # noqa: PLC0415  # an extra
    from pyspark.sql import functions as f  # noqa: PLC0415

    moments = looked.moments(spark)
    rows = looked.frame(spark, "partitions").where("topic IS NOT NULL AND partition IS NOT NULL")
    states = f.array(
        *(
            f.struct(f.lit(kind).alias("kind"), f.expr(f"coalesce({condition}, false)").alias("bad"))
            for kind, condition in KINDS.items()
        )
    )
    seen = (
        rows.select(
            *KEY,
            "snapshot",
            "leader",
            "isr",
            "elr",
            f.expr("coalesce(deleted, false)").alias("deleted"),
            f.explode(states).alias("state"),
        )
        .select("*", "state.kind", "state.bad")
        .drop("state")
    )
    seen = seen.join(f.broadcast(moments), ["cluster_id", "snapshot"])
    line = Window.partitionBy(*KEY, "kind").orderBy("number")
    seen = seen.withColumns(
        {
            "was_bad": f.lag("bad").over(line),
            "was_in": f.lag("segment").over(line),
        }
    )
    begins = f.expr("NOT coalesce(was_bad = bad AND was_in = segment AND NOT deleted, false)")
    seen = seen.withColumn("island", f.sum(begins.cast("int")).over(line))
    islands = seen.groupBy(*KEY, "kind", "island").agg(
        f.first("bad").alias("bad"),
        f.bool_or("deleted").alias("deleted"),
        f.min("number").alias("first_number"),
        f.min("segment").alias("segment"),
        f.min("at").alias("began_at"),
        f.min_by("before", "number").alias("sound_at"),
        f.max_by("isr", "number").alias("isr"),
        f.max_by("elr", "number").alias("elr"),
        f.min_by("leader", "number").alias("leader"),
    )
    after = Window.partitionBy(*KEY, "kind").orderBy("island")
    following = ("first_number", "segment", "began_at", "leader", "deleted", "sound_at")
    islands = islands.withColumns({f"next_{name}": f.lead(name).over(after) for name in following})
    ends = moments.groupBy("cluster_id", "segment").agg(
        f.max("at").alias("segment_end"), f.max("last").alias("newest")
    )
    found = islands.where("bad AND NOT deleted").join(f.broadcast(ends), ["cluster_id", "segment"])
    return _who(spark, _told(found), acts)


def _told(found: Any) -> Any:
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    closed = "next_segment = segment"
    steps = {
        "outcome": (
            f"CASE WHEN {closed} AND next_deleted THEN 'deleted' WHEN {closed} THEN 'recovered'"
            " WHEN next_segment IS NULL AND newest THEN 'ongoing' ELSE 'unknown' END"
        ),
        "ended_at": f"CASE WHEN {closed} THEN next_began_at END",
        # The last look that still showed it: the one before the end, or the last before the gap.
        "last_seen_at": f"CASE WHEN {closed} THEN next_sound_at ELSE segment_end END",
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


def _who(spark: Any, found: Any, acts: Sequence[tuple[Any, ...]]) -> Any:
    """Adds who did it, where the journal has something of that partition in that time."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    table = spark.createDataFrame(list(acts), ACTS).alias("act")
    same = [f.col(f"found.{name}") == f.col(f"act.{name}") for name in KEY]
    during = f.expr(
        "act.at >= found.began_at AND act.at <= coalesce(found.ended_at, timestamp'9999-12-31')"
        " AND found.kind = 'offline'"
    )
    joined = found.alias("found").join(f.broadcast(table), [*same, during], "left")
    columns = [f.col(f"found.{name}").alias(name) for name in (*KEY, "kind", *_TOLD)]
    chosen = joined.groupBy(*columns).agg(
        f.max_by("act.who", "act.at").alias("who"), f.max_by("act.how", "act.at").alias("act")
    )
    return chosen


_TOLD = ("began_at", "last_seen_at", "ended_at", "at_least_s", "at_most_s", "outcome", "how")


def events(spark: Any, looked: Looked) -> Any:
    """What changed between two looks: the quorum's leader and voters, brokers, log dirs."""
    from pyspark.sql import Window  # noqa: PLC0415  # an extra
    from pyspark.sql import functions as f  # noqa: PLC0415

    moments = looked.moments(spark)
    facts = _quorum_facts(looked.frame(spark, "quorum")).unionByName(
        _broker_facts(looked.frame(spark, "brokers"))
    )
    line = Window.partitionBy("cluster_id", "subject").orderBy("number")
    seen = facts.join(f.broadcast(moments), ["cluster_id", "snapshot"]).withColumns(
        {"was": f.lag("told").over(line), "was_in": f.lag("segment").over(line)}
    )
    changed = seen.where("was IS NOT NULL AND was <> told")
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


def run(spark: Any, looked: Looked, acts: Sequence[tuple[Any, ...]], out: Place) -> None:
    """Writes incidents and events below ``out``."""
    incidents(spark, looked, acts).write.parquet((out / INCIDENTS).hadoop)
    events(spark, looked).write.parquet((out / EVENTS).hadoop)


def summarise(spark: Any, out: Place, count: int) -> dict[str, Any]:
    """Counts by kind and outcome, the repeat offenders, the longest, and the newest events."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    found = spark.read.parquet((out / INCIDENTS).hadoop)
    counts = found.groupBy("cluster_id", "kind", "outcome").agg(
        f.count("*").alias("incidents"), f.sum("at_least_s").alias("at_least_s")
    )
    offenders = found.groupBy(*KEY, "kind").agg(
        f.count("*").alias("incidents"), f.sum("at_least_s").alias("at_least_s")
    )
    offenders = offenders.orderBy(f.desc("incidents"), f.desc("at_least_s"), *KEY).limit(count)
    text = f.date_format("began_at", "yyyy-MM-dd HH:mm:ss").alias("began")
    longest = found.orderBy(f.desc("at_least_s"), *KEY, "kind", "began_at").limit(count)
    told = spark.read.parquet((out / EVENTS).hadoop)
    when = f.date_format("at", "yyyy-MM-dd HH:mm:ss").alias("when")
    newest = told.orderBy(f.desc("at"), "cluster_id", "subject").limit(count)
    return {
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
