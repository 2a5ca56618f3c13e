"""Periodic work of the active controller: unclean elections, and preferred leader elections."""

from __future__ import annotations

from backends.simulator.config import Config
from backends.simulator.controller.metadata_writer import MetadataWriter
from backends.simulator.loop import Loop
from recovery.controller.broker_changes import elect_uncleanly_where_leaderless
from recovery.controller.cluster_image import ClusterImage
from recovery.controller.elect_leaders import ElectionRequest, elect_leaders
from recovery.controller.transition_targets import ElectionKind


class PeriodicElections:
    """The intervals start anew with each active controller, as in Kafka."""

    def __init__(self, metadata: MetadataWriter, loop: Loop, config: Config) -> None:
        self._metadata = metadata
        self._loop = loop
        self._config = config
        self._timers = [loop.call_later(self._config.unclean_election_interval, self._unclean)]
        if self._config.auto_leader_rebalance:
            self._timers.append(loop.call_later(self._config.leader_rebalance_interval, self._rebalance))

    def close(self) -> None:
        for timer in self._timers:
            timer.cancel()

    def _unclean(self) -> None:
        metadata = self._metadata
        effect = elect_uncleanly_where_leaderless(metadata.image, self._config.unclean_election_limit)
        if effect.changes:
            metadata.write(effect, "periodic unclean election")
        self._timers[0] = self._loop.call_later(self._config.unclean_election_interval, self._unclean)

    def _rebalance(self) -> None:
        metadata = self._metadata
        if imbalanced(metadata.image, self._config.leader_imbalance_percentage):
            effect = elect_leaders(metadata.image, ElectionRequest(ElectionKind.PREFERRED)).effect
            if effect.changes:
                metadata.write(effect, "preferred leaders back in place")
        self._timers[1] = self._loop.call_later(self._config.leader_rebalance_interval, self._rebalance)


def imbalanced(image: ClusterImage, percentage: int) -> bool:
    """Whether a broker leads too few of the partitions that prefer it (leader.imbalance.per.broker.percentage)."""
    preferred: dict[int, int] = {}
    elsewhere: dict[int, int] = {}
    for partition in image.partitions.values():
        first = partition.replicas[0]
        preferred[first] = preferred.get(first, 0) + 1
        if partition.has_leader and partition.leader != first:
            elsewhere[first] = elsewhere.get(first, 0) + 1
    return any(100 * count > percentage * preferred[broker] for broker, count in elsewhere.items())
