"""Leaders that have not heard that they were replaced.

A broker that is cut off from the controllers is fenced, and another leader may be elected. It goes on leading by
its own state (Kafka's ``Partition.isLeader``), and acknowledges what the ISR that it knows has taken, to every
client that reaches it (tried on 4.3.1). When it hears of its successor it truncates its log to the successor's: all
that it took meanwhile is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from recovery.model import ReplicaLog, Standing, Survey, Unknown


class OldLeader(NamedTuple):
    """``broker`` still acts as leader in ``epoch``, which is older than the partition's."""

    broker: int
    epoch: int


def old_leaders(survey: Survey) -> tuple[OldLeader, ...]:
    """Those that answered so, in assignment order."""
    return tuple(OldLeader(broker, log.leader_epoch) for broker, log in _behind(survey) if log.leads)


def growing_logs(survey: Survey) -> tuple[int, ...]:
    """The brokers whose logs may grow although the controller knows no such leader: old leaders, and those that may
    follow one of them, or one that does not answer.
    """
    return tuple(broker for broker, log in _behind(survey) if log.leads or _may_follow(survey, broker, log))


def may_acknowledge(survey: Survey, brokers: tuple[int, ...]) -> bool:
    """Whether those of ``brokers`` that may still write can acknowledge a record to an acks=all producer: an old
    leader needs as many members of its own ISR as min ISR.

    A replica that knows a newer epoch does not follow it any more. One that does not answer may.
    """
    silent = sum(isinstance(replica.log, Unknown) for replica in survey.replicas)
    least = 1 if isinstance(survey.min_isr, Unknown) else survey.min_isr
    epochs = {log.leader_epoch for broker, log in _behind(survey) if broker in brokers}
    return any(
        silent + sum(log.leader_epoch == epoch for _, log in _behind(survey)) >= least for epoch in epochs
    )


def _behind(survey: Survey) -> Iterator[tuple[int, ReplicaLog]]:
    """The replicas whose own brokers know an older leader epoch than the controller."""
    newest = survey.state.leader_epoch
    for replica in survey.replicas:
        log = replica.log
        if replica.disk_read_ms is None and isinstance(log, ReplicaLog) and 0 <= log.leader_epoch < newest:
            yield replica.broker, log


def _may_follow(survey: Survey, broker: int, log: ReplicaLog) -> bool:
    """A broker that the controller hears does not count: it hears of the newer epoch too."""
    replica = survey.replica(broker)
    if replica is None or replica.standing is Standing.ELECTABLE:
        return False
    return any(
        isinstance(other.log, Unknown) or (other.log.leads and other.log.leader_epoch == log.leader_epoch)
        for other in survey.replicas
        if other.broker != broker
    )
