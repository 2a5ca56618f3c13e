"""Makes the plan of one cluster, for ``ktriage apply``, from the plan job's result."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import pyarrow.compute as pc

from pipeline.errors import PipelineError
from pipeline.plan.row_checks import QUARANTINED
from pipeline.results import JobResult
from pipeline.tables.schemas import PLANS
from recovery.model import TopicPartition
from recovery.plan.read import row_from_json
from recovery.plan.values import Header, NotElected, Plan, PlanRow
from recovery.ranking import Ranking
from recovery.strategy import DecisionKind, Strategy

BATCH = 20_000


def plan_of(result: JobResult, cluster_id: str, made_by: str) -> Plan:
    """The plan of that cluster, sorted by topic and partition; the same result always gives the same plan.

    Raises PipelineError if the result has nothing of that cluster, or is of an earlier version.
    """
    ranking = Ranking(result.asked["ranking"])
    rows: list[PlanRow] = []
    not_elected: list[NotElected] = []
    found = False
    for row in read_rows(result, cluster_id):
        found = True
        if row["verdict"] == DecisionKind.ELECT:
            rows.append(_plan_row(row, ranking, result))
        elif row["topic"] is not None and row["partition"] is not None:
            # A row without a partition has only a reason, which is in the result's summary.
            not_elected.append(_not_elected(row))
    if not found and cluster_id not in result.asked.get("clusters", {}):
        known = ", ".join(result.asked.get("clusters", {})) or "none"
        raise PipelineError(f"{result.place.uri}: it has no cluster {cluster_id}; it has {known}")
    plan_id = uuid.uuid5(uuid.NAMESPACE_URL, f"{result.place.name} {cluster_id}")
    header = Header(
        str(plan_id),
        cluster_id,
        _taken_at(result, cluster_id),
        made_by,
        result.tool_version,
        ranking,
        Strategy(result.asked["strategy"]),
    )
    # It is not known which of the rows of one partition is right.
    named = (*(row.tp for row in rows), *(row.tp for row in not_elected))
    repeated = {tp for tp, count in Counter(named).items() if count > 1}
    left = [
        *(row for row in not_elected if row.tp not in repeated),
        *(NotElected(tp, DecisionKind.REFUSED, (), "it has several rows in its snapshot") for tp in repeated),
    ]
    return Plan(
        header,
        tuple(sorted((row for row in rows if row.tp not in repeated), key=lambda row: row.tp)),
        tuple(sorted(left, key=lambda row: row.tp)),
    )


def _taken_at(result: JobResult, cluster_id: str) -> datetime:
    """When the snapshot was taken; this is the age of the plan."""
    taken_at = result.asked.get("taken_at", {}).get(cluster_id)
    return datetime.fromisoformat(taken_at) if taken_at else result.made_at


def read_rows(result: JobResult, cluster_id: str) -> Iterator[Mapping[str, Any]]:
    """The cluster's rows as Spark wrote them, in batches. Raises PipelineError."""
    for table in result.rows(PLANS):
        for batch in table.filter(pc.equal(table["cluster_id"], cluster_id)).to_batches(BATCH):
            yield from batch.to_pylist()


def _not_elected(row: Mapping[str, Any]) -> NotElected:
    tp = TopicPartition(row["topic"], row["partition"])
    if row["verdict"] == QUARANTINED:
        return NotElected(tp, DecisionKind.REFUSED, (), f"its row in the snapshot is broken: {row['reason']}")
    verdict = DecisionKind(row["verdict"])
    leader = row["chosen"] if verdict is DecisionKind.ALREADY_ONLINE else -1
    return NotElected(tp, verdict, tuple(row["waits_for"]), row["reason"], leader)


def _plan_row(row: Mapping[str, Any], ranking: Ranking, result: JobResult) -> PlanRow:
    if row["plan_row"] is None:
        raise PipelineError(
            f"{result.place.uri}: an earlier version of ktriage made this plan, without what it loses of the"
            " acknowledged records; run ktriage pipeline plan again"
        )
    return row_from_json(row["plan_row"], ranking)
