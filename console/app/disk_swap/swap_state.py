"""One reading of a disk that is being replaced: its steps, and how far they are."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from backends.base.protocol import Backend
from console.operations.disk_swap import disk_swap, is_back, read_log_dirs
from console.operations.survey.leaderless_partitions import leaderless_lines
from console.operations.survey.log_dir_survey import Disks
from recovery.disks.disk_swap import DiskSwap, SwapSituation, already_swapped, leaderless, waiting
from recovery.disks.values import LogDirPlace
from recovery.model import Unknown


class SwapPicture(NamedTuple):
    """``found`` has the steps, ``now`` how far they are. ``stuck`` says what to do for partitions that nobody
    leads, one line each. ``target`` are the options that name the cluster.
    """

    found: DiskSwap
    now: SwapSituation
    stuck: tuple[str, ...]
    cluster_id: str
    target: tuple[str, ...]


async def read_swap(
    backend: Backend, place: LogDirPlace, before: SwapPicture | None, target: tuple[str, ...]
) -> SwapPicture:
    """Reads the cluster; what ``before`` saw stays seen. Raises BackendError and InputError."""
    disks = await read_log_dirs(backend, again=True)
    found = await disk_swap(backend, disks, place)
    replicas = found.replicas if before is None else tuple(sorted({*before.found.replicas, *found.replicas}))
    unplaced = found.unplaced if before is None else tuple({*before.found.unplaced, *found.unplaced})
    found = replace(found, replicas=replicas, unplaced=tuple(sorted(set(unplaced).difference(replicas))))
    replicas = found.awaited
    left = waiting(disks.partitions.states, place, replicas)
    running = _runs(disks, place.broker)
    back = running and is_back(disks, place)
    stopped = not running or already_swapped(len(left), place in disks.failed, back)
    nobody_leads = leaderless(left)
    now = SwapSituation(
        dangers=sum(1 for danger in found.dangers if danger.others),
        stopped=stopped or (before is not None and before.now.stopped),
        back=back,
        left=len(left),
        replicas=len(replicas),
        leaderless=len(nobody_leads),
        said=frozenset() if before is None else before.now.said,
        unreadable=before is not None and before.now.unreadable,
    )
    led_empty = [danger.tp for danger in found.dangers]
    stuck = tuple(leaderless_lines(nobody_leads, place, led_empty)) if now.swapped else ()
    return SwapPicture(found, now, stuck, disks.cluster.cluster_id, target)


def _runs(disks: Disks, broker: int) -> bool:
    """Whether the broker is registered, unfenced, and answers."""
    registered = next((one for one in disks.cluster.brokers if one.id == broker), None)
    answers = not isinstance(disks.dirs.get(broker), Unknown | None)
    return registered is not None and not registered.fenced and answers
