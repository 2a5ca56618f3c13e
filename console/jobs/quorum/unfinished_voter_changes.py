"""Voter changes of earlier runs without a recorded end: checks whether the voter set shows each of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from backends.base.membership import KRAFT_VERSION, Membership
from console.journal.change_kinds import ADD_VOTER, REMOVE_VOTER, UPGRADE_FEATURE, OpenChange
from console.reading.quorum_state import settled_quorum
from recovery.membership.quorum import Quorum
from recovery.membership.voters import ReplicaKey


class EntryCheck(NamedTuple):
    """An entry, whether it can be ``closed``, and what the quorum shows of it (``evidence``)."""

    entry: OpenChange
    closed: bool
    evidence: str


async def check_entries(membership: Membership, entries: Sequence[OpenChange]) -> tuple[EntryCheck, ...]:
    """Reads the voters once for all of ``entries``. Raises NoLeader, BackendError."""
    if not entries:
        return ()
    quorum = (await settled_quorum(membership)).quorum
    return tuple(_check_entry(entry, quorum) for entry in entries)


def _check_entry(entry: OpenChange, quorum: Quorum) -> EntryCheck:
    detail = entry.detail
    if entry.action == UPGRADE_FEATURE and detail.get("feature") == KRAFT_VERSION:
        return EntryCheck(entry, True, f"{KRAFT_VERSION} is {quorum.kraft_version}")
    if entry.action not in (ADD_VOTER, REMOVE_VOTER):
        return EntryCheck(entry, False, "checking it needs the brokers: give --bootstrap-server")
    key = ReplicaKey(int(detail.get("voter", -1)), str(detail.get("directoryId", "")))
    if quorum.change_pending is not False:
        return EntryCheck(
            entry, False, "a change of the voters is written and not yet committed: run this again"
        )
    votes = key in quorum.voters.keys
    made = "was made" if votes == (entry.action == ADD_VOTER) else "was not made"
    return EntryCheck(entry, True, f"{key} is {'a' if votes else 'no'} voter: the change {made}")
