"""What was on a failed log dir, and what would happen if a healthy one failed (as ``ktriage log-dirs`` has it)."""

from __future__ import annotations

from collections.abc import Callable

from backends.base.errors import BackendError
from backends.base.protocol import Backend
from console.app.base.screen_calls import Say
from console.app.session.session import Session
from console.app.session.view import View
from console.jobs.disks.log_dirs_pane import LogDirDetail, PartitionOutcome
from console.reading.log_dir_survey import failures, reckon, with_memory
from recovery.cluster_health import ClusterHealth
from recovery.disks.failed_dirs import LostReplica, RemainingWork
from recovery.disks.failure_preview import FailureEffect, if_places_fail
from recovery.disks.values import DiskError, DiskOutcome, LogDirPlace
from recovery.model import Survey
from recovery.ranking import Ranking
from recovery.strategy import Strategy, decide
from recovery.wording.cluster_health_text import stale_reason
from recovery.wording.quantity_text import counted
from widgets.text import Tone

_NOTE = "predicted by the controller's rules from the current state, if nothing else fails"
_NOBODY = "nobody would be elected, and no ISR would change, until one leads"
_STOPS = "the broker would stop altogether: its metadata log, or its last log dir, is there"
_FAILED = "from the last healthy listing that ktriage log-dirs saved, and from the replicas offline now"
_PERHAPS = "it may have been on another failed dir"
_LEFT = {
    RemainingWork.LAST_COPY: DiskOutcome.LAST_COPY,
    RemainingWork.OFFLINE: DiskOutcome.OFFLINE,
    RemainingWork.UNDER: DiskOutcome.UNDER_MIN_ISR,
    RemainingWork.UNNOTICED: DiskOutcome.UNNOTICED,
    RemainingWork.DISK: DiskOutcome.FEWER,
}


class LogDirDetails:
    """Computes one log dir at a time, on the backend's thread. ``shown`` is the last one; None: none yet."""

    def __init__(self, session: Session, say: Say, redraw: Callable[[], None]) -> None:
        self._session = session
        self._say = say
        self._redraw = redraw
        self.shown: LogDirDetail | None = None

    async def load(self, broker: int, path: str) -> None:
        session, view = self._session, self._session.view
        ranking = session.choosing.ranking
        try:
            self.shown = await session.run(lambda backend: dir_detail(backend, view, broker, path, ranking))
        except BackendError as error:
            self._say(str(error), Tone.BAD)
        else:
            self._redraw()


async def dir_detail(
    backend: Backend, view: View, broker: int, path: str, ranking: Ranking = Ranking.LAST_RECORD
) -> LogDirDetail:
    """On the backend's thread, because a dir may have thousands of replicas. ``ranking`` says which log is
    the best. Raises BackendError.
    """
    assert view.cluster is not None
    assert view.partitions is not None
    disks = with_memory(view.cluster, view.partitions, view.log_dirs or {})
    place = LogDirPlace(broker, path)
    if place in disks.failed:
        found = next(one for one in await failures(backend, disks) if one.place == place)
        return LogDirDetail(broker, path, True, tuple(_lost(lost) for lost in found.lost), _FAILED)
    topics = sorted({state.topic for state in view.partitions.states if broker in state.replicas})
    try:
        stuck = "" if view.health is None else stale_reason(ClusterHealth(view.health.quorum))
        reckoned = if_places_fail(await reckon(backend, disks, topics), [place], stuck)
    except DiskError as error:
        return LogDirDetail(broker, path, False, (), str(error))
    note = _STOPS if broker in reckoned.stopped else f"{stuck}: {_NOBODY}" if stuck else _NOTE
    outcomes = tuple(
        _partition_outcome(fate, view.surveys.get(fate.tp), broker, ranking) for fate in reckoned.fates
    )
    return LogDirDetail(broker, path, False, outcomes, note)


def _lost(lost: LostReplica) -> PartitionOutcome:
    note = str(lost.left) if lost.sure else f"{lost.left}; {_PERHAPS}"
    return PartitionOutcome(lost.tp, _LEFT[lost.left], lost.state.leader, lost.state.leader, note=note)


def _partition_outcome(
    fate: FailureEffect, survey: Survey | None, broker: int, ranking: Ranking
) -> PartitionOutcome:
    worst, note = fate.outcomes[0], ""
    if worst is DiskOutcome.SURVIVOR:
        best = survey is not None and decide(survey, ranking, Strategy.AGGRESSIVE).leader == broker
        left = f"{counted(fate.copies, 'copy', 'copies')} left"
        note = f"the best one; {left}" if best else left
    return PartitionOutcome(fate.tp, worst, fate.state.leader, fate.leader, fate.unclean, note=note)
