"""What the replacement of a disk rests on: the log dirs now, what the disk held, and whether it is back."""

from __future__ import annotations

from backends.base.protocol import Backend
from console.errors import InputError
from console.operations.survey.log_dir_survey import Disks, reckon, survey_log_dirs
from recovery.disks.disk_swap import DiskSwap, swap
from recovery.disks.failure_preview import check
from recovery.disks.values import DiskError, LogDirPlace


async def read_log_dirs(backend: Backend, *, again: bool = False) -> Disks:
    """All dirs; their replicas are saved, because a dir that fails can no longer list them. Raises
    BackendError.

    ``again``: the backend is already open.
    """
    cluster = await (backend.cluster() if again else backend.open())
    return await survey_log_dirs(backend, cluster)


def is_back(disks: Disks, where: LogDirPlace) -> bool:
    """Whether the dir is online again."""
    return where.path in disks.replica_dirs.get(where.broker, {})


async def disk_swap(backend: Backend, disks: Disks, where: LogDirPlace) -> DiskSwap:
    """The steps, and what an empty disk could be elected to lead. Raises BackendError, and InputError for a dir
    that does not exist.
    """
    cluster = await reckon(backend, disks)
    partitions = set(disks.last_in_sync_dirs.get(where.broker, {}).get(where.path, frozenset()))
    partitions |= set(disks.replica_dirs.get(where.broker, {}).get(where.path, frozenset()))
    if where in disks.failed:
        states = disks.partitions.states
        healthy = {tp for tps in disks.replica_dirs.get(where.broker, {}).values() for tp in tps}
        partitions |= {s.tp for s in states if where.broker in s.offline_replicas and s.tp not in healthy}
    elif not partitions and _dirs_known(disks, where):
        try:
            check(cluster, where)
        except DiskError as error:
            raise InputError(str(error)) from None
    return swap(cluster, where, partitions)


def _dirs_known(disks: Disks, where: LogDirPlace) -> bool:
    """Whether the dirs of that broker are known: it listed them, or no broker with that id is known."""
    hosts = any(where.broker in state.replicas for state in disks.partitions.states)
    return where.broker in disks.replica_dirs or not (where.broker in disks.dirs or hosts)
