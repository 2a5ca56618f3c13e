"""What to do before brokers start whose disks may hold the only copies of records, and what became of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from recovery.acknowledged.disks_to_read import DisksToRead, MissedElection
from recovery.model import TopicPartition
from recovery.unread_brokers import UnreadBrokers, failed_disks, without_disks
from recovery.unread_disks import UnreadDisk, UnreadDiskState, by_broker
from recovery.wording.quantity_text import (
    both,
    counted,
    either,
    ids,
    printable,
    simulated_time,
    some_of,
    utc_text,
)

if TYPE_CHECKING:
    from recovery.disk_evidence import DiskReading
    from recovery.plan.values import PlanRow

READ_DISK = "ktriage rescue read --to DIR --from-disk LOG_DIR"
"""The command, with its arguments named: the log dirs are paths of another host."""


_LEFT_OUT = {
    "future": "for a move between log dirs",
    "deleted": "that the broker was deleting; one that is renamed to end in -stray is read",
}


def left_out_text(reading: DiskReading) -> str:
    """The folders on a disk that are no logs of replicas, and what they are; "" without any."""
    kinds = Counter(kind for kind, _ in reading.left_out)
    if not kinds:
        return ""
    parts = (
        f"{counted(count, f'{kind} folder')} ({_LEFT_OUT.get(kind, 'no replica')})"
        for kind, count in kinds.items()
    )
    names = some_of([folder for _, folder in reading.left_out])
    return f"left out, and not in the rescue: {' and '.join(parts)}: {names}"


def read_before_start(brokers: Sequence[int]) -> str:
    """``before broker 1 or 3 is started, read their disks (COMMAND)``: each truncates its log when it starts."""
    disks = "its disk" if len(brokers) == 1 else "their disks"
    return f"before broker {either(sorted(brokers))} is started, read {disks} ({READ_DISK})"


def cut_off_at_start(brokers: Sequence[int]) -> str:
    """What happens otherwise, as the end of a sentence about the records."""
    return f"cut off when {'it starts' if len(brokers) == 1 else 'they start'}"


def lost_with_disk(brokers: Sequence[int]) -> str:
    """The same of failed disks."""
    return f"lost with {'its disk' if len(brokers) == 1 else 'their disks'}"


def stop_and_read(brokers: Sequence[int]) -> str:
    """What saves the writes that old leaders took after others were elected: they truncate when they hear of it."""
    one = len(brokers) == 1
    whose = "the process of broker" if one else "the processes of brokers"
    disks, network = ("its disk", "its network") if one else ("their disks", "their network")
    return f"stop {whose} {both(sorted(brokers))}, and read {disks} ({READ_DISK}) before {network} is mended"


def disk_first_text(broker: int, partitions: Sequence[TopicPartition]) -> str:
    """What is to be done about one broker that was down when leaders of the partitions were elected."""
    names = printable(some_of(partitions))
    return f"{read_before_start((broker,))}: what only it holds of {names} is {cut_off_at_start((broker,))}"


def failed_disk_text(broker: int, partitions: Sequence[TopicPartition]) -> str:
    """What is to be done about a disk that had failed, of a broker that was up."""
    names = printable(some_of(partitions))
    return (
        f"before the failed disk of broker {broker} is replaced, read it ({READ_DISK}): what only it holds of"
        f" {names} is lost with it"
    )


def came_back_text(broker: int, partitions: Sequence[TopicPartition]) -> str:
    """The broker was started, and its disk was not read before."""
    names = printable(some_of(partitions))
    return (
        f"broker {broker} came back unread: what it alone held of {names} is gone (a copy of its disk that was made"
        " before can still be read: ktriage rescue read)"
    )


def no_replica_text(broker: int, partitions: Sequence[TopicPartition]) -> str:
    """The replica of the broker was taken out of the assignment while the broker was down."""
    return (
        f"broker {broker} has no replica of {printable(some_of(partitions))} any more: its log is not cut off when"
        f" it starts, but set aside under another name (-stray): {_READ_STRAY}"
    )


def stray_text(broker: int, partitions: Sequence[TopicPartition]) -> str:
    """The same broker is up again."""
    return (
        f"broker {broker} is up without a replica of {printable(some_of(partitions))}, and has set its log aside"
        f" under another name (-stray): {_READ_STRAY}"
    )


_READ_STRAY = f"read it there ({READ_DISK}), then assign the replica again (ktriage heal assign-again)"


_TEXTS: Mapping[UnreadDiskState, Callable[[int, Sequence[TopicPartition]], str]] = {
    UnreadDiskState.AWAY: disk_first_text,
    UnreadDiskState.DISK_FAILED: failed_disk_text,
    UnreadDiskState.NO_REPLICA: no_replica_text,
    UnreadDiskState.SET_ASIDE: stray_text,
    UnreadDiskState.CAME_BACK: came_back_text,
}


def unread_disk_lines(
    disks: Iterable[UnreadDisk], outcomes: Mapping[UnreadDisk, UnreadDiskState] | None = None
) -> Iterator[str]:
    """One line for each broker and outcome, what is still to be done first. ``outcomes`` is None where no cluster
    was asked; a disk that has none is of a partition that was not seen, and left out.
    """
    wanted = list(disks)
    if outcomes is None:
        for broker, partitions in by_broker(one for one in wanted if not one.set_aside).items():
            yield f"{disk_first_text(broker, partitions)} (what became of it since was not looked at here)"
        for broker, partitions in by_broker(one for one in wanted if one.set_aside).items():
            yield no_replica_text(broker, partitions)
        return
    for outcome, text in _TEXTS.items():
        for broker, partitions in by_broker(one for one in wanted if outcomes.get(one) is outcome).items():
            yield text(broker, partitions)


def unread_broker_lines(rows: Iterable[PlanRow], unread: UnreadBrokers) -> Iterator[str]:
    """About the elections of the rows: one line for each broker whose disk failed, then for each that is down, and
    that was not read.
    """
    failed, down = _failed_and_down(rows, unread)
    for broker, partitions in failed:
        yield failed_disk_text(broker, partitions)
    for broker, partitions in down:
        yield disk_first_text(broker, partitions)


def unread_brokers_in_short(rows: Iterable[PlanRow], unread: UnreadBrokers, most: int) -> Iterator[str]:
    """The same as a warning, one sentence for each broker; at most so many of each kind."""
    failed, down = _failed_and_down(rows, unread)
    for broker, partitions in failed[:most]:
        names = printable(some_of(partitions, 2))
        yield f"The disk of broker {broker} failed and may hold more of {names}: read it before it is replaced."
    for broker, partitions in down[:most]:
        names = printable(some_of(partitions, 1))
        then = "after the election, read its disk before it starts"
        yield f"Broker {broker} is down and may hold more of {names}: {then}."


_Brokers = list[tuple[int, tuple[TopicPartition, ...]]]


def _failed_and_down(rows: Iterable[PlanRow], unread: UnreadBrokers) -> tuple[_Brokers, _Brokers]:
    """What keeps each broker from being read, with its partitions: its disk failed, or it is down."""
    failed = failed_disks(rows, unread)
    kinds = (failed, without_disks(unread, failed))
    first, second = (
        list(by_broker(UnreadDisk(broker, tp) for tp, brokers in kind.items() for broker in brokers).items())
        for kind in kinds
    )
    return first, second


def unread_in_short(brokers: Sequence[int]) -> str:
    """For a title bar, such as ``read the disk of 3 before it starts``; "" without brokers."""
    if not brokers:
        return ""
    disks, they = ("disk", "it starts") if len(brokers) == 1 else ("disks", "they start")
    return f"read the {disks} of {ids(brokers)} before {they}"


def may_hold_text(brokers: Sequence[int], missed: MissedElection | None, count: int, lost: str) -> str:
    """Why, of ``count`` partitions; ``missed`` is the election of one of them, ``lost`` the end of the sentence
    (:func:`cut_off_at_start`, :func:`lost_with_disk`).
    """
    it = "it" if len(brokers) == 1 else "they"
    hold, cut = f"{it} may hold acknowledged records that", f"and that are {lost}"
    if missed is None:
        return f"{hold} the leader lacks {cut}"
    how = "elected uncleanly" if missed.unclean else "elected with a log that may have been cut"
    how = f"{how} at {_when(missed.since_ms)}"
    same = missed.leader == missed.elected
    if count == 1:
        leader = f"leader {missed.leader} of {missed.tp}"
        lacks = (
            f"{leader} ({how}) lacks" if same else f"{leader} lacks since broker {missed.elected} was {how},"
        )
        return f"{hold} {lacks} {cut}"
    example = f"leader {missed.leader}, {how}" if same else f"broker {missed.elected} was {how}"
    return f"for {count:,} partitions {hold} the leader lacks {cut} ({missed.tp}: {example})"


def _when(ms: int) -> str:
    return simulated_time(ms) or f"{utc_text(ms)[:16]} UTC"


def not_judged_text(unread: DisksToRead) -> str:
    """For how many partitions that is not known, and why; "" where it is known."""
    if not unread.not_judged:
        return ""
    return printable(
        f"whether brokers that are down hold acknowledged records which the leader lacks:"
        f" {counted(unread.not_judged, 'partition')} not judged ({unread.why})"
    )
