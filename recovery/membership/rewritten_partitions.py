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
    """What the copy says: partitions that exist, the names of topics (also of deleted ones) by id, whether it
    tracks log dirs, and whether it has the feature eligible.leader.replicas.version.
    """

    present: Mapping[PartitionSubject, Registration]
    topics: Mapping[str, str]
    has_directories: bool
    has_elr: bool = False

    def is_deleted(self, topic_id: str) -> bool:
        return topic_id in self.topics and topic_id not in self.present_topics

    @property
    def present_topics(self) -> frozenset[str]:
        return frozenset(subject.topic_id for subject in self.present)


class RewrittenPartition(NamedTuple):
    """``registration`` is what is written. ``known_epoch``: the leader epoch of the copy, -1: it does not know the
    partition. ``disk_epoch``: the newest on the disks; -1: no replica was scanned. ``added``: the brokers that are
    no replicas by the copy, and become replicas for the log on their disks.
    """

    topic: str
    topic_id: str
    partition: int
    known_epoch: int
    disk_epoch: int
    registration: Registration
    added: tuple[int, ...] = ()

    @property
    def is_new(self) -> bool:
        """Whether the copy does not know it."""
        return self.known_epoch < 0


def rewritten_partitions(
    known: KnownPartitions,
    disks: Sequence[ScannedReplica],
    unscanned: Collection[int],
    *,
    is_stale: bool,
    is_forked: bool = False,
    gone: Collection[int] = (),
    starts: Collection[int] = (),
    restored: Collection[PartitionSubject] = (),
) -> tuple[RewrittenPartition, ...]:
    """``is_stale``: changes after the copy's end are lost, so that an ISR of the copy may have lost a member since.
    That is taken for granted where none of the scanned brokers runs: there may be changes that no copy has.
    ``is_forked``: another copy has changes of its own from an offset on that the chosen one has too, so that both
    gave out the same leader epochs: one that the disks know is not that of the chosen copy. ``gone``: brokers whose
    disks may never come back, so that a member of the ISR that runs leads in their place; ``starts``: brokers that
    are stopped now and start first, as the node of the new voter, which count as running there.
    ``restored``: partitions that the copy does not know and that are written too, with the replicas that were
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
        # Members of the ELR do not lead while the ISR has any, unless it has lost them since.
        successors = (*now.elr, *now.last_known_elr) if is_stale or not now.isr else ()
        electable = {*now.isr, *successors}
        if not is_stale and any(d.runs for d in replicas):
            electable = set()  # whoever leads knows the ISR
        after = _rewritten(now, replicas, unscanned, electable, is_forked=is_forked)
        if after is not None and not is_stale:
            up = {d.broker: d.position for d in replicas if d.runs or d.broker in starts}
            after = _without(after, set(gone) & set(unscanned), up)
        if after is not None:
            after = _elected_by_itself(after, gone) if known.has_elr else after
            newest = max((d.epoch for d in replicas), default=-1)
            name, added = known.topics.get(subject.topic_id, ""), after.replicas[len(now.replicas) :]
            written.append(RewrittenPartition(name, *subject, now.leader_epoch, newest, after, added))
    for subject in restored:
        replicas = by_subject[subject]
        newest = max(d.epoch for d in replicas)
        after = _restored(replicas, has_directories=known.has_directories)
        after = _elected_by_itself(after, gone) if known.has_elr else after
        written.append(RewrittenPartition(replicas[0].name, *subject, -1, newest, after))
    return tuple(sorted(written, key=lambda one: one[:3]))


def _rewritten(
    now: Registration,
    disks: Sequence[ScannedReplica],
    unscanned: Collection[int],
    electable: Collection[int],
    *,
    is_forked: bool,
) -> Registration | None:
    """``electable``: whom the controller may elect by itself without being trusted to know who has the best log;
    empty: it knows.
    """
    newest = max((d.epoch for d in disks), default=-1)
    taken = newest > now.leader_epoch or (is_forked and newest == now.leader_epoch > 0)
    epoch = max(newest, now.leader_epoch) + EPOCH_MARGIN
    best = max((d.position for d in disks), default=_NO_RECORD)
    holders = {d.broker: d for d in disks if d.position == best}
    # Where a reassignment was lost with the changes, the best log may be on a broker that is no replica by the
    # copy. An ISR may hold replicas only: the controller elects nobody else (seen on 4.3.1).
    outside = tuple(d for broker, d in holders.items() if broker not in now.replicas)
    if taken or _behind(electable, disks, unscanned, best):
        return _with_replicas(now, outside)._replace(
            isr=tuple(sorted(holders)),
            leader=NO_LEADER,
            leader_epoch=epoch,
            partition_epoch=now.partition_epoch + EPOCH_MARGIN,
            elr=(),
            last_known_elr=(),
            leader_recovery_state=LeaderRecoveryState.RECOVERED,
        )
    if set(now.replicas) & set(unscanned):
        # The ISR is on disks that were not read. A log that only a broker outside of it has may be the last.
        is_last = bool(electable) and len(outside) == len(holders) and best > _NO_RECORD
        assigned = _with_replicas(now, outside if is_last else ())
        return assigned._replace(leader_epoch=epoch, partition_epoch=now.partition_epoch + EPOCH_MARGIN)
    return None


def _without(after: Registration, gone: Collection[int], up: Mapping[int, tuple[int, int]]) -> Registration:
    """Led by a member of the ISR that runs where the leader is gone; as it is where none runs, and by nobody where
    all are gone. Whoever is gone stays a replica: it can take its place again, with its disk or with an empty one.
    ``up``: who runs, and where the log ends.
    """
    stay = tuple(broker for broker in after.isr if broker not in gone)
    running = [broker for broker in stay if broker in up]
    if not stay and after.isr:
        return after._replace(leader=NO_LEADER)  # elected when it is back
    if not running or stay == after.isr:
        return after
    best = max(running, key=lambda broker: (up[broker], -broker))
    return after._replace(isr=stay, leader=best if after.leader in gone else after.leader)


def _elected_by_itself(after: Registration, gone: Collection[int]) -> Registration:
    """With ELR a broker that was killed leaves ISR and ELR when it registers, and the controller then elects nobody
    but the last known leader. A record without a leader names one, who is elected as soon as it is back (seen on
    4.3.1 and 4.4.0; without, the partition waits for an election by hand).
    """
    if after.has_leader or not after.isr:
        return after
    first = min(after.isr, key=lambda broker: (broker in gone, after.replicas.index(broker)))
    return after._replace(last_known_elr=(first,))


def waits_for_dead(one: RewrittenPartition, dead: Collection[int]) -> bool:
    """Whether only brokers that are named dead may lead it."""
    now = one.registration
    return bool(now.isr or now.elr) and set(now.isr or now.elr) <= set(dead)


_NO_RECORD = (-1, 0)
"""Position of a log without a record."""


def _behind(
    electable: Collection[int],
    disks: Iterable[ScannedReplica],
    unscanned: Collection[int],
    best: tuple[int, int],
) -> bool:
    """Whether one of them was looked at and lacks what the best log has. A broker whose log dirs were all read and
    that has no folder of the partition has an empty log.
    """
    logs = dict.fromkeys(set(electable) - set(unscanned), _NO_RECORD)
    logs |= {d.broker: d.position for d in disks if d.broker in electable}
    return any(position < best for position in logs.values())


def _with_replicas(now: Registration, added: Sequence[ScannedReplica]) -> Registration:
    return now._replace(
        replicas=(*now.replicas, *(d.broker for d in added)),
        directories=(*now.directories, *(d.directory_id for d in added)) if now.directories else (),
    )


def _restored(disks: Sequence[ScannedReplica], *, has_directories: bool) -> Registration:
    """The replicas are those that have a folder, the best log first."""
    ordered = {d.broker: d for d in sorted(disks, key=lambda d: (d.position, -d.broker))}
    ranked = tuple(sorted(ordered.values(), key=lambda d: (*d.position, -d.broker), reverse=True))
    holders = [d for d in ranked if d.position == ranked[0].position]
    return Registration(
        replicas=tuple(d.broker for d in ranked),
        isr=tuple(sorted({d.broker for d in holders})),
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


def running_refusal(
    disks: Iterable[ScannedReplica], written: Iterable[RewrittenPartition], gone: Collection[int] = ()
) -> Iterator[str]:
    """Brokers that run and have replicas of partitions whose ISR the logs decide; not of those that wait for
    brokers which are ``gone``, with disks that nobody read.
    """
    raised = {
        (one.topic_id, one.partition)
        for one in written
        if not one.registration.has_leader and not waits_for_dead(one, gone)
    }
    running = sorted({d.broker for d in disks if d.runs and d.subject in raised})
    if running:
        yield (
            f"broker{'' if len(running) == 1 else 's'} {', '.join(map(str, running))} run, and the copy lacks what"
            " they have applied: they end themselves when they find the quorum, and until then their logs grow, so"
            " that the ISR which the logs justify is not known. Stop them first"
        )


class LogDirsRead(NamedTuple):
    """How many of a broker's log dirs were given, and the directory ids of those that were not, by the copy; none:
    it registers no ids.
    """

    given: int
    missing: tuple[str, ...]


def unscanned_refusal(unscanned: Mapping[int, LogDirsRead]) -> Iterator[str]:
    """Brokers of which not every log dir was looked at, and that are not named."""
    blind = "whether they know of leader epochs that the copy lacks is not known"
    none = [broker for broker, read in unscanned.items() if not read.given]
    if none:
        named = f"broker{'' if len(none) == 1 else 's'} {', '.join(map(str, none))}"
        yield (
            f"the disks of {named} were not scanned, so {blind}: give their log dirs with --data, or name each with"
            " --unscanned to go on without"
        )
    for broker, read in unscanned.items():
        if read.given:
            one, every = len(read.missing) == 1, read.given + len(read.missing)
            yield (
                f"broker {broker} has {every} log dirs by the copy, and {read.given} of them"
                f" {'was' if read.given == 1 else 'were'} given. Not given:"
                f" {'the one' if one else 'those'} with directory.id {', '.join(read.missing)} in"
                f" meta.properties. Give {'it' if one else 'each'} with --data too, or name broker {broker} with"
                " --unscanned to go on without"
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
        "added": list(written.added),
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
        tuple(map(int, members["added"])),
    )
