"""The earlier run that a run of history continues: which one, and up to where it has read each cluster."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from pipeline.errors import PipelineError
from pipeline.history.timeline import SnapshotTimeline
from pipeline.results import JobResult, RunTarget, read_results, rows_by_run
from pipeline.storage import StoragePath
from pipeline.tables.delta_table import DataFile, data_files, opened
from pipeline.tables.history_schemas import EVENTS, HISTORY_MARKS, HISTORY_STATES, INCIDENTS
from pipeline.tables.schemas import QUARANTINED_ROWS, TableDefinition

RULES = 3
"""Goes up whenever the same snapshots give other rows than before: a run of other rules is not continued."""

JOB = "history"

TABLES = (INCIDENTS, EVENTS, QUARANTINED_ROWS, HISTORY_MARKS, HISTORY_STATES)
"""What a run writes."""

FULL = "--full reads every snapshot again"


@dataclass(frozen=True, slots=True)
class HistoryMark:
    """The newest ``snapshot`` of a cluster that the run has read, how many ``snapshots`` it read, and the digest of
    their timeline.
    """

    snapshot: str
    snapshots: int
    timeline: str
    rules: int

    def why_not(self, line: SnapshotTimeline) -> str:
        """Why a run cannot go on from here: the snapshots up to the mark are not what they were; "" if it can."""
        if self.rules != RULES:
            return "an earlier version of ktriage read it by other rules"
        if line.digest(self.snapshots) == self.timeline:
            return ""
        names = [moment.snapshot for moment in line.moments]
        if self.snapshot not in names:
            return f"{self.snapshot}, the newest that was read, is no longer used"
        more = names.index(self.snapshot) + 1 - self.snapshots
        if more > 0:
            return f"{more} of its snapshots before {self.snapshot} came after the earlier run"
        if more < 0:
            return f"{-more} of its snapshots that were read are no longer used"
        return f"the gaps before {self.snapshot} are judged otherwise, or other snapshots are used there"


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """A finished run, and its marks by cluster. ``damage``: why its rows cannot be read; "": they can."""

    target: RunTarget
    marks: Mapping[str, HistoryMark]
    damage: str = ""

    def why_not(self, cluster_id: str, line: SnapshotTimeline) -> str:
        """Why the cluster is read whole; "" if it need not be."""
        mark = self.marks.get(cluster_id)
        return self.damage or ("the earlier run has not read it" if mark is None else mark.why_not(line))

    @property
    def files(self) -> list[DataFile]:
        """The files with its rows. Raises PipelineError."""
        return [file for _, file in self.files_by_table]

    @property
    def files_by_table(self) -> list[tuple[TableDefinition, DataFile]]:
        """The files with its rows, each with its table. Raises PipelineError."""
        if self.damage:
            return []
        return [
            (definition, file)
            for definition in TABLES
            if (table := opened(self.target.root, definition)) is not None
            for file in data_files(self.target.root, definition, table)
            if file.partition["run_id"] == self.target.run_id
        ]


def find_earlier_run(
    results: StoragePath, since: datetime | None, clusters: Collection[str]
) -> EarlierRun | None:
    """Of the runs with the same ``since`` and all their rows the one that read most of those clusters, of equals
    the newest; None: there is none. Raises PipelineError.
    """
    there = {definition.name: rows_by_run(results, definition) for definition in TABLES}

    def whole(run: JobResult) -> bool:
        written = run.summary.get("rows", {})
        counted = {name: rows.get(run.target.run_id, 0) for name, rows in there.items()}
        return bool(counted == written)

    runs = [
        run
        for run in read_results(results)
        if run.job == JOB and run.asked.get("since") == since_text(since) and whole(run)
    ]
    # The newest of equals: max() takes the first.
    best = max(
        reversed(runs), key=lambda run: len(run.asked["clusters"].keys() & set(clusters)), default=None
    )
    return None if best is None else EarlierRun(best.target, _marks(best))


def _marks(run: JobResult) -> dict[str, HistoryMark]:
    columns = ("cluster_id", "snapshot", "snapshots", "timeline", "rules")
    try:
        rows = [row for table in run.rows(HISTORY_MARKS, columns) for row in table.to_pylist()]
    except PipelineError as error:
        raise PipelineError(f"{error}; {FULL}") from None
    return {row.pop("cluster_id"): HistoryMark(**row) for row in rows}


def since_text(since: datetime | None) -> str | None:
    """As a run records it."""
    return None if since is None else since.isoformat()
