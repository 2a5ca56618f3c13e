"""How far the leader knows every other replica to have come (KIP-595, DescribeQuorum)."""

from __future__ import annotations

from backends.simulator.loop import SECOND
from recovery.membership.voters import ReplicaKey, Voter, VoterSet

OBSERVER_SESSION = 300 * SECOND
"""An observer that has not fetched for so long is forgotten."""


class ReplicaProgress:
    """``offset`` is where it fetched from last, -1 before it has; times are virtual µs, None for never."""

    __slots__ = ("caught_up", "end_at_fetch", "fetched", "offset")

    def __init__(self) -> None:
        self.offset = -1
        self.fetched: int | None = None
        self.caught_up: int | None = None
        self.end_at_fetch = 0


class ProgressByReplica:
    """Every replica that has fetched from this leader, voters and observers, by its key."""

    def __init__(self) -> None:
        self._known: dict[ReplicaKey, ReplicaProgress] = {}

    def fetch(self, key: ReplicaKey, offset: int, end: int, now: int) -> None:
        """It fetches from ``offset`` while the leader's log ends at ``end``.

        It is caught up now if it has everything, and was at its last fetch if it has what there was then.
        """
        held = self._known.setdefault(key, ReplicaProgress())
        if offset >= end:
            held.caught_up = now
        elif 0 < held.end_at_fetch <= offset:
            held.caught_up = max(held.fetched or 0, held.caught_up or 0)
        held.offset = offset
        held.fetched = now
        held.end_at_fetch = end

    def caught_up_at_start(self, key: ReplicaKey, end: int) -> None:
        """Of a quorum that has been running."""
        self.fetch(key, end, end, 0)

    def of(self, voter: Voter) -> ReplicaProgress | None:
        """The voter's; by node id alone where its directory is not known (kraft.version 0)."""
        if voter.key.directory_id:
            return self._known.get(voter.key)
        matching = [held for key, held in self._known.items() if voter.matches(key)]
        return max(matching, key=lambda held: held.fetched or 0, default=None)

    def observers(self, voters: VoterSet) -> list[tuple[ReplicaKey, ReplicaProgress]]:
        """Those that are no voters, by key."""
        return [(key, held) for key, held in sorted(self._known.items()) if voters.find(key) is None]

    def everybody(self) -> list[tuple[ReplicaKey, ReplicaProgress]]:
        return sorted(self._known.items())

    def named(self, voters: VoterSet) -> None:
        """Static voters have directory ids now: what was known of their node ids, and of disks that they had, is
        nobody's any more.
        """
        for voter in voters.voters:
            for key in [key for key in self._known if key.id == voter.key.id and key != voter.key]:
                del self._known[key]

    def forget_silent(self, voters: VoterSet, now: int) -> None:
        """Drop observers whose session is over."""
        for key, held in list(self._known.items()):
            if now - (held.fetched or 0) > OBSERVER_SESSION and voters.find(key) is None:
                del self._known[key]
