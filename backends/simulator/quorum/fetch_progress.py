"""How far every other replica has fetched, as the leader knows it (KIP-595, DescribeQuorum)."""

from __future__ import annotations

from backends.simulator.loop import SECOND
from recovery.membership.voters import ReplicaKey, Voter, VoterSet

OBSERVER_SESSION = 300 * SECOND
"""An observer is dropped after so many µs without a fetch."""


class ReplicaProgress:
    """``offset`` is that of its last fetch, -1 before the first. Times are virtual µs, None for never."""

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

        It is caught up now if it has the whole log. It was caught up at its previous fetch if it now has what
        the log had then.
        """
        progress = self._known.setdefault(key, ReplicaProgress())
        if offset >= end:
            progress.caught_up = now
        elif 0 < progress.end_at_fetch <= offset:
            progress.caught_up = max(progress.fetched or 0, progress.caught_up or 0)
        progress.offset = offset
        progress.fetched = now
        progress.end_at_fetch = end

    def caught_up_at_start(self, key: ReplicaKey, end: int) -> None:
        """For a quorum that was loaded running."""
        self.fetch(key, end, end, 0)

    def of(self, voter: Voter) -> ReplicaProgress | None:
        """The progress of the voter; by node id alone if its directory is unknown (kraft.version 0)."""
        if voter.key.directory_id:
            return self._known.get(voter.key)
        matching = [progress for key, progress in self._known.items() if voter.matches(key)]
        return max(matching, key=lambda progress: progress.fetched or 0, default=None)

    def observers(self, voters: VoterSet) -> list[tuple[ReplicaKey, ReplicaProgress]]:
        """The replicas that are not voters, by key."""
        return [(key, progress) for key, progress in sorted(self._known.items()) if voters.find(key) is None]

    def everybody(self) -> list[tuple[ReplicaKey, ReplicaProgress]]:
        return sorted(self._known.items())

    def named(self, voters: VoterSet) -> None:
        """Static voters have directory ids now: drop what was known of their node ids alone, or of earlier
        disks.
        """
        for voter in voters.voters:
            for key in [key for key in self._known if key.id == voter.key.id and key != voter.key]:
                del self._known[key]

    def forget_silent(self, voters: VoterSet, now: int) -> None:
        """Drop observers that have not fetched for a session."""
        for key, progress in list(self._known.items()):
            if now - (progress.fetched or 0) > OBSERVER_SESSION and voters.find(key) is None:
                del self._known[key]
