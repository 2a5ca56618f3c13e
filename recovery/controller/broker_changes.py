"""What happens to the partitions when a broker is fenced, unfenced, registered, shut down or loses a directory."""

from __future__ import annotations

from collections.abc import Iterable

from recovery.controller.cluster_image import (
    BrokerRegistration,
    ClusterImage,
    Effect,
    acceptable_leaders,
    apply,
    with_broker,
)
from recovery.controller.registration import PartitionChange
from recovery.controller.rules import ControllerRules
from recovery.controller.transition import transition
from recovery.controller.transition_targets import ElectionKind, Proposal, without
from recovery.model import TopicPartition

UNKNOWN_BROKER_EPOCH = -1


def fence(image: ClusterImage, broker: int) -> Effect:
    """``broker`` is fenced and leaves every ISR. Kafka fences one stale broker at a time, each with its effects
    visible to the next.

    Raises KeyError for a broker that is not registered, as all functions here do.
    """
    effect = _leave_isr(image, broker)
    fenced = image.brokers[broker]._replace(fenced=True)
    return Effect(with_broker(effect.image, broker, fenced), effect.changes)


def unfence(image: ClusterImage, broker: int) -> Effect:
    """``broker`` may lead again: each partition without a leader is checked for an election (KIP-966,
    "Controller behaviors").
    """
    image = with_broker(image, broker, image.brokers[broker]._replace(fenced=False))
    return apply(image, _decide(image, image.leaderless()))


def begin_controlled_shutdown(image: ClusterImage, broker: int) -> Effect:
    """``broker`` asked to shut down: it leaves every ISR, and other brokers take over its partitions. When it
    has stopped, it is fenced.
    """
    effect = _leave_isr(image, broker)
    leaving = image.brokers[broker]._replace(in_controlled_shutdown=True)
    return Effect(with_broker(effect.image, broker, leaving), effect.changes)


def register(
    image: ClusterImage,
    broker: int,
    new_epoch: int,
    previous_epoch: int = UNKNOWN_BROKER_EPOCH,
    directories: tuple[str, ...] = (),
    *,
    incarnation: int | None = None,
) -> Effect:
    """A new incarnation of ``broker`` registers, fenced. An incarnation that is registered already, and sends
    the request again because it got no answer, keeps its epoch; its clean shutdown file is then ignored.

    ``previous_epoch`` is the broker epoch that its clean shutdown file holds. It was a clean shutdown where that is
    the epoch the controller knows; otherwise the broker leaves every ISR and ELR (KIP-966, "Detection of an
    unclean shutdown"). Without the ELR feature either is treated as fencing.
    """
    known = image.brokers.get(broker)
    if known is not None and incarnation is not None and known.incarnation == incarnation:
        again = known._replace(fenced=True, in_controlled_shutdown=False, directories=directories)
        return Effect(with_broker(image, broker, again), {})
    clean = known is not None and known.epoch == previous_epoch
    leave = _leave_isr if clean or not image.rules.elr else unclean_shutdown
    effect = leave(image, broker)
    registered = BrokerRegistration(new_epoch, fenced=True, directories=directories, incarnation=incarnation)
    return Effect(with_broker(effect.image, broker, registered), effect.changes)


def unclean_shutdown(image: ClusterImage, broker: int) -> Effect:
    """``broker`` was found to have shut down uncleanly: it leaves every ISR and ELR, and cannot lead."""
    touched = dict.fromkeys((*image.with_isr_member(broker), *image.with_elr_member(broker)))
    return apply(image, _decide(image, touched, removed=broker, unclean=frozenset((broker,))))


def directories_offline(image: ClusterImage, broker: int, directories: Iterable[str]) -> Effect:
    """Log directories of ``broker`` failed: for the replicas in them it counts as shut down, so they leave the ISR
    and the leader is chosen anew (KIP-112, KIP-858). Ids that are not the broker's are ignored.
    """
    registered = image.brokers[broker]
    failed = frozenset(directories).intersection(registered.directories)
    if not failed:
        return Effect(image, {})
    touched = [tp for tp, partition in image.partitions.items() if partition.directory(broker) in failed]
    effect = apply(image, _decide(image, touched, removed=broker))
    left = tuple(directory for directory in registered.directories if directory not in failed)
    return Effect(with_broker(effect.image, broker, registered._replace(directories=left)), effect.changes)


def elect_uncleanly_where_leaderless(image: ClusterImage, limit: int) -> Effect:
    """The periodic unclean election, every five minutes as shipped, for at most ``limit`` partitions of topics that
    allow it (``unclean.leader.election.enable``).
    """
    touched = [tp for tp in image.leaderless() if image.rules_for(tp.topic).elects_uncleanly]
    changes = _decide(image, touched)
    return apply(image, dict(list(changes.items())[:limit]))


def _leave_isr(image: ClusterImage, broker: int) -> Effect:
    return apply(image, _decide(image, image.with_isr_member(broker), removed=broker))


def _decide(
    image: ClusterImage,
    touched: Iterable[TopicPartition],
    *,
    removed: int | None = None,
    unclean: frozenset[int] = frozenset(),
) -> dict[TopicPartition, PartitionChange]:
    """The changes of ``touched`` where ``removed`` leaves the ISR and may not lead.

    In a large cluster many partitions have equal values, so one decision serves all of them.
    """
    gone = frozenset(() if removed is None else (removed,))
    changes = {}
    topics: dict[str, tuple[int, ElectionKind, ControllerRules]] = {}
    decided: dict[tuple[int, tuple[int, ElectionKind, ControllerRules]], PartitionChange | None] = {}
    for tp in touched:
        partition = image.partitions[tp]
        of_topic = topics.get(tp.topic)
        if of_topic is None:
            of_topic = (
                image.effective_min_isr(tp.topic),
                image.election_for(tp.topic),
                image.rules_for(tp.topic),
            )
            topics[tp.topic] = of_topic
        key = (id(partition), of_topic)
        if key not in decided:
            min_isr, election, rules = of_topic
            proposal = Proposal(
                acceptable=acceptable_leaders(partition, image.brokers) - gone,
                min_isr=min_isr,
                election=election,
                isr=without(partition.isr, gone),
                unclean_shutdown=unclean,
            )
            decided[key] = transition(partition, proposal, rules)
        change = decided[key]
        if change is not None:
            changes[tp] = change
    return changes
