"""One replica as its broker knows it, with the checks that Kafka makes before it answers."""

from __future__ import annotations

from typing import NamedTuple

from kio.schema.errors import ErrorCode

from backends.simulator.broker.broker_access import BrokerAccess
from backends.simulator.broker.replica_log import Log
from recovery.controller.registration import Registration
from recovery.model import EpochSpan, TopicPartition

NO_EPOCH = -1


class HostedReplica(NamedTuple):
    """``leads``: this broker leads the partition, by its own metadata."""

    log: Log
    partition: Registration
    leads: bool

    @property
    def epochs(self) -> tuple[EpochSpan, ...]:
        """The entries of the leader epoch file. A leader that has written nothing has an entry of its own
        epoch.
        """
        spans = self.log.spans
        own = self.partition.leader_epoch
        if self.leads and own > self.log.last_epoch:
            return (*spans, EpochSpan(own, self.log.end, self.log.end))
        return spans


def find(broker: BrokerAccess, tp: TopicPartition) -> HostedReplica | ErrorCode:
    """The replica of ``tp`` on this broker. Does not take a broken log dir offline."""
    partition = broker.state.image.partitions.get(tp)
    if partition is None:
        return ErrorCode.unknown_topic_or_partition
    if broker.state.id not in partition.replicas:
        return ErrorCode.not_leader_or_follower
    storage = broker.storage
    if tp not in storage.disk.logs:
        return ErrorCode.kafka_storage_error if storage.failed else ErrorCode.not_leader_or_follower
    if storage.offline(tp) or not storage.disk.works(tp):
        return ErrorCode.kafka_storage_error
    return HostedReplica(storage.log(tp), partition, partition.leader == broker.state.id)


def current(replica: HostedReplica, leader_epoch: int) -> ErrorCode:
    """KIP-320's check of the leader epoch; -1 is not compared."""
    known = replica.partition.leader_epoch
    if leader_epoch in (NO_EPOCH, known):
        return ErrorCode.none
    return ErrorCode.fenced_leader_epoch if leader_epoch < known else ErrorCode.unknown_leader_epoch


def end_of(replica: HostedReplica, epoch: int) -> tuple[int, int]:
    """The largest epoch of the log up to ``epoch``, and its end; (-1, -1) if there is none.

    As LeaderEpochFileCache: below the first epoch of the log the answer is ``epoch`` itself and the start of
    that first one.
    """
    entries = replica.epochs
    if not entries or epoch < 0 or epoch > entries[-1].epoch:
        return NO_EPOCH, -1
    if epoch == entries[-1].epoch:
        return epoch, replica.log.end
    above = next(entry for entry in entries if entry.epoch > epoch)
    below = [entry for entry in entries if entry.epoch <= epoch]
    return (below[-1].epoch if below else epoch), above.start
