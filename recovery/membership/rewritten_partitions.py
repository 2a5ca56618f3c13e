"""Partitions that a rebuilt quorum's log ends with, where brokers' disks know more than the copy that it goes
on from.

A leader epoch that is given out twice breaks the matching of logs (KIP-101), on which everything rests. So
each such partition is written anew: its leader epoch is above all that any scanned log or checkpoint holds,
its ISR is what the logs justify, and it has no leader until the controller elects from that ISR.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from recovery.controller.registration import LeaderRecoveryState, Registration
from recovery.membership.lost_quorum import EPOCH_MARGIN
from recovery.metadata_log.log_changes import PartitionSubject
from recovery.metadata_log.record_codec import encode
from recovery.metadata_log.records import PartitionRecord, TopicRecord
from recovery.model import NO_LEADER

_NAMED = 5


class ScannedReplica(NamedTuple):
    """A partition's folder on the disk of a broker; ``name`` as the folder has it. ``epoch``: the newest
    leader epoch that log or checkpoint knows, ``last_epoch`` and ``log_end`` those of its last record.
    ``runs``: its broker runs.
    """

    broker: int
    directory_id: str
    topic_id: str
    name: str
    partition: int
    epoch: int
    last_epoch: int
    log_end: int
    runs: bool = False

    @property
    def subject(self) -> PartitionSubject:
        return PartitionSubject(self.topic_id, self.partition)

    @property
    def position(self) -> tuple[int, int]:
        """By which two logs of a partition are compared."""
        return self.last_epoch, self.log_end


class KnownPartitions(NamedTuple):
    """What the copy says: partitions that exist, the names of topics (also of deleted ones) by id, and whether it
    tracks log dirs.
    """

    present: Mapping[PartitionSubject, Registration]
    topics: Mapping[str, str]
    has_directories: bool

    def is_deleted(self, topic_id: str) -> bool:
        return topic_id in self.topics and topic_id not in self.present_topics

    @property
    def present_topics(self) -> frozenset[str]:
        return frozenset(subject.topic_id for subject in self.present)


class RewrittenPartition(NamedTuple):
    """``registration`` is what is written. ``known_epoch``: the leader epoch of the copy, -1: it does not know the
    partition. ``disk_epoch``: the newest on the disks; -1: no replica was scanned.
    """

    topic: str
    topic_id: str
    partition: int
    known_epoch: int
    disk_epoch: int
    registration: Registration

    @property
    def is_new(self) -> bool:
        """Whether the copy does not know it."""
        return self.known_epoch < 0


def lost_partitions(known: KnownPartitions, disks: Iterable[ScannedReplica]) -> tuple[ScannedReplica, ...]:
    """Folders of partitions that the copy does not know, and has not deleted. Brokers would make strays of them."""
    return tuple(d for d in disks if d.subject not in known.present and not known.is_deleted(d.topic_id))


def rewritten_partitions(
    known: KnownPartitions,
    disks: Sequence[ScannedReplica],
    unscanned: Collection[int],
    *,
    is_stale: bool,
    restores_lost: bool,
) -> tuple[RewrittenPartition, ...]:
    """``is_stale``: changes after the copy's end are lost, so that an ISR of the copy may have lost a member since.
    That is taken for granted where none of the scanned brokers runs: there may be changes that no copy has.
    ``restores_lost``: partitions that the copy does not know are written too, with the replicas that were
    scanned. A partition of which a replica on an ``unscanned`` broker is not looked at gets an epoch that
    EPOCH_MARGIN covers.
    """
    by_subject: dict[PartitionSubject, list[ScannedReplica]] = defaultdict(list)
    for disk in disks:
        by_subject[disk.subject].append(disk)
    is_stale |= any(
        d.epoch > known.present[d.subject].leader_epoch for d in disks if d.subject in known.present
    )
    written = []
    for subject, now in known.present.items():
        replicas = by_subject.get(subject, ())
        trusts_isr = not is_stale and any(d.runs for d in replicas)
        after = _rewritten(now, replicas, unscanned, trusts_isr=trusts_isr)
        if after is not None:
            newest = max((d.epoch for d in replicas), default=-1)
            name = known.topics.get(subject.topic_id, "")
            written.append(RewrittenPartition(name, *subject, now.leader_epoch, newest, after))
    if restores_lost:
        for subject in dict.fromkeys(d.subject for d in lost_partitions(known, disks)):
            replicas = by_subject[subject]
            newest = max(d.epoch for d in replicas)
            after = _restored(replicas, has_directories=known.has_directories)
            written.append(RewrittenPartition(replicas[0].name, *subject, -1, newest, after))
    return tuple(sorted(written, key=lambda one: one[:3]))


def _rewritten(
    now: Registration, disks: Sequence[ScannedReplica], unscanned: Collection[int], *, trusts_isr: bool
) -> Registration | None:
    newest = max((d.epoch for d in disks), default=-1)
    epoch = max(newest, now.leader_epoch) + EPOCH_MARGIN
    best = max((d.position for d in disks), default=(-1, -1))
    holders = tuple(d for d in disks if d.position == best)
    behind = {d.broker for d in disks if d.broker in now.isr} - {d.broker for d in holders}
    if newest > now.leader_epoch or (behind and not trusts_isr):
        # Where a reassignment was lost with the changes, the best log may be on a broker that is no replica.
        added = (
            tuple(d for d in holders if d.broker not in now.replicas)
            if not _any(holders, now.replicas)
            else ()
        )
        return now._replace(
            replicas=(*now.replicas, *(d.broker for d in added)),
            directories=(*now.directories, *(d.directory_id for d in added)) if now.directories else (),
            isr=_isr(holders),
            leader=NO_LEADER,
            leader_epoch=epoch,
            partition_epoch=now.partition_epoch + EPOCH_MARGIN,
            elr=(),
            last_known_elr=(),
            leader_recovery_state=LeaderRecoveryState.RECOVERED,
        )
    if set(now.replicas) & set(unscanned):
        return now._replace(leader_epoch=epoch, partition_epoch=now.partition_epoch + EPOCH_MARGIN)
    return None


def _any(holders: Iterable[ScannedReplica], replicas: Collection[int]) -> bool:
    return any(d.broker in replicas for d in holders)


def _isr(holders: Iterable[ScannedReplica]) -> tuple[int, ...]:
    return tuple(sorted({d.broker for d in holders}))


def _restored(disks: Sequence[ScannedReplica], *, has_directories: bool) -> Registration:
    """The replicas are those that have a folder, the best log first."""
    ordered = {d.broker: d for d in sorted(disks, key=lambda d: (d.position, -d.broker))}
    ranked = tuple(sorted(ordered.values(), key=lambda d: (*d.position, -d.broker), reverse=True))
    holders = [d for d in ranked if d.position == ranked[0].position]
    return Registration(
        replicas=tuple(d.broker for d in ranked),
        isr=_isr(holders),
        leader=NO_LEADER,
        leader_epoch=max(d.epoch for d in disks) + EPOCH_MARGIN,
        directories=tuple(d.directory_id for d in ranked) if has_directories else (),
    )


def record_values(written: Iterable[RewrittenPartition], known_topics: Collection[str]) -> list[bytes]:
    """The records that the log ends with. ``known_topics``: ids that the copy knows, which get no record."""
    values: list[bytes] = []
    topics = set(known_topics)
    for one in written:
        if one.topic_id not in topics:
            topics.add(one.topic_id)
            values.append(encode(TopicRecord(one.topic, one.topic_id)))
        now = one.registration
        # Each version is written only where the copy has what it can say: the cluster's nodes can read it.
        version = 2 if now.elr or now.last_known_elr else 1 if now.directories else 0
        values.append(encode(PartitionRecord(one.topic_id, one.partition, now), version))
    return values


def partition_refusals(
    known: KnownPartitions,
    disks: Sequence[ScannedReplica],
    written: Sequence[RewrittenPartition],
    *,
    accepts_strays: bool,
    restores_lost: bool,
) -> Iterator[str]:
    """Why the partitions cannot be written, each in one line."""
    raised = {(one.topic_id, one.partition) for one in written if not one.registration.has_leader}
    running = sorted({d.broker for d in disks if d.runs and d.subject in raised})
    if running:
        yield (
            f"broker{'' if len(running) == 1 else 's'} {', '.join(map(str, running))} run, and the copy lacks what"
            " they have applied: they end themselves when they find the quorum, and until then their logs grow, so"
            " that the ISR which the logs justify is not known. Stop them first"
        )
    lost = lost_partitions(known, disks)
    if lost and restores_lost:
        yield from _not_restorable(known, lost)
    elif lost and not accepts_strays:
        topics = sorted({(d.name, d.topic_id) for d in lost})
        more = f" and {len(topics) - _NAMED:,} more" if len(topics) > _NAMED else ""
        listed = ", ".join(f"{name} ({topic_id})" for name, topic_id in topics[:_NAMED])
        yield (
            f"brokers' disks hold topics whose ids the copy does not know: {listed}{more}."
            " A broker sets such folders aside as strays when it starts. To keep them, with these ids, the replicas"
            " that were scanned and the configurations that another copy has: --keep-strays. To go on without them:"
            " copy the folders first and give --accept-strays"
        )


def _not_restorable(known: KnownPartitions, lost: Iterable[ScannedReplica]) -> Iterator[str]:
    taken = {known.topics[topic_id] for topic_id in known.present_topics if topic_id in known.topics}
    numbers: dict[tuple[str, str], set[int]] = defaultdict(set)
    for disk in lost:
        numbers[disk.name, disk.topic_id].add(disk.partition)
    for (name, topic_id), partitions in sorted(numbers.items()):
        if topic_id not in known.present_topics and name in taken:
            yield (
                f"topic {name} ({topic_id}) cannot be kept: the copy has a topic of that name with another id. Copy"
                " its folders first and give --accept-strays"
            )
        present = {s.partition for s in known.present if s.topic_id == topic_id}
        every = partitions | present
        missing = sorted(set(range(max(every))) - every)
        if missing:
            yield (
                f"topic {name} ({topic_id}) cannot be kept: no scanned disk has its partitions"
                f" {', '.join(map(str, missing[:_NAMED]))}. Give the log dirs that have them"
                " with --data, or copy its"
                " folders first and give --accept-strays"
            )


def unscanned_refusal(unscanned: Sequence[int]) -> Iterator[str]:
    """Brokers whose disks were not looked at, and are not named."""
    if unscanned:
        named = f"broker{'' if len(unscanned) == 1 else 's'} {', '.join(map(str, unscanned))}"
        yield (
            f"the disks of {named} were not scanned, so whether they know of leader epochs that the copy lacks is"
            " not known: give their log dirs with --data, or name each with --unscanned to go on without"
        )


# In the plan's file


def partition_members(written: RewrittenPartition) -> dict[str, object]:
    """As the plan file and the JSON document have it."""
    now = written.registration
    return {
        "topic": written.topic,
        "topicId": written.topic_id,
        "partition": written.partition,
        "knownEpoch": written.known_epoch,
        "diskEpoch": written.disk_epoch,
        "replicas": list(now.replicas),
        "isr": list(now.isr),
        "leader": now.leader,
        "leaderEpoch": now.leader_epoch,
        "partitionEpoch": now.partition_epoch,
        "elr": list(now.elr),
        "lastKnownElr": list(now.last_known_elr),
        "recoveryState": str(now.leader_recovery_state),
        "removing": list(now.removing),
        "adding": list(now.adding),
        "directories": list(now.directories),
    }


def read_partition(members: Mapping[str, Any]) -> RewrittenPartition:
    """Raises KeyError, TypeError, ValueError."""
    registration = Registration(
        tuple(map(int, members["replicas"])),
        tuple(map(int, members["isr"])),
        int(members["leader"]),
        int(members["leaderEpoch"]),
        int(members["partitionEpoch"]),
        tuple(map(int, members["elr"])),
        tuple(map(int, members["lastKnownElr"])),
        LeaderRecoveryState(members["recoveryState"]),
        tuple(map(int, members["removing"])),
        tuple(map(int, members["adding"])),
        tuple(map(str, members["directories"])),
    )
    return RewrittenPartition(
        str(members["topic"]),
        str(members["topicId"]),
        int(members["partition"]),
        int(members["knownEpoch"]),
        int(members["diskEpoch"]),
        registration,
    )
