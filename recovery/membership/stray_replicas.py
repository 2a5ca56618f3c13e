"""Folders on brokers' disks that the rebuilt quorum has no place for. A broker renames such a folder to a stray
(``TOPIC-PARTITION.…-stray``) when it starts, and serves nothing of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from recovery.membership.rewritten_partitions import KnownPartitions, RewrittenPartition, ScannedReplica
from recovery.metadata_log.log_changes import PartitionSubject
from recovery.wording.quantity_text import both, counted, ids

_NAMED = 5


class StrayReplica(NamedTuple):
    """A folder that becomes a stray when its ``broker`` starts. ``last_epoch`` and ``log_end`` are those of its
    last record. ``why`` in words.
    """

    topic: str
    topic_id: str
    partition: int
    broker: int
    last_epoch: int
    log_end: int
    why: str


def lost_partitions(known: KnownPartitions, disks: Iterable[ScannedReplica]) -> tuple[ScannedReplica, ...]:
    """Folders of partitions that the copy does not know, and has not deleted."""
    return tuple(d for d in disks if d.subject not in known.present and not known.is_deleted(d.topic_id))


class LostTopic(NamedTuple):
    """Partitions of one topic that the copy does not know. ``unkeepable`` are those of them that cannot be written,
    and ``why``; ``absent`` are partitions that no scanned disk has.
    """

    name: str
    topic_id: str
    partitions: tuple[int, ...]
    unkeepable: tuple[int, ...] = ()
    why: str = ""
    absent: tuple[int, ...] = ()

    @property
    def keepable(self) -> tuple[PartitionSubject, ...]:
        """What can be written."""
        return tuple(PartitionSubject(self.topic_id, n) for n in self.partitions if n not in self.unkeepable)


def lost_topics(known: KnownPartitions, lost: Iterable[ScannedReplica]) -> tuple[LostTopic, ...]:
    """What can be kept of each topic, and what cannot. Of a topic that the copy has, the partitions up to the first
    that is missing can; of another one all or none: a part of it would take its place.
    """
    numbers: dict[tuple[str, str], set[int]] = defaultdict(set)
    for disk in lost:
        numbers[disk.name, disk.topic_id].add(disk.partition)
    present: dict[str, set[int]] = defaultdict(set)
    for topic_id, partition in known.present:
        present[topic_id].add(partition)
    names: dict[str, list[str]] = defaultdict(list)
    for topic_id in present:
        names[known.topics.get(topic_id, "")].append(topic_id)
    for name, topic_id in sorted(numbers):
        if topic_id not in present:
            names[name].append(topic_id)
    return tuple(
        _lost_topic(name, topic_id, partitions, present, [one for one in names[name] if one != topic_id])
        for (name, topic_id), partitions in sorted(numbers.items())
    )


def _lost_topic(
    name: str, topic_id: str, lost: set[int], present: Mapping[str, set[int]], others: Sequence[str]
) -> LostTopic:
    """``others``: the ids of further topics of that name."""
    every, partitions = lost | present.get(topic_id, set()), tuple(sorted(lost))
    absent = tuple(sorted(set(range(max(every))) - every))
    if topic_id not in present and others:
        in_copy = [one for one in others if one in present]
        why = (
            f"the copy has a topic of that name with another id ({', '.join(in_copy)})"
            if in_copy
            else f"the disks hold another topic of that name ({', '.join(others)}), and which of them was deleted"
            " is not known"
        )
        return LostTopic(name, topic_id, partitions, partitions, why, absent)
    if absent:
        cut = absent[0] if topic_id in present else 0
        more = ", …" if len(absent) > _NAMED else ""
        why = f"no scanned disk has its partitions {', '.join(map(str, absent[:_NAMED]))}{more}"
        return LostTopic(name, topic_id, partitions, tuple(n for n in partitions if n >= cut), why, absent)
    return LostTopic(name, topic_id, partitions)


def stray_refusals(
    known: KnownPartitions, topics: Sequence[LostTopic], *, accepts_strays: bool, keeps_strays: bool
) -> Iterator[str]:
    """What becomes a stray, while nobody has accepted that, each topic that cannot be kept in a line."""
    if accepts_strays:
        return
    if keeps_strays:
        for one in topics:
            if one.unkeepable:
                which = (
                    f"topic {one.name} ({one.topic_id})"
                    if not one.keepable and one.topic_id not in known.present_topics
                    else f"{', '.join(f'{one.name}-{n}' for n in one.unkeepable)} ({one.topic_id})"
                )
                give = "Give the log dirs that have them with --data, or copy" if one.absent else "Copy"
                yield (
                    f"{which} cannot be kept: {one.why}. {give} its folders first and add --accept-strays to"
                    " --keep-strays: these become strays, and the others are kept"
                )
        return
    new = [f"{one.name} ({one.topic_id})" for one in topics if one.topic_id not in known.present_topics]
    more = [
        f"{one.name}-{n}" for one in topics if one.topic_id in known.present_topics for n in one.partitions
    ]
    unknown = [f"topics whose ids the copy does not know: {_some(new)}"] if new else []
    unknown += (
        [f"partitions that the copy does not know, of topics that it has: {_some(more)}"] if more else []
    )
    if unknown:
        yield (
            f"brokers' disks hold {'; and '.join(unknown)}."
            " A broker sets such folders aside as strays when it starts. To keep them, with these ids, the replicas"
            " that were scanned and the configurations that another copy has: --keep-strays. To go on without them:"
            " copy the folders first and give --accept-strays. With both, what can be kept is kept"
        )


def _some(named: Sequence[str]) -> str:
    more = f" and {len(named) - _NAMED:,} more" if len(named) > _NAMED else ""
    return f"{', '.join(named[:_NAMED])}{more}"


def stray_replicas(
    known: KnownPartitions,
    disks: Iterable[ScannedReplica],
    topics: Iterable[LostTopic],
    written: Iterable[RewrittenPartition],
) -> tuple[StrayReplica, ...]:
    """The scanned folders that no partition has a replica for, once the quorum has what is ``written``. Those of
    topics that the copy has deleted are not among them.
    """
    after = dict(known.present)
    after |= {PartitionSubject(one.topic_id, one.partition): one.registration for one in written}
    reasons = {PartitionSubject(one.topic_id, number): one.why for one in topics for number in one.unkeepable}
    found = []
    for disk in disks:
        now = after.get(disk.subject)
        if now is None:
            if known.is_deleted(disk.topic_id):
                continue
            why = reasons.get(disk.subject, "the copy does not know it")
        elif disk.broker in now.replicas:
            continue
        else:
            why = f"the broker is none of its replicas ({ids(now.replicas)})"
        found.append(
            StrayReplica(
                disk.name, disk.topic_id, disk.partition, disk.broker, disk.last_epoch, disk.log_end, why
            )
        )
    return tuple(sorted(found))


# In the plan


def stray_lines(strays: Collection[StrayReplica]) -> Iterator[str]:
    """Each partition in a line, the first of them."""
    partitions: dict[tuple[str, str, int, str], list[StrayReplica]] = defaultdict(list)
    for one in strays:
        partitions[one.topic, one.topic_id, one.partition, one.why].append(one)
    if partitions:
        yield (
            f"STRAYS: {counted(len(strays), 'folder')} on brokers' disks {'is' if len(strays) == 1 else 'are'} not"
            " in the rebuilt quorum. A broker renames such a folder when it starts (TOPIC-PARTITION.…-stray) and"
            " serves nothing of it. Copy what you want to keep first:"
        )
    for (topic, topic_id, partition, why), replicas in list(partitions.items())[:_LISTED]:
        brokers = both([one.broker for one in replicas])
        ends = [_log_end(*end) for end in sorted({(one.log_end, one.last_epoch) for one in replicas})]
        yield (
            f"  {topic}-{partition} ({topic_id}) on broker{'' if len(replicas) == 1 else 's'} {brokers}, log end"
            f" {both(ends)}: {why}"
        )
    if len(partitions) > _LISTED:
        yield f"  and {len(partitions) - _LISTED:,} more partitions (all are in the plan's file)"


def _log_end(offset: int, epoch: int) -> str:
    return f"{offset:,} ({f'epoch {epoch}' if epoch >= 0 else 'no record'})"


_LISTED = 20


def stray_members(stray: StrayReplica) -> dict[str, object]:
    """As the plan file and the JSON document have it."""
    return {
        "topic": stray.topic,
        "topicId": stray.topic_id,
        "partition": stray.partition,
        "broker": stray.broker,
        "lastEpoch": stray.last_epoch,
        "logEndOffset": stray.log_end,
        "why": stray.why,
    }


def read_stray(members: Mapping[str, Any]) -> StrayReplica:
    """Raises KeyError, TypeError, ValueError."""
    return StrayReplica(
        str(members["topic"]),
        str(members["topicId"]),
        int(members["partition"]),
        int(members["broker"]),
        int(members["lastEpoch"]),
        int(members["logEndOffset"]),
        str(members["why"]),
    )
