"""The jobs as DataFrames, for a program with a Spark session of its own: a notebook, a script of spark-submit.

Each takes the session, where the snapshots are, and options, and returns its result tables by their names, without
the column ``run_id``: the rows that the command writes. Nothing is written, no setting of the session is changed.
Rows are computed when Spark is asked for them: who uses a DataFrame several times may cache it. Executors need
ktriage's code and what it requires (docs/pipeline.md, Where it runs).

Each raises PipelineError if no snapshot can be read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from pipeline.exposure.exposure_job import exposed
from pipeline.exposure.fix_choice import FixLimits
from pipeline.exposure.fix_job import fixes_of
from pipeline.exposure.what_if import NOTHING_ASKED, WhatIf
from pipeline.history.history_frames import Action, history_frames
from pipeline.history.history_sources import find_history
from pipeline.plan.plan_job import PlanOptions, planned_rows
from pipeline.snapshot.state_sources import Sources, find
from pipeline.storage import storage_path
from pipeline.tables.history_schemas import EVENTS, INCIDENTS
from pipeline.tables.schemas import (
    EXPOSED_TOPICS,
    EXPOSURES,
    FIXES,
    PLANS,
    QUARANTINED_ROWS,
)

Frames = Mapping[str, Any]
"""DataFrames by the name of their table."""


class Tables(NamedTuple):
    """The directories of the snapshots, as URIs; ``clusters``: only these, none: all; ``at``: their state at that
    moment, None: the newest.
    """

    uris: tuple[str, ...]
    clusters: tuple[str, ...] = ()
    at: datetime | None = None

    @property
    def sources(self) -> Sources:
        """The newest states. What could not be used is in ``sources.refused``."""
        return find([storage_path(uri) for uri in self.uris], self.clusters, self.at)


class HistoryOptions(NamedTuple):
    """``since``: snapshots from then on, None: all. ``actions``: who did what, to be named in the incidents."""

    since: datetime | None = None
    actions: Sequence[Action] = ()


def plan(spark: Any, tables: Tables, options: PlanOptions = PlanOptions()) -> Frames:  # noqa: B008  # frozen
    """``plans``: the plan of every cluster; a broken row has the verdict "quarantined"."""
    return {PLANS.name: planned_rows(spark, tables.sources, options)}


def exposure(spark: Any, tables: Tables, options: WhatIf = NOTHING_ASKED) -> Frames:
    """``exposures``, ``exposed_topics`` and ``quarantined_rows``: what each failure would take."""
    found = exposed(spark, tables.sources, options)
    return {
        EXPOSURES.name: found.failures,
        EXPOSED_TOPICS.name: found.topics,
        QUARANTINED_ROWS.name: found.quarantined,
    }


def fixes(spark: Any, tables: Tables, options: FixLimits = FixLimits()) -> Frames:  # noqa: B008  # frozen
    """``fixes`` and ``quarantined_rows``: what to change before something fails."""
    found = fixes_of(spark, tables.sources, options)
    return {FIXES.name: found.fixes, QUARANTINED_ROWS.name: found.quarantined}


def history(
    spark: Any,
    tables: Tables,
    options: HistoryOptions = HistoryOptions(),  # noqa: B008  # frozen
) -> Frames:
    """``incidents``, ``events`` and ``quarantined_rows``; every snapshot is read, as with ``--full``. Each of the
    three reads the snapshots by itself.
    """
    roots = [storage_path(uri) for uri in tables.uris]
    sources = find_history(roots, tables.clusters, options.since)
    found = history_frames(spark, sources, options.actions).tables
    return {one.name: found[one.name] for one in (INCIDENTS, EVENTS, QUARANTINED_ROWS)}
