"""Events: what changed between two snapshots in the quorum, the brokers and their log dirs."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pipeline.history.earlier_run import RULES
from pipeline.history.history_sources import HistorySources
from pipeline.tables.history_schemas import EVENTS, HISTORY_MARKS
from pipeline.tables.schemas import OBSERVATIONS
from pipeline.tables.spark_tables import local_rows

MARKED = pa.schema(
    [
        HISTORY_MARKS.schema.field(name)
        for name in ("cluster_id", "snapshot", "snapshots", "timeline", "rules")
    ]
)


def facts(spark: Any, sources: HistorySources) -> Any:
    """What each snapshot says of each subject, with what was said of it before; also what the earlier run knew
    last. Only where it has changed, or is the newest.
    """
    from pyspark.sql import Window  # noqa: PLC0415  # an extra
    from pyspark.sql import functions as f  # noqa: PLC0415

    moments = sources.moments(spark)
    rows = sources.frame(spark, OBSERVATIONS)
    quorum = rows.where("quorum IS NOT NULL").select("cluster_id", "snapshot", "quorum.*")
    brokers = rows.selectExpr("cluster_id", "snapshot", "inline(brokers)")
    found = _quorum_facts(quorum).unionByName(_broker_facts(brokers))
    found = found.join(f.broadcast(moments.where("unread")), ["cluster_id", "snapshot"])
    known = sources.carried(spark, HISTORY_MARKS).selectExpr("cluster_id", "inline(facts)")
    known = known.join(f.broadcast(moments), ["cluster_id", "number"])
    columns = ("cluster_id", "subject", "value", "number", "at", "segment")
    line = Window.partitionBy("cluster_id", "subject").orderBy("number")
    states = found.select(*columns).unionByName(known.select(*columns))
    states = states.withColumns(
        {
            "was": f.lag("value").over(line),
            "was_in": f.lag("segment").over(line),
            "newest": f.lead("number").over(line).isNull(),
        }
    )
    return states.where("newest OR was <> value")


def events(spark: Any, sources: HistorySources, found: Any) -> Any:
    """What changed between two snapshots; ``found`` are the :func:`facts`."""
    changed = found.where("was <> value").selectExpr(
        "cluster_id", "at", "subject", "was", "value AS now", "was_in <> segment AS in_a_gap"
    )
    return changed.unionByName(sources.carried(spark, EVENTS).select(*changed.columns))


def marks(spark: Any, sources: HistorySources, found: Any) -> Any:
    """Up to where each cluster has been read; ``found`` are the :func:`facts`."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    rows = [
        (name, line.moments[-1].snapshot, len(line.moments), line.digest(len(line.moments)), RULES)
        for name, line in ((name, one.timeline) for name, one in sources.clusters.items())
        if line.moments
    ]
    read = local_rows(spark, rows, MARKED)
    newest = found.where("newest").groupBy("cluster_id")
    newest = newest.agg(f.collect_list(f.struct("subject", "value", "number")).alias("facts"))
    return read.join(newest, ["cluster_id"], "left")


def _quorum_facts(rows: Any) -> Any:
    ids = "array_join(array_sort(transform({}, n -> n.id)), ', ')"
    return rows.selectExpr(
        "cluster_id",
        "snapshot",
        "explode(map('quorum leader', CASE WHEN unknown IS NULL THEN cast(leader AS string) ELSE 'unknown' END,"
        f" 'quorum voters', CASE WHEN unknown IS NULL THEN {ids.format('voters')} ELSE 'unknown' END))"
        " AS (subject, value)",
    )


def _broker_facts(rows: Any) -> Any:
    standing = (
        "CASE WHEN fenced THEN 'fenced' WHEN unanswered IS NOT NULL THEN concat('did not answer: ', unanswered.why)"
        " ELSE 'up' END"
    )
    dirs = (
        "transform(coalesce(log_dirs, array()), d -> struct("
        "concat('log dir ', d.path, ' of broker ', id) AS subject,"
        " coalesce(concat('failed: ', d.error), 'online') AS value))"
    )
    return rows.selectExpr(
        "cluster_id",
        "snapshot",
        f"inline(concat(array(struct(concat('broker ', id) AS subject, {standing} AS value)), {dirs}))",
    )
