"""What the driver receives of an exposure run: the worst failures and topics, and the answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from pipeline.exposure.failure_counts import TOPIC
from pipeline.exposure.fleet import COUNTED
from pipeline.exposure.what_if import WHAT_IF, WhatIf, loss_part
from pipeline.plan.row_checks import QUARANTINED
from pipeline.tables.schemas import EFFECTS

WORST = 10
"""How many failures of a kind, and topics, the summary has of a cluster."""

WORST_FIRST = ("acknowledged_at_risk", "offline", "under_min_isr", "partitions")
"""The effects by which failures and topics are ranked, the most important first; more is worse."""

_Row = Mapping[str, Any]


class SummaryRows(NamedTuple):
    """Rows of the counts. ``single``: each cluster's worst single failure, with how many of them take partitions
    offline (``failures_offline``) or put records at risk (``failures_at_risk``).
    """

    single: Sequence[_Row]
    answers: Sequence[_Row]

    @classmethod
    def of(cls, total: Any) -> SummaryRows:
        """Collects them from the sums of all clusters."""
        from pyspark.sql import Window  # noqa: PLC0415  # an extra
        from pyspark.sql import functions as f  # noqa: PLC0415

        others = (TOPIC, QUARANTINED, WHAT_IF)
        single = total.where(~f.col("kind").isin(*others) & (f.size("failed") == 1))
        cluster = Window.partitionBy("cluster_id")
        worst = cluster.orderBy(*map(f.desc, COUNTED), f.desc("kind"), f.desc(f.col("failed")[0]))
        single = (
            single.withColumn("failures_offline", f.count_if(f.col("offline") > 0).over(cluster))
            .withColumn("failures_at_risk", f.count_if(f.col("acknowledged_at_risk") > 0).over(cluster))
            .withColumn("rank", f.row_number().over(worst))
            .where("rank = 1")
        )
        return cls(_collected(single), _collected(total.where(f"kind = '{WHAT_IF}'")))

    @property
    def worst_of_clusters(self) -> dict[str, _Row]:
        """For :func:`pipeline.exposure.fleet.fleet_rows`."""
        names = (*COUNTED, "kind", "failed", "failures_offline", "failures_at_risk")
        return {row["cluster_id"]: {name: row[name] for name in names} for row in self.single}

    def answered(self, what_if: WhatIf, names: Mapping[str, Mapping[str, Collection[str]]]) -> list[_Row]:
        """The answer for each question and cluster; ``names``: what each cluster has, by kind of failure.
        ``lacks``: what is asked about and the cluster does not have. One that has nothing of it has no answer: 0
        would be a promise. Else, without a row, no partition with a leader is on what is lost.
        """
        found = {
            (row["cluster_id"], row["failed"][0]): _values(row, "kind", "failed") | {"together": 1}
            for row in self.answers
        }
        nothing = {"kind": WHAT_IF, "together": 1} | dict.fromkeys(EFFECTS, 0)
        answers: list[_Row] = []
        for name in sorted(names):
            for text, parts in what_if.questions.items():
                lacks = [loss_part(*part) for part in parts if part[1] not in names[name][part[0]]]
                row = found.get((name, text))
                if row is None and len(lacks) < len(parts):
                    row = nothing | {"cluster_id": name, "failed": [text]}
                if row is not None:
                    answers.append({**row, "lacks": lacks})
        return answers


def worst_rows(total: Any, clusters: Collection[str]) -> dict[str, list[_Row]]:
    """Of those clusters the ten worst failures of each kind, single ones and pairs apart, and the ten worst topics,
    each with its ``place``.
    """
    from pyspark.sql import Window  # noqa: PLC0415  # an extra
    from pyspark.sql import functions as f  # noqa: PLC0415

    mine = total.where(f.col("cluster_id").isin(list(clusters)) & ~f.col("kind").isin(QUARANTINED, WHAT_IF))
    mine = mine.withColumn("together", f.size("failed"))
    ranked = Window.partitionBy("cluster_id", "kind", "together").orderBy(
        *map(f.desc, WORST_FIRST), "topic", "failed"
    )
    listed = _collected(mine.withColumn("place", f.row_number().over(ranked)).where(f"place <= {WORST}"))
    failures: list[_Row] = [
        _values(row, "kind", "failed", "together", "place") for row in listed if row["kind"] != TOPIC
    ]
    failures.sort(key=lambda row: (row["cluster_id"], row["together"], row["kind"], row["place"]))
    topics: list[_Row] = [
        _values(row, "topic", "place") | {"broker": int(row["failed"][0])}
        for row in listed
        if row["kind"] == TOPIC
    ]
    topics.sort(key=lambda row: (row["cluster_id"], row["place"]))
    return {"worst": failures, "topics": topics}


def _values(row: _Row, *names: str) -> dict[str, Any]:
    return {name: row[name] for name in ("cluster_id", *names, *EFFECTS)}


def _collected(rows: Any) -> list[_Row]:
    return [row.asDict() for row in rows.collect()]
