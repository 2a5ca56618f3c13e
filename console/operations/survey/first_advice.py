"""What to do first for the partitions that are offline."""

from __future__ import annotations

from collections.abc import Sequence

from backends.base.answers import ClusterInfo, LogDir
from backends.base.failed_disks import LogDirs
from backends.base.judged_partitions import judged
from backends.base.metadata_log import MetadataLogSource
from backends.base.protocol import Backend
from recovery.acknowledged.disks_to_read import DisksToRead
from recovery.advice import FirstStep, advise, first_steps, read_first, stop_and_read
from recovery.model import Survey
from recovery.ranking import Ranking
from recovery.survey_columns import leaderless, troubled
from recovery.unread_disks import UnreadDisk


async def first_advice(
    backend: Backend,
    cluster: ClusterInfo,
    surveys: Sequence[Survey],
    log_dirs: LogDirs,
    failed_before: Sequence[LogDir],
    *,
    source: MetadataLogSource,
    unread: DisksToRead,
    recorded: Sequence[UnreadDisk] = (),
) -> tuple[FirstStep, ...]:
    """For those of ``surveys`` that are offline, read down to where their logs part, and for disks that are to be
    read before their brokers start: ``unread`` by the metadata log, ``recorded`` by the journal. Raises
    BackendError.
    """
    offline = leaderless(surveys)
    found = await judged(backend, cluster.elr_enabled, offline, log_dirs, failed_before, source=source)
    advised = ((one.tp, advise(one, Ranking.LAST_RECORD, found.verdicts.get(one.tp))) for one in offline)
    found_advice = [(tp, advice) for tp, advice in advised if advice is not None]
    return first_steps([*read_first(unread, recorded), *stop_and_read(troubled(surveys)), *found_advice])
