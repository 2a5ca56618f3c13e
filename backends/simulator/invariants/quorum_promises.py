"""Checks the invariants of the metadata quorum against the controllers' disks."""

from __future__ import annotations

from collections.abc import Sequence

from backends.simulator.events import (
    MetadataDiskLost,
    QuorumCommitted,
    QuorumLed,
    QuorumTruncated,
    QuorumWritten,
)
from backends.simulator.invariants.ground_truth import GroundTruth
from backends.simulator.invariants.promises import QuorumPromise
from backends.simulator.messages import MetadataUpdate
from backends.simulator.quorum.metadata_disk import MetadataDisk
from backends.simulator.quorum.raft_log import LogRecord, RecordBody, VotersRecord
from backends.simulator.world import World
from recovery.controller.cluster_image import ClusterImage
from recovery.membership.voters import ReplicaKey, VoterSet, majorities_overlap

Found = list[tuple[str, str]]
"""(name, detail) of each violation."""

REMEMBERED = 8192
"""Records that are remembered for comparison; older ones are in the snapshot of every replica."""


class QuorumPromises:
    """``_written`` maps (offset, epoch) of each record to its body and the epoch of the record before it.
    ``_epochs`` maps committed offsets to epochs. Both drop old records.
    """

    def __init__(self, world: World, known: GroundTruth) -> None:
        self._world = world
        self._known = known
        self._leaders: dict[int, ReplicaKey] = {}
        self._written: dict[tuple[int, int], tuple[RecordBody, int | None]] = {}
        self._epochs: dict[int, int] = {}
        self._end = 0
        self._moved: dict[int, int] = {}
        self._set: VoterSet | None = None
        self._lost_static = False
        self._lost: list[MetadataDisk] = []
        for number in world.topology.controllers:
            disk = world.quorum.disks[number]
            self.written(QuorumWritten(number, disk, 0))
        first = world.quorum.disks[world.topology.controllers[0]]
        self._commit(0, first.log.entries)
        self._set = first.log.voters
        self._leaders[first.epoch] = first.key

    def led(self, event: QuorumLed) -> Found:
        found: Found = []
        known = self._leaders.setdefault(event.epoch, event.key)
        if known != event.key:
            detail = f"{known} and {event.key} in epoch {event.epoch}"
            found.append((QuorumPromise.ONE_LEADER_AN_EPOCH, detail))
        log = self._world.quorum.disks[event.controller].log
        newest = self._end - 1
        epoch = self._epochs.get(newest)
        lacks = log.end < self._end or log.epoch_of(newest) not in (epoch, None)
        if lacks and self._lost_static:
            newest_payload = log.newest_payload(log.end)[1]
            left = (
                newest_payload.image if isinstance(newest_payload, MetadataUpdate) else ClusterImage({}, {})
            )
            self._known.rewind(self._world.image, left)
        elif lacks:
            detail = f"leader {event.key} of epoch {event.epoch} ends at {log.end} and lacks {newest}"
            found.append((QuorumPromise.COMMITTED_KEPT, detail))
        return found

    def written(self, event: QuorumWritten) -> Found:
        """Records with one offset and epoch are equal, and follow equal records: by induction the logs match."""
        log = event.disk.log
        found: Found = []
        for offset in range(max(event.first, log.start), log.end):
            entry = log.at(offset)
            before = log.epoch_of(offset - 1)
            body, previous = self._written.setdefault((offset, entry.epoch), (entry.body, before))
            if body != entry.body or (before is not None and previous not in (None, before)):
                detail = f"{offset} of epoch {entry.epoch} on controller {event.controller}"
                found.append((QuorumPromise.LOG_MATCHING, detail))
            if isinstance(entry.body, VotersRecord) and self._leaders.get(entry.epoch) == event.disk.key:
                found += self._change(event.disk, offset, entry.body.voters)
        while len(self._written) > REMEMBERED:
            del self._written[next(iter(self._written))]
        return found

    def _change(self, disk: MetadataDisk, offset: int, after: VoterSet) -> Found:
        """A leader writes a voter set: the previous set must be committed, and differ by one voter."""
        log = disk.log
        before_at, before = log.voters_before(offset)
        found: Found = []
        if before_at is not None and before_at >= self._end:
            detail = f"a set at {offset} while the one at {before_at} is not committed"
            found.append((QuorumPromise.ONE_CHANGE_AT_A_TIME, detail))
        if before_at is not None and _differences(before, after) > 1:
            detail = f"from {_names(before)} to {_names(after)} at {offset}"
            found.append((QuorumPromise.ONE_CHANGE_AT_A_TIME, detail))
        return found

    def truncated(self, event: QuorumTruncated) -> Found:
        """Only uncommitted records may be truncated."""
        if event.to >= self._end or self._lost_static or self._epochs.get(event.to) != event.epoch:
            return []
        detail = f"controller {event.controller} cuts at {event.to}, committed is up to {self._end}"
        return [(QuorumPromise.COMMITTED_KEPT, detail)]

    def committed(self, event: QuorumCommitted) -> Found:
        found: Found = []
        before = self._moved.get(event.epoch, 0)
        if event.offset <= before:
            detail = f"from {before} to {event.offset} in epoch {event.epoch}"
            found.append((QuorumPromise.HIGH_WATERMARK_RISES, detail))
        self._moved[event.epoch] = event.offset
        found += self._majority(event)
        if event.offset > self._end:
            found += self._commit(event.before, event.entries)
        return found

    def _majority(self, event: QuorumCommitted) -> Found:
        """Whether a majority of the voters holds the newest committed record on its disk."""
        newest = event.offset - 1
        epoch = event.disk.log.epoch_of(newest)
        holders = [disk.key for disk in self._disks() if disk.log.epoch_of(newest) == epoch]
        voting = [voter for voter in event.voters.voters if any(map(voter.matches, holders))]
        majority = event.voters.majority
        if len(voting) >= majority:
            return []
        leads_alone = event.voters.find(event.disk.key) is None
        if leads_alone and len(voting) + 1 >= majority:
            name = QuorumPromise.REMOVED_LEADER_NOT_COUNTED
        elif len(holders) >= majority:
            name = QuorumPromise.OBSERVER_NEVER_COUNTS
        else:
            name = QuorumPromise.MAJORITY_COMMITS
        holder_names = ", ".join(str(voter.key) for voter in voting) or "no voter"
        return [(name, f"{newest} is held by {holder_names}, the voters are {_names(event.voters)}")]

    def _disks(self) -> list[MetadataDisk]:
        """Lost disks included: what a disk held when its controller reported it to the leader counts."""
        return [*self._world.quorum.disks.values(), *self._lost]

    def _commit(self, first: int, entries: Sequence[LogRecord]) -> Found:
        found: Found = []
        for offset, entry in enumerate(entries, start=first):
            if offset < self._end:
                continue  # another leader had committed it
            self._epochs[offset] = entry.epoch
            if isinstance(entry.body, VotersRecord):
                before, self._set = self._set, entry.body.voters
                if before is not None and not majorities_overlap(_named(before, self._set), self._set):
                    detail = f"{_names(before)} and {_names(entry.body.voters)}"
                    found.append((QuorumPromise.VOTER_SETS_OVERLAP, detail))
        self._end = first + len(entries)
        while len(self._epochs) > REMEMBERED:
            del self._epochs[next(iter(self._epochs))]
        return found

    def disk_lost(self, event: MetadataDiskLost) -> Found:
        """Static voters are identified by node id, so an empty disk votes as before; KIP-853 solves this.

        The same holds for another voter that has not heard of the upgrade to kraft.version 1 yet.
        """
        self._lost.append(event.disk)
        if event.disk.log.kraft_version < 1 or self._goes_by_id(event.controller):
            self._lost_static = True
        return []

    def _goes_by_id(self, number: int) -> bool:
        """Whether another voter still identifies this one by its node id alone."""
        others = (disk for other, disk in self._world.quorum.disks.items() if other != number)
        sets = [disk.log.voters.voters for disk in others if disk.log.voters.find(disk.key) is not None]
        return any(
            voter.key.id == number and not voter.key.directory_id for voters in sets for voter in voters
        )


def _differences(before: VoterSet, after: VoterSet) -> int:
    """How many voters were added or removed."""
    old, new = set(_named(before, after).keys), set(after.keys)
    return len(old - new) + len(new - old)


def _named(before: VoterSet, after: VoterSet) -> VoterSet:
    """``before`` with the directory ids that ``after`` has for its static voters: not a change of voters."""
    ids = {key.id: key for key in after.keys}
    rows = [
        voter if voter.key.directory_id else voter._replace(key=ids.get(voter.key.id, voter.key))
        for voter in before.voters
    ]
    return VoterSet(tuple(rows))


def _names(voters: VoterSet) -> str:
    return ", ".join(map(str, voters.keys))
