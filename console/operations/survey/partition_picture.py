"""Reads partitions, their configurations, and every replica's log, before anything is changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from backends.base.answers import ClusterInfo, Contact, Depth, LogDir, Partitions, SurveyRequest, SurveyResult
from backends.base.failed_disks import LogDirs
from backends.base.judged_partitions import CopyUse
from backends.base.protocol import Backend, Progress
from console.journal.run_records import NO_MARKS, ClusterMarks
from console.operations.elections.partition_selection import Selected, Selection, Which, select
from console.operations.survey.cluster_health import (
    Configs,
    HealthSources,
    cluster_health,
    offline_of,
    problems_of,
    topics_of,
)
from console.operations.survey.compacted_log_batches import with_batches_read
from console.operations.survey.log_dir_survey import failed_before
from console.operations.survey.offline_times import OfflineTimes
from console.operations.voters.remembered_voters import quorum_or_lost
from recovery.acknowledged.disks_to_read import DisksToRead, away
from recovery.acknowledged.verdict import PartitionVerdicts
from recovery.cluster_health import ClusterHealth
from recovery.controller.rules import min_isr_from_config
from recovery.disk_evidence import EvidenceUse
from recovery.membership.quorum import Quorum
from recovery.model import PartitionState, Survey, TopicPartition, Unknown, Why
from recovery.plan.topic_marks import Mark, marks

_NO_CONFIG = Unknown(Why.NOT_ANSWERED, "the topic's configuration")


@dataclass(frozen=True, slots=True)
class Depths:
    """The survey's duration in seconds, its depth, and how long a picture waits for one broker (SurveyRequest)."""

    duration: float = 30.0
    depth: Depth = Depth.DIVERGENCE
    log_dirs: bool = True
    picture_wait: float | None = None


@dataclass(frozen=True, slots=True)
class Picture:
    """The requested partitions with one survey each, in the requested order.

    ``marks`` says for each topic what an unclean election affects in addition to records. ``hidden``,
    ``visible_only``, ``not_compared`` and ``unreachable_leaders`` are as in :class:`Selected`. ``quorum`` and
    ``health``, that of the whole cluster, are None where they were not asked. ``evidence`` is what became of
    disks that were read; None: there were none. ``log_dirs`` are empty where they were not asked, ``verdicts``
    where nobody judged. ``copied_log``: what became of a copied metadata log; None: there was none.
    ``offline_times`` in seconds since 1970, of the partitions of which the metadata log tells it. ``led_without``
    are all partitions of the cluster with a leader and with replicas that are away, empty where ``health`` was not
    asked; ``unread`` is whose disks may hold what their leaders lack, empty where nobody judged. ``failed_before``
    are log dirs that had failed, of brokers that list none now. ``missing`` as in :class:`Selected`.
    ``cluster_marks`` tell the cluster from another one with the same id.
    """

    cluster: ClusterInfo
    surveys: tuple[Survey, ...]
    contacts: tuple[Contact, ...]
    marks: Mapping[str, tuple[Mark, ...]]
    hidden: tuple[str, ...]
    visible_only: bool
    selection: Selection
    quorum: Quorum | Unknown | None = None
    not_compared: Unknown | None = None
    unreachable_leaders: Mapping[TopicPartition, Unknown] = field(default_factory=dict)
    health: ClusterHealth | None = None
    evidence: EvidenceUse | None = None
    log_dirs: LogDirs = field(default_factory=dict)
    verdicts: Mapping[TopicPartition, PartitionVerdicts] = field(default_factory=dict)
    copied_log: CopyUse | None = None
    offline_times: OfflineTimes = field(default_factory=lambda: OfflineTimes({}))
    led_without: tuple[PartitionState, ...] = ()
    unread: DisksToRead = field(default_factory=DisksToRead)
    failed_before: tuple[LogDir, ...] = ()
    missing: Mapping[TopicPartition, str] = field(default_factory=dict)
    cluster_marks: ClusterMarks = NO_MARKS

    @property
    def may_hide_partitions(self) -> bool:
        """All partitions were requested, and there are, or may be, some that this user has no permission to
        see.
        """
        return not self.selection.named and (bool(self.hidden) or self.not_compared is not None)

    @property
    def stale(self) -> bool:
        """No controller leads, or a broker was asked that is cut off: it is not known what is offline now."""
        return self.health is not None and not self.health.current

    @property
    def unsure(self) -> int:
        """How many partitions with a leader lack an in-sync replica and may be under min ISR, because their
        min ISR is not known.
        """
        reported = (survey for survey in self.surveys if isinstance(survey.min_isr, Unknown))
        return sum(not s.state.offline and len(s.state.isr) < len(s.state.replicas) for s in reported)


async def examine(
    backend: Backend,
    cluster: ClusterInfo,
    selection: Selection,
    depths: Depths,
    progress: Progress | None = None,
    *,
    health: bool = False,
) -> Picture:
    """Finds the partitions and surveys them, on an open backend; with ``health``, the quorum and all disks too.

    Raises InputError and BackendError.
    """
    async with tasks() as group:
        quorum_asked = group.create_task(quorum_or_lost(backend, cluster.cluster_id)) if health else None
        # Asked while the partitions are: a list of all of them needs the log dirs too, and shares the request.
        dirs_asked = group.create_task(_log_dirs(backend, depths.duration)) if health else None
        selected = await _selected(backend, selection)
        request = SurveyRequest(
            selected.states,
            depths.duration,
            depths.depth,
            depths.log_dirs,
            picture_wait=depths.picture_wait,
        )
        whole_asked = group.create_task(_whole(backend, selected)) if health else None
        configs_asked = group.create_task(backend.topic_configs(topics_of(selected.states)))
        result = await backend.survey(request, progress) if selected.states else SurveyResult((), ())
    configs = configs_asked.result()
    quorum = quorum_asked.result() if quorum_asked else None
    found: ClusterHealth | None = None
    before: tuple[LogDir, ...] = ()
    if dirs_asked and quorum and whole_asked:
        problems, dirs = problems_of(result.contacts), dirs_asked.result()
        whole, more = whole_asked.result()
        before = failed_before(cluster, whole, dirs)
        found = cluster_health(
            HealthSources(
                cluster, whole, problems, dirs, quorum.answer, {**configs, **more}, failed_before=before
            )
        )
    surveys = await with_batches_read(backend, result.surveys, progress)
    return Picture(
        cluster,
        surveys,
        result.contacts,
        {topic: marks(topic, configs.get(topic)) for topic in topics_of(selected.states)},
        selected.hidden,
        selected.visible_only,
        selection,
        quorum.quorum if quorum else None,
        selected.not_compared,
        selected.unreachable_leaders,
        found,
        log_dirs=dirs_asked.result() if dirs_asked else {},
        led_without=tuple(state for state in whole_asked.result()[0].states if away(state))
        if whole_asked
        else (),
        failed_before=before,
        missing=selected.missing,
        cluster_marks=ClusterMarks.of(
            whole_asked.result()[0] if whole_asked else None, quorum.quorum if quorum else None
        ),
    )


async def _selected(backend: Backend, selection: Selection) -> Selected:
    selected = await select(backend, selection)
    if selection.which is not Which.UNDER_MIN_ISR:
        return selected
    configs = await backend.topic_configs(topics_of(selected.states))
    states = tuple(state for state in selected.states if may_be_under_min_isr(state, configs))
    return replace(selected, states=states)


async def _whole(backend: Backend, selected: Selected) -> tuple[Partitions, Configs]:
    """All partitions of the cluster, and the configurations of topics that are offline and were not requested."""
    if selected.whole:
        return selected.found, {}
    found = await backend.partitions()
    requested = {state.topic for state in selected.states}
    others = [topic for topic in topics_of(offline_of(found)) if topic not in requested]
    return found, await backend.topic_configs(tuple(others)) if others else {}


async def _log_dirs(backend: Backend, duration: float) -> LogDirs:
    """Of every broker, nothing where that takes longer than ``duration`` seconds."""
    try:
        async with asyncio.timeout(duration):
            return await backend.log_dirs()
    except TimeoutError:
        return {}


def may_be_under_min_isr(state: PartitionState, configs: Configs) -> bool:
    """Fewer in-sync replicas than min.insync.replicas; if that is not known, fewer than there are replicas."""
    needed = min_isr_from_config(state, configs.get(state.topic, _NO_CONFIG))
    return len(state.isr) < (len(state.replicas) if isinstance(needed, Unknown) else needed)


@asynccontextmanager
async def tasks() -> AsyncIterator[asyncio.TaskGroup]:
    """A task group that raises the first failure itself, not a group of them."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
