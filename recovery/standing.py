"""Whether the controller would elect a replica, as far as clients can see."""

from __future__ import annotations

from collections.abc import Mapping

from recovery.model import Broker, PartitionState, Replica, Standing


def standing(state: PartitionState, broker: int, brokers: Mapping[int, Broker]) -> Standing:
    """Whether the controller would take ``broker`` as leader of the partition.

    Unfenced is not enough: the replica's log dir must be online, which ``offline_replicas`` tells, and the broker
    must not be in controlled shutdown, which no request tells (the metadata log does). During a rolling restart a
    replica that is electable here may therefore be passed over: Kafka elects the next in the order, and that leader
    is reported. A broker that is not listed is not registered where the cluster lists fenced brokers too
    (DescribeCluster v2), and may be either where it does not.
    """
    listed = brokers.get(broker)
    if listed is None:
        tells_fenced = any(other.fenced is not None for other in brokers.values())
        return Standing.UNREGISTERED if tells_fenced else Standing.FENCED
    if listed.fenced:
        return Standing.FENCED
    if broker in state.offline_replicas:
        return Standing.OFFLINE_REPLICA
    return Standing.ELECTABLE


def standing_later(replica: Replica, was_offline: bool, is_offline: bool) -> Standing:
    """The standing after a later reading of the partition state alone, whose ``offline_replicas`` show fenced
    brokers too.

    ``was_offline`` and ``is_offline``: whether the replica was among them before, and is now.
    """
    if was_offline == is_offline or replica.standing is Standing.UNREGISTERED:
        return replica.standing
    return Standing.OFFLINE_REPLICA if is_offline else Standing.ELECTABLE
