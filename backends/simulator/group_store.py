"""What the logs of a simulated cluster hold of consumer groups: committed offsets, and who was a member when a
generation got its assignment.

A record of __consumer_offsets is identified by its epoch and offsets, which are the same in every log; what a
coordinator's log does not hold, it does not know. Offsets that a scenario commits without that topic, and those of
transactions, are in no log, and stay.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from struct import Struct
from typing import NamedTuple

from backends.base.consumer_groups import OFFSETS_TOPIC
from backends.simulator.broker.replica_log import Log, clip_to_log
from backends.simulator.classic_group import ClassicGroup
from backends.simulator.loop import MILLISECOND
from backends.simulator.partition_table import topics_of
from recovery.controller.cluster_image import ClusterImage
from recovery.groups.group_values import CommittedOffset
from recovery.model import NO_LEADER, EpochSpan, TopicPartition
from recovery.transactions.decision_records import state_partition

OFFSETS_PARTITIONS = 50
"""offsets.topic.num.partitions"""

Offsets = Mapping[TopicPartition, CommittedOffset]

_INT16, _INT32, _INT64 = Struct(">h").pack, Struct(">i").pack, Struct(">q").pack


class _Commit(NamedTuple):
    """``span`` is None for offsets that are in no log."""

    span: EpochSpan | None
    offsets: Offsets


class GroupStore:
    """Coordinators add what they append; a log says what of it is known."""

    def __init__(self) -> None:
        self._commits: dict[str, list[_Commit]] = defaultdict(list)
        self._generations: dict[str, list[tuple[EpochSpan, ClassicGroup]]] = defaultdict(list)
        self._pending: dict[int, dict[str, dict[TopicPartition, CommittedOffset]]] = {}

    def commit(
        self,
        group: str,
        offsets: Iterable[tuple[TopicPartition, CommittedOffset]],
        span: EpochSpan | None = None,
    ) -> None:
        """Takes the place of what the group has committed on these partitions. ``span``: of the record."""
        self._commits[group].append(_Commit(span, dict(offsets)))

    def generation_appended(self, group: ClassicGroup, span: EpochSpan) -> None:
        self._generations[group.name].append((span, group))

    def prepare(
        self, producer_id: int, group: str, offsets: Iterable[tuple[TopicPartition, CommittedOffset]]
    ) -> None:
        """Of a transaction that is open: they count once it is committed (TxnOffsetCommit, KIP-98)."""
        self._pending.setdefault(producer_id, {}).setdefault(group, {}).update(offsets)

    def end(self, producer_id: int, *, commit: bool) -> None:
        """The producer's transaction has ended; may be called again."""
        for group, offsets in self._pending.pop(producer_id, {}).items():
            if commit:
                self.commit(group, offsets.items())

    def unstable(self, group: str) -> frozenset[TopicPartition]:
        """The partitions for which an open transaction has prepared an offset of the group (KIP-447)."""
        return frozenset(tp for groups in self._pending.values() for tp in groups.get(group, ()))

    def committed(self, group: str, log: Log | None) -> dict[TopicPartition, CommittedOffset]:
        """The group's offsets by its coordinator's log, in the order of the partitions."""
        found: dict[TopicPartition, CommittedOffset] = {}
        for commit in self._commits.get(group, ()):
            if _in_log(log, commit.span):
                found.update(commit.offsets)
        return dict(sorted(found.items()))

    def newest_generation(self, group: str, log: Log) -> ClassicGroup | None:
        """The group as the log has it; None where it never had members."""
        rows = (known for span, known in reversed(self._generations.get(group, ())) if _in_log(log, span))
        return next(rows, None)

    def names(self) -> list[str]:
        """Every group that has ever committed or had members."""
        return sorted({*self._commits, *self._generations})


def _in_log(log: Log | None, span: EpochSpan | None) -> bool:
    return span is None or (log is not None and bool(clip_to_log(log, (span,))))


def offsets_partition(image: ClusterImage, group: str) -> TopicPartition | None:
    """Whose leader coordinates the group; None while the cluster has no __consumer_offsets."""
    partitions = len(topics_of(image).get(OFFSETS_TOPIC, ()))
    return TopicPartition(OFFSETS_TOPIC, state_partition(group, partitions)) if partitions else None


def group_coordinator(image: ClusterImage, group: str) -> int:
    """The leader of the group's partition of __consumer_offsets. Without that topic the unfenced broker with the
    lowest id coordinates every group; such groups have no members.
    """
    tp = offsets_partition(image, group)
    if tp is not None:
        return image.partitions[tp].leader
    return min((id_ for id_, broker in image.brokers.items() if not broker.fenced), default=NO_LEADER)


def offset_record(
    group: str, tp: TopicPartition, committed: CommittedOffset, now_ms: int
) -> tuple[bytes, bytes]:
    """Key and value in __consumer_offsets (OffsetCommitKey v1, OffsetCommitValue v3)."""
    key = _INT16(1) + _string(group) + _string(tp.topic) + _INT32(tp.partition)
    value = _INT16(3) + _INT64(committed.offset) + _INT32(committed.epoch) + _string(committed.metadata)
    return key, value + _INT64(now_ms)


def generation_record(group: ClassicGroup, now_ms: int) -> tuple[bytes, bytes]:
    """Key and value in __consumer_offsets (GroupMetadataKey v2, GroupMetadataValue v3)."""
    parts = [
        _INT16(3) + _string(group.protocol_type) + _INT32(group.generation),
        _string(group.assignor) + _string(group.leader) + _INT64(now_ms) + _INT32(len(group.members)),
    ]
    for one in group.members:
        subscription = next((o.metadata for o in one.offers if o.name == group.assignor), b"")
        parts += [_string(one.id), _string(one.instance), _string(one.client_id), _string(one.host)]
        parts += [_INT32(one.rebalance_timeout // MILLISECOND), _INT32(one.session_timeout // MILLISECOND)]
        parts += [_bytes(subscription), _bytes(one.assignment)]
    return _INT16(2) + _string(group.name), b"".join(parts)


def _string(text: str | None) -> bytes:
    data = b"" if text is None else text.encode()
    return _INT16(-1 if text is None else len(data)) + data


def _bytes(data: bytes) -> bytes:
    return _INT32(len(data)) + data
