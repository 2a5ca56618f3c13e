"""The script for spark-submit: runs a job without the console, so that it needs only the archive.

``spark-submit --master URL --py-files ktriage-pipeline.zip submit.py JOB --in LAKE --out RESULTS``
"""

from __future__ import annotations

import argparse
import sys
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from pipeline.drills import drill_job as drills
from pipeline.drills.drill_grid import Grid
from pipeline.drills.incident import IncidentShape
from pipeline.drills.recovery_arms import Arm
from pipeline.errors import PipelineError
from pipeline.exposure import exposure_job as exposures
from pipeline.exposure import fix_job as fixing
from pipeline.exposure.fix_candidates import Goal
from pipeline.exposure.fix_choice import FixLimits
from pipeline.exposure.what_if import WhatIf, parsed_losses
from pipeline.history import history_job as histories
from pipeline.history.history_sources import find_history
from pipeline.job_run import JobRun, carry_out
from pipeline.plan import plan_job as plans
from pipeline.results import JobOutput, RunTarget, run_target
from pipeline.snapshot.state_sources import find
from pipeline.spark_session import SparkSettings
from pipeline.storage import StoragePath, storage_path
from recovery.ranking import Ranking
from recovery.strategy import Strategy

VERSION = "submitted"
WORST = 100


def arguments(words: Sequence[str]) -> argparse.Namespace:
    """Parses the command line; exits with status 2 and one line on wrong usage."""
    parser = argparse.ArgumentParser(prog="submit.py", description="ktriage's jobs under spark-submit")
    parser.add_argument("job", choices=sorted(_JOBS))
    parser.add_argument("--in", dest="source", action="append", default=[])
    parser.add_argument("--out", required=True)
    parser.add_argument("--cluster-id", action="append", default=[])
    parser.add_argument("--at", type=moment)
    parser.add_argument("--since", type=moment)
    parser.add_argument("--ranking", type=Ranking, choices=list(Ranking), default=Ranking.LAST_RECORD)
    parser.add_argument("--strategy", type=Strategy, choices=list(Strategy), default=Strategy.BALANCED)
    parser.add_argument("--lose", action="append", default=[])
    parser.add_argument("--min-isr", type=int)
    parser.add_argument("--drain", type=int, action="append", default=[])
    parser.add_argument("--elr", choices=("on", "off"))
    parser.add_argument("--goal", type=Goal, choices=list(Goal), default=Goal.WRITES)
    parser.add_argument("--lower-min-isr", action="store_true")
    parser.add_argument("--seeds", type=int, default=10)
    return parser.parse_args(words)


def moment(text: str) -> datetime:
    """ISO 8601, in UTC if no zone is named."""
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def main(words: Sequence[str]) -> int:
    """Runs the job and commits its result; returns the exit status: 1 if something was left out of it."""
    asked = arguments(words)
    made_at = datetime.now(UTC)
    try:
        target = run_target(storage_path(asked.out), asked.job, made_at, uuid.uuid4().hex[:8])
        body = partial(_JOBS[asked.job], asked)
        result = carry_out(JobRun(asked.job, target, made_at, VERSION), SparkSettings(), body)
    except PipelineError as error:
        sys.stderr.write(f"submit.py: {error}\n")
        return 2
    sys.stdout.write(f"{target.place.uri}\n")
    return 1 if result.summary.get("refused") or result.summary.get("quarantined") else 0


def _roots(asked: argparse.Namespace) -> list[StoragePath]:
    return [storage_path(source) for source in asked.source]


def _plan(asked: argparse.Namespace, spark: Any, target: RunTarget) -> JobOutput:
    sources = find(_roots(asked), asked.cluster_id, asked.at)
    return plans.outcome(spark, sources, asked.ranking, asked.strategy, target, everything=False)


def _exposure(asked: argparse.Namespace, spark: Any, target: RunTarget) -> JobOutput:
    sources = find(_roots(asked), asked.cluster_id, asked.at)
    elr = None if asked.elr is None else asked.elr == "on"
    what_if = WhatIf(parsed_losses(asked.lose), asked.min_isr, tuple(sorted(set(asked.drain))), elr)
    return exposures.outcome(spark, sources, target, what_if)


def _fixes(asked: argparse.Namespace, spark: Any, target: RunTarget) -> JobOutput:
    limits = FixLimits(asked.goal, lower_min_isr=asked.lower_min_isr)
    return fixing.outcome(spark, find(_roots(asked), asked.cluster_id, asked.at), target, limits)


def _history(asked: argparse.Namespace, spark: Any, target: RunTarget) -> JobOutput:
    done = histories.outcome(spark, find_history(_roots(asked), asked.cluster_id, asked.since), (), target)
    since = asked.since and asked.since.isoformat()
    return done._replace(asked={**done.asked, "since": since, "journal": False})


def _drill(asked: argparse.Namespace, spark: Any, target: RunTarget) -> JobOutput:
    arms = tuple(arm.value for arm in Arm)
    grid = Grid(tuple(shape.value for shape in IncidentShape), arms, (1, 2), 0, asked.seeds)
    drills.run_grid(spark, grid, target)
    return JobOutput({"seeds": asked.seeds}, drills.summarise(spark, target, WORST))


_JOBS: dict[str, Callable[[argparse.Namespace, Any, RunTarget], JobOutput]] = {
    "plan": _plan,
    "exposure": _exposure,
    "fixes": _fixes,
    "history": _history,
    "drill": _drill,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
