"""The metadata log in Kafka's records: what each committed change of the simulated controllers would have written.

The quorum of the simulator commits whole states; the records are what one state has and the one before had not.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from backends.simulator.loop import MILLISECOND
from backends.simulator.messages import ConfigStep, MetadataUpdate, TopicRemoved
from backends.simulator.partition_table import id_of, topics_of
from recovery.controller.cluster_image import BrokerRegistration, ClusterImage, Layered
from recovery.controller.registration import PartitionChange, Registration
from recovery.controller.rules import ELR_FEATURE, MIN_ISR, UncleanRecoveryStrategy, strategy_of
from recovery.membership.raft_votes import RaftLogEnd
from recovery.membership.voters import VoterSet
from recovery.metadata_log.records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    Endpoint,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    ResourceType,
    TopicRecord,
)

UNCLEAN_ELECTION = "unclean.leader.election.enable"
RECOVERY_STRATEGY = "unclean.recovery.strategy"
BROKER_PORT = 9092


class CommittedBatch(NamedTuple):
    """The records of one committed change. ``time_ms`` is the virtual time at which controller ``leader`` of
    ``epoch`` wrote it; ``voters`` are the ids of the voters then, and ``changed_voters`` the whole set where it is
    another one than at the batch before. ``position``: the offset of the change in the quorum's own log, where
    it is one record; 0: it was there at time 0.
    """

    time_ms: int
    epoch: int
    leader: int
    voters: tuple[int, ...]
    records: tuple[MetadataRecord, ...]
    position: int = 0
    changed_voters: VoterSet | None = None


class OffsetCounter:
    """The offsets of batches that come in order: each epoch begins with the leader's own control record, and other
    voters take two.
    """

    def __init__(self) -> None:
        self.next_offset = 0
        self.epoch = -1

    def place(self, batch: CommittedBatch) -> int:
        """The offset of the batch's first record."""
        if batch.epoch != self.epoch:
            self.epoch = batch.epoch
            self.next_offset += 1
        if batch.changed_voters is not None:
            self.next_offset += 2
        base = self.next_offset
        self.next_offset += len(batch.records)
        return base


class CommittedRecords:
    """All that was committed, as Kafka's records. ``racks`` by broker. The first of ``voters`` leads at time 0."""

    def __init__(
        self, first: MetadataUpdate, epoch: int, voters: VoterSet, racks: Mapping[int, str | None]
    ) -> None:
        self._first = first
        ids = tuple(key.id for key in voters.keys)
        self.first_voters = self._voters = voters
        self._began = (epoch, ids[0], ids)
        self._racks = racks
        self._image = first.image
        self._batches: list[CommittedBatch] = []

    def add(self, at: RaftLogEnd, leader: int, voters: VoterSet, update: MetadataUpdate) -> None:
        """The next committed state; ``at``: where it ends in the quorum's own log."""
        before, self._image = self._image, update.image
        records = tuple(self._changed(before, update.image))
        if records:
            ids = tuple(key.id for key in voters.keys)
            changed = None if voters == self._voters else voters
            self._voters = voters
            time_ms = update.written // MILLISECOND
            self._batches.append(
                CommittedBatch(time_ms, at.epoch, leader, ids, records, at.offset - 1, changed)
            )

    def __len__(self) -> int:
        """How many steps there are for :meth:`batches`; the state at time 0 is the first."""
        return 1 + len(self._batches)

    def batches(self, start: int = 0) -> Iterator[CommittedBatch]:
        """Everything in order, but for the first ``start`` steps."""
        if start == 0:
            yield from self._initial()
        yield from islice(self._batches, max(start - 1, 0), None)

    # The state at time 0, as if it had just been made

    def _initial(self) -> Iterator[CommittedBatch]:
        image = self._first.image
        nothing = ClusterImage({}, {})
        features = (FeatureLevelRecord(ELR_FEATURE, int(image.rules.elr)),)
        groups: list[Iterable[MetadataRecord]] = [(*features, *_cluster_configs(nothing, image))]
        for broker, registered in image.brokers.items():
            groups.append((self._registered(broker, registered._replace(fenced=True)),))
            if not registered.fenced:
                groups.append((_registration_change(broker, registered._replace(fenced=True), registered),))
        groups += [_created(image, topic) for topic in topics_of(image)]
        for group in groups:
            yield CommittedBatch(self._first.written // MILLISECOND, *self._began, tuple(group))

    # What changed

    def _changed(self, before: ClusterImage, after: ClusterImage) -> Iterator[MetadataRecord]:
        """As Kafka orders them: a fencing stands behind what it does to the partitions, an unfencing before it."""
        if before.rules.elr != after.rules.elr:
            yield FeatureLevelRecord(ELR_FEATURE, int(after.rules.elr))
        yield from _cluster_configs(before, after)
        changed = [
            (broker, before.brokers.get(broker), registered)
            for broker, registered in after.brokers.items()
            if before.brokers.get(broker) != registered
        ]
        unfenced = [row for row in changed if row[1] is not None and row[1].fenced and not row[2].fenced]
        for broker, was, registered in unfenced:
            yield self._broker(broker, was, registered)
        yield from _topics(before, after)
        for row in changed:
            if row not in unfenced:
                yield self._broker(*row)

    def _broker(
        self, broker: int, before: BrokerRegistration | None, after: BrokerRegistration
    ) -> MetadataRecord:
        again = before is not None and (after.epoch, after.incarnation) == (before.epoch, before.incarnation)
        if (
            before is None
            or not again
            or (before.in_controlled_shutdown and not after.in_controlled_shutdown)
        ):
            return self._registered(broker, after)
        return _registration_change(broker, before, after)

    def _registered(self, broker: int, registered: BrokerRegistration) -> RegisterBrokerRecord:
        return RegisterBrokerRecord(
            broker,
            registered.epoch,
            _incarnation(broker, registered),
            (Endpoint("PLAINTEXT", f"broker-{broker}.simulated", BROKER_PORT),),
            self._racks.get(broker),
            registered.fenced,
            registered.in_controlled_shutdown,
            registered.directories,
        )


def _incarnation(broker: int, registered: BrokerRegistration) -> str:
    digest = hashlib.sha256(f"incarnation {broker} {registered.incarnation}".encode()).digest()[:16]
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _registration_change(
    broker: int, before: BrokerRegistration, after: BrokerRegistration
) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(
        broker,
        after.epoch,
        None if before.fenced == after.fenced else after.fenced,
        True if after.in_controlled_shutdown and not before.in_controlled_shutdown else None,
        None if before.directories == after.directories else after.directories,
    )


def _created(image: ClusterImage, topic: str) -> Iterator[MetadataRecord]:
    """A new topic: its configurations stand before its partitions."""
    topic_id = id_of(image, topic)
    yield TopicRecord(topic, topic_id)
    for key, value in _topic_configs(image, topic).items():
        yield ConfigRecord(ResourceType.TOPIC, topic, key, value)
    for number, registration in enumerate(topics_of(image)[topic]):
        yield PartitionRecord(topic_id, number, registration)


def _topics(before: ClusterImage, after: ClusterImage) -> Iterator[MetadataRecord]:
    same = before.min_isr is after.min_isr and before.strategies is after.strategies
    if same and before.partitions is after.partitions:
        return
    old, new = topics_of(before), topics_of(after)
    for topic in old:
        if topic not in new or id_of(before, topic) != id_of(after, topic):
            yield RemoveTopicRecord(id_of(before, topic))
    for topic, row in new.items():
        if topic not in old or id_of(before, topic) != id_of(after, topic):
            yield from _created(after, topic)
            continue
        had, has = _topic_configs(before, topic), _topic_configs(after, topic)
        if had != has:
            yield from _config_changes(ResourceType.TOPIC, topic, had, has)
        if old[topic] is not row:
            yield from _partitions(id_of(after, topic), old[topic], row)


def _partitions(
    topic_id: str, before: tuple[Registration, ...], after: tuple[Registration, ...]
) -> Iterator[MetadataRecord]:
    made: dict[tuple[int, int], PartitionChange | None] = {}
    for number, (was, now) in enumerate(zip(before, after, strict=True)):
        if was is now or was == now:
            continue
        key = (id(was), id(now))
        if key not in made:
            made[key] = _partition_change(was, now)
        change = made[key]
        if change is None:
            yield PartitionRecord(topic_id, number, now)
        else:
            yield PartitionChangeRecord(topic_id, number, change)


def _partition_change(before: Registration, after: Registration) -> PartitionChange | None:
    """The change that leads from one to the other; None where no single one does."""
    bump = after.leader_epoch - before.leader_epoch
    if after.partition_epoch != before.partition_epoch + 1 or bump not in (0, 1):
        return None
    if bump == 0 and before.leader != after.leader:
        return None
    fields: dict[str, Any] = {
        name: value
        for name, had, value in zip(Registration._fields, before, after, strict=True)
        if name in PartitionChange._fields and had != value
    }
    return PartitionChange(**{**fields, "leader": after.leader if bump else None})


# Configurations


def _topic_configs(image: ClusterImage, topic: str) -> dict[str, str]:
    found = {}
    if topic in image.min_isr.topics:
        found[MIN_ISR] = str(image.min_isr.topics[topic])
    if topic in image.strategies.topics:
        found.update((_strategy(image.strategies.topics[topic]),))
    return found


def _strategy(strategy: UncleanRecoveryStrategy) -> tuple[str, str]:
    """Kafka's own configuration where it stands for the strategy."""
    for enabled in (True, False):
        if strategy is strategy_of(enabled):
            return UNCLEAN_ELECTION, str(enabled).lower()
    return RECOVERY_STRATEGY, strategy.value


def _cluster_configs(before: ClusterImage, after: ClusterImage) -> Iterator[ConfigRecord]:
    if before.min_isr is not after.min_isr or before.strategies is not after.strategies:
        had, has = (
            _of_cluster(before.min_isr, before.strategies),
            _of_cluster(after.min_isr, after.strategies),
        )
        yield from _config_changes(ResourceType.BROKER, "", had, has)
        for broker in dict.fromkeys((*before.min_isr.brokers, *after.min_isr.brokers)):
            had, has = _of_broker(before.min_isr, broker), _of_broker(after.min_isr, broker)
            yield from _config_changes(ResourceType.BROKER, str(broker), had, has)


def _of_broker(min_isr: Layered[int], broker: int) -> dict[str, str]:
    return {MIN_ISR: str(min_isr.brokers[broker])} if broker in min_isr.brokers else {}


def config_steps(before: ClusterImage, after: ClusterImage) -> Iterator[ConfigStep]:
    """What a change of the metadata writes about configurations, in the order of :class:`CommittedRecords`."""
    if before.min_isr is after.min_isr and before.strategies is after.strategies:
        return
    yield from _cluster_configs(before, after)
    old, new = topics_of(before), topics_of(after)
    made = {topic for topic in new if topic not in old or id_of(before, topic) != id_of(after, topic)}
    for topic in old:
        if topic not in new or topic in made:
            yield TopicRemoved(topic)
    for topic in new:
        had = {} if topic in made else _topic_configs(before, topic)
        yield from _config_changes(ResourceType.TOPIC, topic, had, _topic_configs(after, topic))


def _of_cluster(min_isr: Layered[int], strategies: Layered[UncleanRecoveryStrategy]) -> dict[str, str]:
    found = {}
    if min_isr.cluster is not None:
        found[MIN_ISR] = str(min_isr.cluster)
    if strategies.cluster is not None:
        found.update((_strategy(strategies.cluster),))
    return found


def _config_changes(
    kind: ResourceType, resource: str, before: Mapping[str, str], after: Mapping[str, str]
) -> Iterator[ConfigRecord]:
    for key in dict.fromkeys((*before, *after)):
        if before.get(key) != after.get(key):
            yield ConfigRecord(kind, resource, key, after.get(key))
