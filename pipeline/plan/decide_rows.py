"""The choice of leaders for a batch of snapshot rows, as rows of the plan: by the rule of ``ktriage plan``, from
the evidence that a snapshot holds.

It has no metadata log: what only that log proves is a condition of a verdict, on which ``balanced`` does not elect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from backends.base.answers import LogDir
from backends.base.failed_disks import FailedDisks
from pipeline.plan.row_checks import COLUMNS, QUARANTINED, flaws
from pipeline.snapshot.survey_rows import marks_of, survey_of
from pipeline.tables.schemas import PLANNED
from recovery.acknowledged.candidate_verdicts import partition_verdicts
from recovery.acknowledged.partition_facts import NOT_ASKED, PartitionFacts
from recovery.acknowledged.verdict import PartitionVerdicts
from recovery.loss import Loss
from recovery.model import Survey, Unknown, Why
from recovery.plan.make import plan_candidates, plan_row, silent_replicas
from recovery.plan.topic_marks import Mark
from recovery.plan.values import PlanCandidate
from recovery.plan.write import row_json
from recovery.ranking import Ranking, rank
from recovery.strategy import DecisionKind, Strategy, clean_electors, decide
from recovery.wording.verdict_text import short_verdict

ROWS = 1_000
"""Rows that are Python's values at once; this bounds a task's memory."""

NO_METADATA_LOG = Unknown(Why.NOT_ANSWERED, "a snapshot has no metadata log")


class ClusterFacts(NamedTuple):
    """What the newest observation of a cluster tells besides its partitions; ``elr_enabled`` None: not known."""

    elr_enabled: bool | None
    disks: FailedDisks


NOTHING_KNOWN = ClusterFacts(None, FailedDisks({}))
Clusters = Mapping[str | None, ClusterFacts]


def cluster_facts(observation: Mapping[str, Any]) -> ClusterFacts:
    """From a row of the table of observations: its ``brokers`` and ``elr_enabled``."""
    listed = {
        broker["id"]: [
            LogDir(broker["id"], one["path"], one["error"], one["total_bytes"], one["usable_bytes"], ())
            for one in broker["log_dirs"] or ()
        ]
        for broker in observation["brokers"] or ()
    }
    return ClusterFacts(observation["elr_enabled"], FailedDisks(listed))


READ = frozenset(
    {
        *COLUMNS,
        "marks",
        "min_isr",
        "min_isr_unknown",
        "offline_replicas",
        "unclean_elections",
        "acting_leaders",
    }
)
"""The columns that are read."""

UNREAD = frozenset({"log_dir"})
"""The field of a replica that no rule uses."""


def planned_batches(
    batches: Iterable[Any], ranking: Ranking, strategy: Strategy, clusters: Clusters
) -> Iterator[Any]:
    """:func:`planned` of each batch."""
    for batch in batches:
        yield from planned(batch, ranking, strategy, clusters)


def planned(
    batch: Any, ranking: Ranking, strategy: Strategy, clusters: Clusters = MappingProxyType({})
) -> list[Any]:
    """Turns a batch of snapshot rows into batches of :data:`PLANNED`; ``clusters`` by their ids.

    A broken row gets the verdict "quarantined", its flaw as the reason, and nothing else.
    """
    flaw = flaws(batch)
    sound = pc.is_null(flaw)
    broken = batch.filter(pc.invert(sound))
    decided = list(_decided(batch.filter(sound), ranking, strategy, clusters))
    return [*decided, quarantined(broken, flaw.drop_null())] if broken.num_rows else decided


def quarantined(batch: Any, flaw: Any) -> Any:
    """Rows that cannot be planned, as a batch of :data:`PLANNED`; ``flaw``: the reason for each."""
    names = set(batch.schema.names)
    decided = {
        "verdict": pa.repeat(QUARANTINED, batch.num_rows),
        "chosen": pa.repeat(-1, batch.num_rows),
        "reason": flaw,
        **dict.fromkeys(("election_order", "waits_for", "clean_electors"), pa.array([[]] * batch.num_rows)),
    }
    columns = []
    for field in PLANNED:
        if field.name in decided:
            columns.append(decided[field.name].cast(field.type))
        elif field.name in names:
            columns.append(batch[field.name].cast(field.type))
        else:
            columns.append(pa.nulls(batch.num_rows, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=PLANNED)


def _decided(batch: Any, ranking: Ranking, strategy: Strategy, clusters: Clusters) -> Iterator[Any]:
    for start in range(0, max(batch.num_rows, 1), ROWS):
        rows = batch.slice(start, ROWS).to_pylist()
        decided = [
            _row(row, ranking, strategy, clusters.get(row.get("cluster_id"), NOTHING_KNOWN)) for row in rows
        ]
        yield pa.RecordBatch.from_pylist(decided, PLANNED)


_COPIED = ("cluster_id", "snapshot", "topic", "partition", "topic_id", "leader_epoch", "assignment", "marks")


def _row(
    row: Mapping[str, Any], ranking: Ranking, strategy: Strategy, cluster: ClusterFacts
) -> dict[str, Any]:
    survey = survey_of(row)
    judged = judged_row(survey, row, cluster) if survey.state.offline else None
    decision = decide(survey, ranking, strategy, judged)
    planned_row = {name: row.get(name) for name in _COPIED} | {
        "verdict": decision.verdict.value,
        "chosen": decision.leader,
        "election_order": decision.order,
        "waits_for": decision.waits_for,
        "reason": decision.reason,
        "other_ranking_leader": decision.other_ranking_leader,
        "clean_electors": clean_electors(survey),
    }
    if judged is None:
        return planned_row
    ranked = rank(survey, ranking, judged.steady)
    if isinstance(ranked, Unknown):
        silent = silent_replicas(survey, ())
        return planned_row | {"silent": [one._asdict() for one in silent]}
    first: PlanCandidate | None
    if decision.verdict is DecisionKind.ELECT:
        elected = plan_row(survey, decision, ranking, tuple(map(Mark, row["marks"] or ())))
        candidates, first = elected.candidates, elected.chosen
        planned_row["plan_row"] = row_json(elected)
    else:
        candidates = plan_candidates(survey, ranked, judged)
        first = next((one for one in candidates if one.electable), None)
    return planned_row | {
        "candidates": [_candidate(one) for one in candidates],
        "silent": [one._asdict() for one in silent_replicas(survey, candidates)],
        "acknowledged": None if first is None else short_verdict(first.verdict),
    }


def judged_row(survey: Survey, row: Mapping[str, Any], cluster: ClusterFacts) -> PartitionVerdicts:
    """What each choice loses of the acknowledged records, by what the snapshot holds."""
    unclean, marks = row["unclean_elections"], marks_of(row)
    facts = PartitionFacts(
        survey,
        NOT_ASKED if cluster.elr_enabled is None else cluster.elr_enabled,
        NOT_ASKED if unclean is None else unclean,
        failed_disks=cluster.disks.under(survey),
        compacted=NOT_ASKED if Mark.UNKNOWN in marks else Mark.COMPACTED in marks,
        in_sync=NO_METADATA_LOG,
    )
    return partition_verdicts(facts)


def _candidate(one: PlanCandidate) -> dict[str, Any]:
    return {
        "broker": one.broker,
        "standing": one.standing.value,
        "leader_epoch": one.leader_epoch,
        "last_epoch": one.last_epoch,
        "log_end": one.log_end,
        "log_start": one.log_start,
        "high_watermark": one.high_watermark,
        "loss": _loss(one.loss),
    }


def _loss(loss: Loss) -> dict[str, Any]:
    spans: Mapping[str, Sequence[Any]] = {"tail": loss.tail, "head": loss.head}
    return {
        "at_least": loss.at_least,
        "at_most": loss.at_most,
        **{name: [span._asdict() for span in found] for name, found in spans.items()},
        "unanswered": loss.unanswered,
    }
