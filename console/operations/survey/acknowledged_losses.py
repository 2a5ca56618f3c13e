"""A picture with what each choice of leader loses of the acknowledged records, and since when that is so."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from backends.base.disks_to_read import disks_to_read
from backends.base.judged_partitions import JudgedPartitions, judged
from backends.base.metadata_log import MetadataLogSource
from backends.base.protocol import Backend
from backends.metadata_log.copied_log import CopiedMetadataLog, other_cluster, read_copy
from backends.metadata_log.directory import MetadataDirError
from console.errors import InputError
from console.operations.survey.cluster_health import topics_of
from console.operations.survey.offline_times import OfflineTimesReader
from console.operations.survey.partition_picture import Picture
from recovery.acknowledged.disks_to_read import DisksToRead, away
from recovery.controller.rules import min_isr_from_config
from recovery.model import Unknown, Why


def read_metadata_dir(path: Path | None) -> CopiedMetadataLog | None:
    """The metadata log in that directory; None: none was named. Raises InputError."""
    if path is None:
        return None
    try:
        return read_copy(path, int(time.time() * 1000))
    except MetadataDirError as error:
        raise InputError(f"--metadata-dir {error}") from None


def refuse_other_cluster(copy: CopiedMetadataLog, cluster_id: str, topics: Iterable[tuple[str, str]]) -> None:
    """Raises InputError if the copy is known to be of another cluster; ``topics`` are (name, id)."""
    problem = other_cluster(copy, cluster_id, topics)
    if problem is not None:
        raise InputError(f"--metadata-dir {problem}")


async def with_verdicts(
    backend: Backend,
    picture: Picture,
    copy: CopiedMetadataLog | None = None,
    *,
    now: float,
    source: MetadataLogSource | None = None,
) -> Picture:
    """The picture in which every partition without a leader is judged, by ``copy`` where the active controller's
    metadata log cannot be read, with the time since when it is offline; ``now`` in seconds since 1970. Raises
    InputError for a copy of another cluster, and BackendError.
    """
    cluster = picture.cluster
    if copy is not None:
        ids = {survey.state.topic: survey.state.topic_id for survey in picture.surveys}
        refuse_other_cluster(copy, cluster.cluster_id, ids.items())
    source = source or MetadataLogSource()
    reported = await judged(
        backend,
        cluster.elr_enabled,
        picture.surveys,
        picture.log_dirs,
        picture.failed_before,
        copy=copy,
        source=source,
    )
    offline = [survey.state for survey in picture.surveys if survey.state.offline]
    times = OfflineTimesReader(source).times_from_history(backend, reported.history, offline, now)
    unread = await _disks_to_read(backend, picture, reported)
    return replace(
        picture, verdicts=reported.verdicts, copied_log=reported.copied, offline_times=times, unread=unread
    )


async def _disks_to_read(backend: Backend, picture: Picture, reported: JudgedPartitions) -> DisksToRead:
    """Of other partitions, which have a leader, on brokers that the offline ones may wait for: before such a broker
    is started for their sake. Nothing where no partition of the picture is offline.
    """
    awaited = {replica.broker for s in picture.surveys if s.state.offline for replica in s.replicas}
    states = [state for state in picture.led_without if not awaited.isdisjoint(away(state))]
    if not states or not reported.verdicts:
        return DisksToRead()
    configs = await backend.topic_configs(topics_of(states))
    missing = Unknown(Why.NOT_ANSWERED, "the topic's configuration")
    copied = reported.copied is not None and reported.copied.live is not None
    return await disks_to_read(
        states,
        lambda state: min_isr_from_config(state, configs.get(state.topic, missing)),
        reported.history,
        copied=copied,
    )
