"""What to do first for the partitions that are offline, from fresh answers of their replicas."""

from __future__ import annotations

from collections.abc import Sequence

from backends.base.answers import ClusterInfo, Depth, SurveyRequest
from backends.base.judged_partitions import LogDirs, judged
from backends.base.protocol import Backend
from recovery.advice import FirstStep, advise, first_steps
from recovery.model import PartitionState
from recovery.ranking import Ranking


async def first_advice(
    backend: Backend,
    cluster: ClusterInfo,
    offline: Sequence[PartitionState],
    log_dirs: LogDirs,
    seconds: float,
) -> tuple[FirstStep, ...]:
    """Asks every replica of these partitions where its log parts from the others'; brokers have ``seconds``.

    Raises BackendError.
    """
    if not offline:
        return ()
    result = await backend.survey(SurveyRequest(tuple(offline), seconds, Depth.DIVERGENCE, log_dirs=False))
    found = await judged(backend, cluster.elr_enabled, result.surveys, log_dirs)
    advised = (
        (one.tp, advise(one, Ranking.LAST_RECORD, found.verdicts.get(one.tp))) for one in result.surveys
    )
    return first_steps((tp, advice) for tp, advice in advised if advice is not None)
