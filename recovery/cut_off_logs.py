"""What a partition lost while it was looked at: it had no leader, its logs were read, and then another log led."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from recovery.loss import count, loss
from recovery.model import Lineage, Replica, Survey, TopicPartition, Unknown


class CutOffLogs(NamedTuple):
    """``offsets``: how many, at least, ``holders`` held while nobody led in leader epoch ``epoch``, and the log of
    ``leader`` does not hold. A holder that follows has truncated its log, or is about to; one that is down still
    holds them.
    """

    tp: TopicPartition
    epoch: int
    leader: int
    offsets: int
    holders: tuple[int, ...]


def remembered(before: Survey | None, now: Survey) -> Survey:
    """``now`` of a partition without a leader, with the logs that were read ``before`` of replicas that do not
    answer any more: without a leader they cannot have grown.
    """
    if before is None or before is now or before.state.topic_id != now.state.topic_id:
        return now
    if before.state.leader_epoch != now.state.leader_epoch:
        return now
    replicas = tuple(
        replica
        if (old := before.log(replica.broker)) is None
        else replica._replace(log=old)
        if isinstance(replica.log, Unknown)
        else replica
        for replica in now.replicas
    )
    return now if replicas == now.replicas else now._replace(replicas=replicas)


def tells_what_was_cut_off(now: Survey) -> bool:
    """Whether the partition has a leader and its log is known."""
    log = None if now.state.offline else now.log(now.state.leader)
    return log is not None and isinstance(log.lineage, Lineage)


def cut_off_logs(before: Survey, now: Survey) -> CutOffLogs | None:
    """What the leader of ``now`` lacks of the logs of ``before``; None: nothing, as far as both tell. Only where
    :func:`tells_what_was_cut_off`. A disk that was read is not cut off, and what lies before the leader's log start
    may have been deleted.
    """
    leader = now.state.leader
    elected = next(replica for replica in now.replicas if replica.broker == leader)
    logs = [elected, *_logs_then(before, leader)]
    whole = before._replace(replicas=tuple(logs), compacted=None)
    offsets = count(loss(whole, leader).tail)
    if not offsets or before.state.topic_id != now.state.topic_id:
        return None
    holders = (
        one.broker if one.broker >= 0 else leader
        for one in logs[1:]
        if loss(whole._replace(replicas=(elected, one)), leader).tail
    )
    return CutOffLogs(now.state.tp, before.state.leader_epoch, leader, offsets, tuple(sorted(holders)))


_ITSELF = -2
"""In place of the leader's id, for its own log as it was."""


def _logs_then(before: Survey, leader: int) -> Iterator[Replica]:
    for replica in before.replicas:
        if replica.disk_read_ms is None and not isinstance(replica.log, Unknown):
            yield replica._replace(broker=_ITSELF) if replica.broker == leader else replica
