"""Reads a cluster once: its brokers, partitions and quorum, its log dirs, and every replica's log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

from backends.base.answers import (
    PICTURE_WAIT,
    ClusterInfo,
    Contact,
    Depth,
    Partitions,
    SurveyRequest,
    SurveyResult,
)
from backends.base.failed_disks import LogDirs
from backends.base.judged_partitions import JudgedPartitions, judged
from backends.base.metadata_log import MetadataLogSource
from backends.base.protocol import Backend, Progress
from backends.base.time_limit import time_limit
from backends.metadata_log.copied_log import CopiedMetadataLog, other_cluster
from console.errors import InputError
from console.reading.cluster_reading import (
    NO_CONFIG,
    ClusterReading,
    Configs,
    offline_of,
    topics_of,
    worst_contacts,
)
from console.reading.compacted_log_batches import with_batches_read
from console.reading.disk_evidence import with_evidence
from console.reading.log_dir_survey import failed_before
from console.reading.offline_times import OfflineTimesReader
from console.reading.partition_selection import Selected, Selection, Which, select
from console.reading.remembered_voters import quorum_or_lost
from console.reading.unread_disks import OpenDisks, brokers_up, disks_to_read, open_disks, states_of
from recovery.acknowledged.disks_to_read import DisksToRead, away
from recovery.advice import advise, first_steps, read_first, stop_and_read
from recovery.cluster_health import short_of_replicas
from recovery.controller.rules import min_isr_from_config
from recovery.disk_evidence import DiskReading
from recovery.metadata_log.history import MetadataHistory
from recovery.model import NO_LEADER, PartitionState, Survey, Unknown
from recovery.ranking import Ranking
from recovery.survey_columns import MergedSurveys, columns_of, leaderless, troubled
from recovery.unread_disks import before_start, without_read


@dataclass(frozen=True, slots=True)
class Depths:
    """The survey's duration in seconds, its depth, and how long a reading waits for one broker (SurveyRequest)."""

    duration: float = 30.0
    depth: Depth = Depth.DIVERGENCE
    log_dirs: bool = True
    picture_wait: float | None = None


async def read_cluster(
    backend: Backend,
    duration: float,
    now: float,
    progress: Progress | None = None,
    *,
    disks: tuple[DiskReading, ...] = (),
    copy: CopiedMetadataLog | None = None,
) -> ClusterReading:
    """Opens the backend and reads everything, with what to do first; ``duration`` in seconds limits the replicas'
    answers. ``now`` is in seconds since 1970. ``disks`` count as the answers of their brokers, and ``copy`` where
    the active controller's metadata log cannot be read.

    Raises BackendError where nothing could be asked, and InputError for a disk or a copy of another cluster; all
    else that was not to be had is in the values.
    """
    cluster = await backend.open()
    async with tasks() as group:
        source = MetadataLogSource()
        quorum = group.create_task(quorum_or_lost(backend, cluster.cluster_id, source))
        log_dirs = group.create_task(backend.log_dirs())
        found = await backend.partitions()
        configs = group.create_task(backend.topic_configs(topics_of(offline_of(found))))
        times = group.create_task(OfflineTimesReader(source).read(backend, found.states, now))
        result = await _survey_all(backend, found.states, duration, progress)
    reading = ClusterReading(
        cluster,
        found,
        result.surveys,
        result.contacts,
        configs=configs.result(),
        log_dirs=log_dirs.result(),
        failed_before=failed_before(cluster, found, log_dirs.result()),
        quorum=quorum.result().quorum,
        lost=quorum.result().lost,
        earlier=quorum.result().earlier,
        offline_times=times.result(),
        began=now,
    )
    refuse_copy_of_another(reading, copy)
    log, journal = source.or_copy(copy), open_disks(cluster.cluster_id)
    reading = await with_unread_disks(reading, log, journal, _min_isr_of(result.surveys))
    return await _with_steps(backend, await with_evidence(backend, reading, disks), source, copy)


class SeveralProgress:
    """The progress of several surveys at once, as that of one."""

    def __init__(self, progress: Progress | None, surveys: int) -> None:
        self._progress = progress
        self._counts = [(0, 0)] * surveys

    def part(self, number: int) -> Progress | None:
        """What that survey tells."""
        return None if self._progress is None else partial(self._tell, number)

    def _tell(self, number: int, what: str, done: int, total: int) -> None:
        self._counts[number] = done, total
        if self._progress is not None:
            self._progress(what, sum(one for one, _ in self._counts), sum(one for _, one in self._counts))


async def _survey_all(
    backend: Backend, states: Sequence[PartitionState], duration: float, progress: Progress | None
) -> SurveyResult:
    """Every replica's log: of partitions without a leader down to where the logs part, of all others its end.

    The result is in the order of ``states``. A broker that failed to answer once has that as its problem.
    """
    requests = []
    for offline, depth in ((True, Depth.DIVERGENCE), (False, Depth.LAST)):
        wanted = tuple([state for state in states if (state.leader == NO_LEADER) is offline])
        if wanted:
            requests.append(SurveyRequest(wanted, duration, depth, picture_wait=PICTURE_WAIT))
    several = SeveralProgress(progress, len(requests))
    results = await asyncio.gather(
        *(backend.survey(request, several.part(number)) for number, request in enumerate(requests))
    )
    surveys: Sequence[Survey] = results[0].surveys if results else ()
    if len(results) > 1:
        surveys = MergedSurveys(states, *(columns_of(result.surveys) for result in results))
    return SurveyResult(surveys, worst_contacts(contact for result in results for contact in result.contacts))


def _min_isr_of(surveys: Sequence[Survey]) -> Callable[[PartitionState], int | Unknown]:
    """By the surveys, of partitions with replicas that are away."""
    columns = columns_of(surveys)
    known = {state.tp: one for state, one in zip(columns.states, columns.min_isr, strict=True) if away(state)}
    return lambda state: known[state.tp]


async def with_unread_disks(
    reading: ClusterReading,
    log: tuple[MetadataHistory | Unknown, bool],
    journal: OpenDisks,
    min_isr: Callable[[PartitionState], int | Unknown],
) -> ClusterReading:
    """With the disks that may hold what a leader lacks, and with what became of those that an election left unread:
    by the metadata log (:meth:`MetadataLogSource.or_copy`), and by what was read here as the journal tells.
    """
    history, copied = log
    known = None if isinstance(history, Unknown) else history
    reported = await disks_to_read(reading.led_without, min_isr, history, copied=copied)
    return reading.with_parts(
        unread=without_read(reported, journal.read),
        disks=states_of(journal.disks, reading.cluster, reading.partitions.states, known),
    )


async def _with_steps(
    backend: Backend, reading: ClusterReading, source: MetadataLogSource, copy: CopiedMetadataLog | None
) -> ClusterReading:
    """With what to do first for the partitions that are offline, and for disks that are to be read before their
    brokers start. Raises BackendError.
    """
    offline = leaderless(reading.surveys)
    elr, dirs, before = reading.cluster.elr_enabled, reading.log_dirs, reading.failed_before
    reported = await judged(
        backend, elr, offline, dirs, before, source=source, copy=copy, configs=reading.configs
    )
    advised = ((one.tp, advise(one, Ranking.LAST_RECORD, reported.verdicts.get(one.tp))) for one in offline)
    steps = first_steps(
        [
            *read_first(reading.unread, before_start(reading.disks), brokers_up(reading.cluster)),
            *stop_and_read(troubled(reading.surveys)),
            *((tp, advice) for tp, advice in advised if advice is not None),
        ]
    )
    return replace(reading, verdicts=reported.verdicts, steps=steps, copied_log=reported.copy_use)


def refuse_copy_of_another(reading: ClusterReading, copy: CopiedMetadataLog | None) -> None:
    """Raises InputError if the copy is known to be of another cluster."""
    if copy is None:
        return
    ids = {state.topic: state.topic_id for state in reading.partitions.states}
    problem = other_cluster(copy, reading.cluster.cluster_id, ids.items())
    if problem is not None:
        raise InputError(f"--metadata-dir {problem}")


async def read_selected(
    backend: Backend,
    cluster: ClusterInfo,
    selection: Selection,
    depths: Depths,
    progress: Progress | None = None,
    *,
    health: bool = False,
) -> ClusterReading:
    """Finds the partitions and surveys them, on an open backend; with ``health``, all other partitions, the quorum
    and all disks too.

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
    reading = ClusterReading(
        cluster,
        selected.found,
        await with_batches_read(backend, result.surveys, progress),
        result.contacts,
        selection,
        selected,
        configs_asked.result(),
    )
    if not (quorum_asked and dirs_asked and whole_asked):
        return reading
    (whole, more), dirs = whole_asked.result(), dirs_asked.result()
    return replace(
        reading,
        partitions=whole,
        configs={**reading.configs, **more},
        log_dirs=dirs,
        failed_before=failed_before(cluster, whole, dirs),
        quorum=quorum_asked.result().quorum,
        lost=quorum_asked.result().lost,
        earlier=quorum_asked.result().earlier,
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
        async with time_limit(backend, duration):
            return await backend.log_dirs()
    except TimeoutError:
        return {}


def may_be_under_min_isr(state: PartitionState, configs: Configs) -> bool:
    """Fewer in-sync replicas than min.insync.replicas; if that is not known, fewer than there are replicas."""
    needed = min_isr_from_config(state, configs.get(state.topic, NO_CONFIG))
    return len(state.isr) < (len(state.replicas) if isinstance(needed, Unknown) else needed)


async def read_state(
    backend: Backend,
    cluster: ClusterInfo,
    contacts: tuple[Contact, ...] = (),
    *,
    reassignments: bool = False,
    min_isr: bool = False,
) -> ClusterReading:
    """Asks an open backend for the partitions, the quorum and all disks, and for no replica's log. With
    ``reassignments`` it asks for these too, with ``min_isr`` for the configuration of every topic with a replica
    out of sync. ``contacts`` say how each broker fared that was asked before. Raises BackendError.
    """
    async with tasks() as group:
        quorum_asked = group.create_task(quorum_or_lost(backend, cluster.cluster_id))
        dirs_asked = group.create_task(backend.log_dirs())
        moves_asked = group.create_task(backend.reassignments()) if reassignments else None
        found = await backend.partitions()
    quorum, dirs = quorum_asked.result(), dirs_asked.result()
    states = short_of_replicas(found.states) if min_isr else offline_of(found)
    return ClusterReading(
        cluster,
        found,
        contacts=contacts,
        configs=await backend.topic_configs(topics_of(states)),
        log_dirs=dirs,
        failed_before=failed_before(cluster, found, dirs),
        quorum=quorum.quorum,
        lost=quorum.lost,
        earlier=quorum.earlier,
        reassignments=moves_asked.result() if moves_asked else None,
    )


async def read_logs(
    backend: Backend, reading: ClusterReading, states: Sequence[PartitionState], duration: float
) -> ClusterReading:
    """The reading with the logs of these partitions, down to where they part, and with their topics'
    configurations. A broker that failed to answer now or before has that as its problem. Raises BackendError.
    """
    topics = topics_of(states)
    request = SurveyRequest(tuple(states), duration, Depth.DIVERGENCE, picture_wait=PICTURE_WAIT)
    async with tasks() as group:
        configs = group.create_task(backend.topic_configs(topics))
        result = await backend.survey(request)
    contacts = worst_contacts((*reading.contacts, *result.contacts))
    found = configs.result()
    no_answer: Configs = {topic: found.get(topic, NO_CONFIG) for topic in topics}
    return replace(reading, surveys=result.surveys, contacts=contacts, configs=no_answer)


async def with_verdicts(
    backend: Backend,
    reading: ClusterReading,
    copy: CopiedMetadataLog | None = None,
    *,
    now: float,
    source: MetadataLogSource | None = None,
) -> ClusterReading:
    """The reading in which every partition without a leader is judged, by ``copy`` where the active controller's
    metadata log cannot be read, with the time since when it is offline; ``now`` in seconds since 1970. Raises
    InputError for a copy of another cluster, and BackendError.
    """
    cluster = reading.cluster
    refuse_copy_of_another(reading, copy)
    source = source or MetadataLogSource()
    reported = await judged(
        backend,
        cluster.elr_enabled,
        reading.surveys,
        reading.log_dirs,
        reading.failed_before,
        copy=copy,
        source=source,
        configs=reading.configs,
    )
    offline = [survey.state for survey in reading.surveys if survey.state.offline]
    times = OfflineTimesReader(source).times_from_history(backend, reported.history, offline, now)
    unread = await _awaited_disks(backend, reading, reported)
    return replace(
        reading, verdicts=reported.verdicts, copied_log=reported.copy_use, offline_times=times, unread=unread
    )


async def _awaited_disks(
    backend: Backend, reading: ClusterReading, reported: JudgedPartitions
) -> DisksToRead:
    """Of other partitions, which have a leader, on brokers that the offline ones may wait for: before such a broker
    is started for their sake. Nothing where no surveyed partition is offline.
    """
    awaited = {replica.broker for s in reading.surveys if s.state.offline for replica in s.replicas}
    states = [state for state in reading.led_without if not awaited.isdisjoint(away(state))]
    if not states or not reported.verdicts:
        return DisksToRead()
    known = replace(reading, configs=await backend.topic_configs(topics_of(states)))
    return await disks_to_read(states, known.min_isr, reported.history, copied=reported.copied)


@asynccontextmanager
async def tasks() -> AsyncIterator[asyncio.TaskGroup]:
    """A task group that raises the first failure itself, not a group of them."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
