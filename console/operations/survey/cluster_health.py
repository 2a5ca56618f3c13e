"""The health of a whole cluster, from what a command or the console has read of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from backends.base.answers import ClusterInfo, Contact, LogDir, Partitions
from backends.base.failed_disks import LogDirs, brokers_not_listed
from backends.base.protocol import Backend
from console.operations.survey.log_dir_survey import failed_before
from console.operations.voters.remembered_voters import quorum_or_lost
from recovery.acknowledged.disks_to_read import DisksToRead
from recovery.cluster_health import (
    ClusterHealth,
    cut_off,
    quorum_finding,
    self_electing,
    short_of_replicas,
    troubled_brokers,
)
from recovery.membership.quorum import Quorum
from recovery.membership.quorum_without_leader import QuorumWithoutLeader
from recovery.model import PartitionState, Unknown

Configs = Mapping[str, Mapping[str, str] | Unknown]


class HealthSources(NamedTuple):
    """``quorum`` None: it was not asked. ``partitions`` are all of the cluster, ``configs`` those of topics with an
    offline partition. ``under_min_isr`` None: not known. ``unread``: disks that may hold what a leader lacks.
    ``to_read``: brokers whose disks are to be read before they start, by the journal. ``failed_before``: log dirs
    that had failed, of brokers that list none now.
    """

    cluster: ClusterInfo
    partitions: Partitions
    problems: Mapping[int, Unknown | None]
    log_dirs: LogDirs
    quorum: Quorum | QuorumWithoutLeader | Unknown | None
    configs: Configs
    under_min_isr: int | None = None
    unread: DisksToRead = DisksToRead()
    to_read: tuple[int, ...] = ()
    failed_before: tuple[LogDir, ...] = ()


def cluster_health(reported: HealthSources) -> ClusterHealth:
    """What is wrong with the cluster as a whole."""
    found = reported.partitions
    offline = offline_of(found)
    brokers = troubled_brokers(
        reported.cluster.brokers, reported.problems, reported.log_dirs, short_of_replicas(found.states)
    )
    return ClusterHealth(
        quorum=quorum_finding(reported.quorum),
        brokers_down=brokers.down,
        brokers_fenced=brokers.fenced,
        brokers_unreached=brokers.unreached,
        failed_dirs=len(failed_dirs(reported.log_dirs)) + len(reported.failed_before),
        offline=len(offline),
        under_min_isr=reported.under_min_isr,
        self_electing=self_electing(offline, reported.configs),
        unreachable_leaders=len(found.unreachable_leaders),
        unseen=bool(found.hidden) or found.not_compared is not None,
        cut_off=cut_off(reported.quorum, found.asked),
        disks_to_read=tuple(sorted({*reported.unread.brokers, *reported.to_read})),
        dirs_not_listed=brokers_not_listed(reported.log_dirs, found.states),
    )


async def read_health(
    backend: Backend, cluster: ClusterInfo, problems: Mapping[int, Unknown | None]
) -> ClusterHealth:
    """Asks an open backend for what :func:`cluster_health` needs, and for no replica's log.

    ``problems`` says why each broker that was asked before did not answer. Raises BackendError.
    """
    quorum, dirs, found = await asyncio.gather(
        quorum_or_lost(backend, cluster.cluster_id), backend.log_dirs(), backend.partitions()
    )
    configs = await backend.topic_configs(topics_of(offline_of(found)))
    before = failed_before(cluster, found, dirs)
    return cluster_health(
        HealthSources(cluster, found, problems, dirs, quorum.answer, configs, failed_before=before)
    )


def problems_of(contacts: tuple[Contact, ...]) -> Mapping[int, Unknown | None]:
    """Why each broker that was asked did not answer; None: it did."""
    return {contact.broker: contact.problem for contact in contacts}


def offline_of(partitions: Partitions) -> tuple[PartitionState, ...]:
    """The partitions without a leader."""
    return tuple(state for state in partitions.states if state.offline)


def failed_dirs(dirs: LogDirs) -> tuple[LogDir, ...]:
    """The log dirs that are offline."""
    return tuple(
        one for found in dirs.values() if not isinstance(found, Unknown) for one in found if one.error
    )


def topics_of(states: Iterable[PartitionState]) -> tuple[str, ...]:
    """Their topics, each once."""
    return tuple(dict.fromkeys(state.topic for state in states))
