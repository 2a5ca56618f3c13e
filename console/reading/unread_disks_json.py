"""Disks that nobody read before an election, as JSON (docs/output.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from recovery.unread_brokers import UnreadBrokers
from recovery.unread_disks import UnreadDisk, UnreadDiskState


def unread_disks_json(
    disks: Iterable[UnreadDisk], states: Mapping[UnreadDisk, UnreadDiskState] | None
) -> list[dict[str, object]]:
    """``state`` is null where no cluster was asked, or the partition was not seen. A broker whose disk failed was
    not started since.
    """
    failed, away = UnreadDiskState.DISK_FAILED, UnreadDiskState.AWAY
    known = {disk: away if state is failed else state for disk, state in (states or {}).items()}
    return [
        {
            "broker": disk.broker,
            "topic": disk.tp.topic,
            "partition": disk.tp.partition,
            "state": known[disk].value if disk in known else None,
        }
        for disk in disks
    ]


def unread_brokers_json(unread: UnreadBrokers) -> list[dict[str, object]]:
    """Of elections that were just sent: the brokers were down."""
    disks = (UnreadDisk(broker, tp) for tp, brokers in sorted(unread.items()) for broker in brokers)
    found = list(disks)
    return unread_disks_json(found, dict.fromkeys(found, UnreadDiskState.AWAY))
