"""Elections that the active controller begins by itself: unclean elections, preferred leaders, and the Unclean
Recovery Manager of KIP-966, which asks the replicas for their logs and elects by the answers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from backends.simulator.config import Config
from backends.simulator.loop import Loop, Timer
from backends.simulator.messages import LogInfoReply, LogInfoRequest
from backends.simulator.network import broker as node
from backends.simulator.rpc import RpcEndpoint
from recovery.controller.broker_changes import elect_uncleanly_where_leaderless
from recovery.controller.cluster_image import ClusterImage, acceptable_leaders
from recovery.controller.elect_leaders import ElectionRequest, elect_leaders
from recovery.controller.registration import Registration
from recovery.controller.transition_targets import ElectionKind
from recovery.controller.unclean_recovery import LogInfo, RecoveryDecision, RecoveryStep, recover
from recovery.model import TopicPartition

if TYPE_CHECKING:
    from backends.simulator.controller.active_controller import ActiveController


class PeriodicElections:
    """The intervals start anew with each active controller, as in Kafka."""

    def __init__(self, metadata: ActiveController, loop: Loop, config: Config) -> None:
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


class _Ongoing:
    """The recovery of one partition: the answers of this leader epoch so far."""

    __slots__ = ("answers", "asked", "leader_epoch", "timed_out", "timer")

    def __init__(self, leader_epoch: int, timer: Timer) -> None:
        self.leader_epoch = leader_epoch
        self.answers: list[LogInfo] = []
        self.asked: dict[tuple[int, int], None] = {}
        self.timed_out = False
        self.timer = timer


class UncleanRecovery:
    """Active while ``unclean.recovery.manager.enabled``. ``finished`` counts recoveries of this active
    controller.
    """

    def __init__(self, metadata: ActiveController, loop: Loop, config: Config, endpoint: RpcEndpoint) -> None:
        self._metadata = metadata
        self._loop = loop
        self._config = config
        self._endpoint = endpoint
        self._ongoing: dict[TopicPartition, _Ongoing] = {}
        self.finished = 0
        if self._on:
            self.reconsider(metadata.image.leaderless())

    @property
    def _on(self) -> bool:
        return self._metadata.image.rules.recovery_manager

    def close(self) -> None:
        for ongoing in self._ongoing.values():
            ongoing.timer.cancel()
        self._ongoing.clear()

    def reconsider(self, partitions: Iterable[TopicPartition]) -> None:
        """Decide again about ``partitions``, because something about them changed."""
        if not self._on:
            return
        for tp in list(partitions):
            partition = self._metadata.image.partitions.get(tp)
            if partition is not None:
                self._decide(tp, partition)

    def reconsider_all(self) -> None:
        """A broker came or went: decide again about every partition without a leader."""
        if self._on:
            self.reconsider(self._metadata.image.leaderless())

    def _decide(self, tp: TopicPartition, partition: Registration) -> None:
        ongoing = self._ongoing.get(tp)
        if ongoing is not None and ongoing.leader_epoch != partition.leader_epoch:
            ongoing.timer.cancel()
            del self._ongoing[tp]
            ongoing = None
        if partition.has_leader:
            return
        image = self._metadata.image
        acceptable = acceptable_leaders(partition, image.brokers)
        epochs = {broker: registered.epoch for broker, registered in image.brokers.items()}
        step = recover(
            partition,
            acceptable,
            image.strategies.of(tp.topic),
            ongoing.answers if ongoing is not None else (),
            epochs,
            timed_out=ongoing is not None and ongoing.timed_out,
        )
        if step.step is RecoveryStep.ELECT:
            self._elect(tp, step)
        elif step.step is RecoveryStep.WAIT:
            self._ask(tp, partition, acceptable, epochs)

    def _elect(self, tp: TopicPartition, step: RecoveryDecision) -> None:
        # The write decides again about the partition; the recovery must have ended by then.
        ongoing = self._ongoing.pop(tp)
        ongoing.timer.cancel()
        self.finished += 1
        why = f"unclean recovery of {tp} elects {step.leader}: {step.reason}"
        outcome = elect_leaders(
            self._metadata.image, ElectionRequest(ElectionKind.DESIGNATED, {tp: step.leader})
        )
        if outcome.effect.changes:
            self._metadata.write(outcome.effect, why)

    def _ask(
        self, tp: TopicPartition, partition: Registration, acceptable: frozenset[int], epochs: dict[int, int]
    ) -> None:
        members = partition.isr or partition.elr
        strategy = self._metadata.image.strategies.of(tp.topic)
        waits_for_members = members and strategy.value != "Aggressive"
        last_known_missing = any(broker not in acceptable for broker in partition.last_known_elr)
        if waits_for_members or (strategy.value == "Balanced" and last_known_missing):
            return
        ongoing = self._ongoing.get(tp)
        if ongoing is None:
            timer = self._loop.call_later(self._config.unclean_recovery_timeout, self._time_out, tp)
            ongoing = self._ongoing[tp] = _Ongoing(partition.leader_epoch, timer)
        for replica in partition.replicas:
            incarnation = (replica, epochs.get(replica, -1))
            if replica in acceptable and incarnation not in ongoing.asked:
                ongoing.asked[incarnation] = None
                self._send(tp, replica, incarnation)

    def _send(self, tp: TopicPartition, replica: int, incarnation: tuple[int, int]) -> None:
        def answered(reply: Any) -> None:
            ongoing = self._ongoing.get(tp)
            if ongoing is None:
                return
            if not isinstance(reply, LogInfoReply) or not reply.infos:
                # No answer, or the broker does not host the replica yet: ask again later.
                ongoing.asked.pop(incarnation, None)
                self._loop.call_later(self._config.request_timeout, self._again, tp)
                return
            ongoing.answers.append(reply.infos[0])
            self.reconsider((tp,))

        timeout = self._config.request_timeout
        self._endpoint.ask(node(replica), LogInfoRequest((tp,)), timeout, answered)

    def _again(self, tp: TopicPartition) -> None:
        if tp in self._ongoing:
            self.reconsider((tp,))

    def _time_out(self, tp: TopicPartition) -> None:
        self._ongoing[tp].timed_out = True
        self.reconsider((tp,))
