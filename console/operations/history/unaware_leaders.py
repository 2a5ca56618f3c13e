"""Which brokers still act as leader of a partition for which a plan elected another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from backends.base.answers import PICTURE_WAIT, Depth, SurveyRequest
from backends.base.protocol import Backend, Progress
from console.operations.history.incident import PlanFile
from recovery.model import PartitionState, TopicPartition
from recovery.old_leaders import OldLeader, old_leaders


async def read_unaware_leaders(
    backend: Backend,
    plans: Sequence[PlanFile],
    states: Sequence[PartitionState],
    seconds: float,
    progress: Progress | None = None,
) -> Mapping[TopicPartition, tuple[OldLeader, ...]]:
    """Of the plans' partitions that somebody leads; ``states`` are those of now. Raises BackendError.

    Only replicas outside the ISR are asked: the others follow the new leader.
    """
    planned = {row.tp for file in plans if file.plan is not None for row in file.plan.rows}
    asked = tuple(
        state._replace(replicas=outside)
        for state in states
        if state.tp in planned and not state.offline
        if (outside := tuple(broker for broker in state.replicas if broker not in state.isr))
    )
    if not asked:
        return {}
    request = SurveyRequest(asked, seconds, Depth.LAST, log_dirs=False, picture_wait=PICTURE_WAIT)
    surveys = (await backend.survey(request, progress)).surveys
    found = {survey.tp: old_leaders(survey) for survey in surveys}
    return {tp: writing for tp, writing in found.items() if writing}
