"""What the replacement of a disk rests on: the log dirs now, what the disk held, and whether it is back."""

from __future__ import annotations

from backends.base.protocol import Backend
from console.errors import InputError
from console.reading.log_dir_survey import Disks, reckon, survey_log_dirs
from recovery.disks.disk_swap import DiskSwap, swap
from recovery.disks.failure_preview import check
from recovery.disks.values import DiskError, LogDirPlace
from recovery.model import TopicPartition


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
    partitions, unplaced = _on_dir(disks, where)
    if where not in disks.failed and not partitions and _dirs_known(disks, where):
        try:
            check(cluster, where)
        except DiskError as error:
            raise InputError(str(error)) from None
    return swap(cluster, where, partitions, unplaced)


def _on_dir(disks: Disks, where: LogDirPlace) -> tuple[set[TopicPartition], set[TopicPartition]]:
    """The replicas that belong to that dir, and those of the broker that may: nobody knows which dir they were on.

    What another dir lists now, or held when its broker last listed it, is not of this one, unless it came back
    there and is not in sync yet.
    """
    broker = where.broker
    now, before = disks.replica_dirs.get(broker, {}), disks.last_in_sync_dirs.get(broker, {})
    states = {state.tp: state for state in disks.partitions.states}
    moved_for_good = {
        tp
        for path, tps in now.items()
        if path != where.path
        for tp in tps
        if (state := states.get(tp)) is not None and broker in state.isr
    }
    here = (set(before.get(where.path, ())) - moved_for_good) | set(now.get(where.path, ()))
    placed = {tp for dirs in (now, before) for tps in dirs.values() for tp in tps}
    if where not in disks.failed:
        # A broker that lists nothing may have had any of its replicas there.
        unlisted = (s.tp for s in states.values() if broker in s.replicas and s.tp not in placed)
        return here, set(unlisted) if broker in disks.dirs_not_listed else set()
    rest = {s.tp for s in states.values() if broker in s.offline_replicas and s.tp not in placed}
    registered = disks.brokers.get(broker)
    others = {one.path for one in disks.listed if one.broker == broker} | before.keys()
    down = registered is None or registered.fenced
    failed = [one for one in disks.failed if one.broker == broker]
    if len(failed) == 1 and (not down or others == {where.path}):
        return here | rest, set()
    return here, rest


def _dirs_known(disks: Disks, where: LogDirPlace) -> bool:
    """Whether the dirs of that broker are known: it listed them, or no broker with that id is known."""
    hosts = any(where.broker in state.replicas for state in disks.partitions.states)
    return where.broker in disks.replica_dirs or not (where.broker in disks.log_dirs or hosts)
