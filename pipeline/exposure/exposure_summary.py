"""What the driver receives of an exposure run: the worst failures and topics, the answers and the broken rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from pipeline.exposure.failure_counts import TOPIC
from pipeline.exposure.fleet import COUNTED, DETAILED
from pipeline.exposure.merged_counts import WORST, WORST_FIRST
from pipeline.exposure.what_if import WHAT_IF, WhatIf, loss_part
from pipeline.plan.row_checks import QUARANTINED
from pipeline.tables.schemas import EFFECTS

_Row = Mapping[str, Any]


class SummaryRows(NamedTuple):
    """Rows of :data:`~pipeline.exposure.merged_counts.MERGED`; ``single``: each cluster's worst single failure.
    ``listed``: those with a place, None: of more clusters than are detailed.
    """

    single: Sequence[_Row]
    answers: Sequence[_Row]
    broken: Sequence[_Row]
    listed: Sequence[_Row] | None

    @classmethod
    def of(cls, total: Any, clusters: int) -> SummaryRows:
        """Collects them from the sums of those clusters."""
        few = clusters <= DETAILED
        wanted = f"failures_offline IS NOT NULL OR kind IN ('{WHAT_IF}', '{QUARANTINED}')"
        rows = _collected(total.where(f"{wanted} OR place IS NOT NULL" if few else wanted))
        return cls(
            [row for row in rows if row["failures_offline"] is not None],
            [row for row in rows if row["kind"] == WHAT_IF],
            [row for row in rows if row["kind"] == QUARANTINED],
            [row for row in rows if row["place"] is not None] if few else None,
        )

    @property
    def worst_of_clusters(self) -> dict[str, _Row]:
        """For :func:`pipeline.exposure.fleet.fleet_rows`."""
        names = (*COUNTED, "kind", "failed", "failures_offline", "failures_at_risk")
        return {row["cluster_id"]: {name: row[name] for name in names} for row in self.single}

    def worst(self, total: Any, clusters: Collection[str]) -> dict[str, list[_Row]]:
        """Of those clusters the ten worst failures of each kind, single ones and pairs apart, and the ten worst
        topics.
        """
        rows = self.listed
        if rows is None:
            from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

            rows = _collected(
                total.where("place IS NOT NULL").where(f.col("cluster_id").isin(list(clusters)))
            )
        failures: list[_Row] = [
            _values(row, "kind", "failed") | {"together": len(row["failed"]), "place": row["place"]}
            for row in rows
            if row["kind"] != TOPIC
        ]
        failures.sort(key=lambda row: (row["cluster_id"], row["together"], row["kind"], row["place"]))
        return {"worst": failures, "topics": _worst_topics([row for row in rows if row["kind"] == TOPIC])}

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


def _worst_topics(rows: Sequence[_Row]) -> list[_Row]:
    """The ten worst of each cluster, of those of every part."""
    found: list[_Row] = []
    taken: dict[str, int] = {}
    for row in sorted(rows, key=_rank):
        place = taken[row["cluster_id"]] = taken.get(row["cluster_id"], 0) + 1
        if place <= WORST:
            found.append(_values(row, "topic", "broker") | {"place": place})
    return found


def _rank(row: _Row) -> tuple[Any, ...]:
    return (row["cluster_id"], *(-row[name] for name in WORST_FIRST), row["topic"], row["broker"])


def _values(row: _Row, *names: str) -> dict[str, Any]:
    return {name: row[name] for name in ("cluster_id", *names, *EFFECTS)}


def _collected(rows: Any) -> list[_Row]:
    return [row.asDict() for row in rows.collect()]
