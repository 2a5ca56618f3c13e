"""The journal's entries about disks that were not read before an election, and what closes them.

An election of a plan leaves a point open for each replica that was down and not read. It is closed by a rescue that
read that disk, for the same plan or later, by an operator who waives it, and by a later election of the partition
at which the broker told its log. A broker that was taken out of the assignment keeps its log when it starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from backends.base.answers import Outcome
from console.journal.planned_elections import planned_elections
from console.journal.run_records import EntryBegun, EntryEnded
from recovery.model import PartitionState, TopicPartition
from recovery.plan.values import PlanRow
from recovery.unread_brokers import UnreadBrokers
from recovery.unread_disks import ReadDisk, UnreadDisk

DISK_READ, DISK_WAIVED = "disk-read", "disk-waived"
"""Notes that send nothing: the disk of a broker was read into a rescue; an operator will not read it."""


class _Place(NamedTuple):
    broker: int
    tp: TopicPartition


class DiskPartition(NamedTuple):
    """A partition's log on a disk, with the id of its topic; "" where that is not known."""

    tp: TopicPartition
    topic_id: str


UnreadDisksDetail = list[dict[str, object]]
"""The member ``unread`` of an entry of elections."""


def unread_detail(rows: Iterable[PlanRow | PartitionState], unread: UnreadBrokers) -> UnreadDisksDetail:
    """What is recorded of elections about the disks that nobody read, by broker."""
    found: dict[int, list[DiskPartition]] = {}
    for row in rows:
        for broker in unread.get(row.tp, ()):
            found.setdefault(broker, []).append(DiskPartition(row.tp, row.topic_id))
    return [{"broker": broker, "topics": _by_topic(rows)} for broker, rows in sorted(found.items())]


def disk_read_detail(
    broker: int, log_dirs: Sequence[str], directory: str, plan_id: str, partitions: Iterable[DiskPartition]
) -> dict[str, object]:
    """What is recorded of a disk that was read into the rescue ``directory``; ``plan_id`` is "" without a plan."""
    return {
        "broker": broker,
        "logDirs": list(log_dirs),
        "directory": directory,
        "planId": plan_id,
        "topics": _by_topic(partitions),
    }


def waived_detail(broker: int, partitions: Iterable[DiskPartition]) -> dict[str, object]:
    """What is recorded of a disk that an operator will not read."""
    return {"broker": broker, "topics": _by_topic(partitions)}


def disk_partitions(detail: Mapping[str, Any]) -> tuple[DiskPartition, ...]:
    """The partitions of a detail that has ``topics``."""
    return tuple(_partitions(detail))


def _by_topic(rows: Iterable[DiskPartition]) -> list[dict[str, object]]:
    topics: dict[tuple[str, str], list[int]] = {}
    for tp, topic_id in rows:
        topics.setdefault((tp.topic, topic_id), []).append(tp.partition)
    return [
        {"topic": topic, "topicId": topic_id, "partitions": sorted(numbers)}
        for (topic, topic_id), numbers in topics.items()
    ]


def _partitions(detail: Mapping[str, Any]) -> Iterator[DiskPartition]:
    for one in detail.get("topics", ()):
        for number in one.get("partitions", ()):
            yield DiskPartition(
                TopicPartition(str(one.get("topic", "")), int(number)), str(one.get("topicId", ""))
            )


class DiskBook:
    """The open points so far. Entries are handed in in the order of the journal."""

    def __init__(self) -> None:
        self._open: dict[TopicPartition, dict[int, UnreadDisk]] = {}
        self._planned: dict[str, EntryBegun] = {}
        self._read_for: dict[str, set[_Place]] = {}
        self._closed: dict[_Place, int] = {}
        self._set_aside: set[_Place] = set()

    @property
    def closed(self) -> tuple[ReadDisk, ...]:
        """The disks that were read or waived, whatever election left them."""
        return tuple(ReadDisk(place.broker, place.tp, at_ms) for place, at_ms in self._closed.items())

    def open(self) -> tuple[UnreadDisk, ...]:
        """Those of elections whose end was not recorded too: they may have been carried out."""
        found = {_Place(disk.broker, tp): disk for tp, disks in self._open.items() for disk in disks.values()}
        for begun in self._planned.values():
            found = {**self._left_by(begun), **found}
        return tuple(
            found[place]._replace(set_aside=True) if place in self._set_aside else found[place]
            for place in sorted(found)
        )

    def planned(self, begun: EntryBegun) -> None:
        """Elections are about to be sent."""
        self._planned[begun.entry] = begun

    def ended(self, ended: EntryEnded) -> None:
        """Takes the end of any entry."""
        self._set_aside.update(_preserved_places(ended.result))
        begun = self._planned.pop(ended.entry, None)
        if begun is None:
            return
        left: dict[TopicPartition, dict[int, UnreadDisk]] = {}
        self._set_aside.difference_update(self._left_by(begun))
        for place, disk in self._left_by(begun).items():
            left.setdefault(place.tp, {})[place.broker] = disk
        for election in planned_elections(begun, ended):
            if election.outcome != Outcome.ELECTED:
                continue
            # Whoever told its log at this election has nothing left that an earlier one cut off.
            disks = left.get(election.tp, {})
            self._open[election.tp] = {
                broker: disk._replace(leader_epoch=election.leader_epoch) for broker, disk in disks.items()
            }

    def close(self, begun: EntryBegun) -> None:
        """A disk was read, or an operator said why it will not be."""
        broker, plan_id = int(begun.detail.get("broker", -1)), str(begun.detail.get("planId", ""))
        places = {_Place(broker, one.tp) for one in _partitions(begun.detail)}
        self._closed.update(dict.fromkeys(places, _ms(begun.at)))
        # A rescue may be read before the elections of its plan, and after those of a run that was killed.
        unended = (str(begun.detail.get("planId", "")) for begun in self._planned.values())
        for planned in filter(None, (plan_id, *unended)):
            self._read_for.setdefault(planned, set()).update(places)
        for broker, tp in places:
            self._open.get(tp, {}).pop(broker, None)

    def _left_by(self, begun: EntryBegun) -> dict[_Place, UnreadDisk]:
        plan_id, elected_ms = str(begun.detail.get("planId", "")), _ms(begun.at)
        read = self._read_for.get(plan_id, set()) if plan_id else set()
        found: dict[_Place, UnreadDisk] = {}
        for one in begun.detail.get("unread", ()):
            broker = int(one.get("broker", -1))
            for tp, topic_id in _partitions(one):
                place = _Place(broker, tp)
                if place not in read:
                    found[place] = UnreadDisk(broker, tp, topic_id, elected_ms=elected_ms)
        return found


PRESERVED = "kept"
"""The ``end`` of a log whose broker is out of the assignment, among the ``kept`` of an entry's result."""


def _preserved_places(result: Mapping[str, Any]) -> Iterator[_Place]:
    for one in result.get("kept", ()):
        if one.get("end") == PRESERVED:
            tp = TopicPartition(str(one.get("topic", "")), int(one.get("partition", -1)))
            yield from (_Place(int(broker), tp) for broker in one.get("brokers", ()))


def _ms(at: str) -> int:
    try:
        return round(datetime.fromisoformat(at).timestamp() * 1000)
    except ValueError:
        return 0
