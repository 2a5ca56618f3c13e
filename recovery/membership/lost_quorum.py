"""A quorum whose majority is gone for good: what each surviving copy of the metadata log holds, and how the
copies differ.

A copy is compared with the best one by Raft's rule (epoch of the last batch, then log end) by what its batches
hold, never by numbers alone: controllers that were each formatted ``--standalone`` have one cluster id and
share nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from recovery.membership.voters import ReplicaKey, Voter, VoterSet

NO_NODE = -1


class RunningNode(StrEnum):
    """Whether a process holds the lock of the directory."""

    RUNS = "runs"
    STOPPED = "stopped"
    NOT_KNOWN = "not known"


class StoredElection(NamedTuple):
    """The file ``quorum-state``: the epoch that the node was in, the leader that it knew, for whom it voted
    (-1: nobody)."""

    epoch: int
    leader: int
    voted: int


class CopyDefect(NamedTuple):
    """Why the reading of a copy ended before the last byte. ``torn``: at the end of the last segment stands no
    whole batch, as a killed process leaves it, ``size`` bytes; nothing that was whole is behind it.
    """

    torn: bool
    file: str
    size: int
    text: str


class QuorumCopy(NamedTuple):
    """One directory ``__cluster_metadata-0``. ``voters`` is the newest voter set that it holds, in force since
    ``voters_offset``; an empty set: it holds none (kraft.version 0). ``start`` is the log's first offset; what
    came before is in ``snapshot`` (offset and epoch at which it ends; None: there is none, or only that of the
    format). ``end`` and ``epoch`` are those of the last whole batch. ``last_ms``: the newest time of a batch;
    None: no batch. ``segment`` is the name of the last segment file ("": there is none), ``whole_bytes`` where
    its last whole batch ends. ``replaced`` are the voters that rebuilds in the log's past replaced, and that are
    none now, as far as the log names them; ``rebuilt_epoch`` is the quorum epoch of the newest rebuild, None: there
    was none.
    """

    path: str
    cluster_id: str
    node: int
    directory_id: str
    kraft_version: int
    voters: VoterSet
    voters_offset: int | None
    snapshot: tuple[int, int] | None
    start: int
    end: int
    epoch: int
    last_ms: int | None
    segment: str
    whole_bytes: int
    election: StoredElection | None
    defect: CopyDefect | None
    running: RunningNode
    replaced: tuple[Voter, ...] = ()
    rebuilt_epoch: int | None = None

    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.node, self.directory_id)

    @property
    def position(self) -> tuple[int, int]:
        """By which Raft compares two logs."""
        return self.epoch, self.end

    @property
    def is_voter(self) -> bool:
        return self.voters.find(self.key) is not None

    @property
    def epochs_known(self) -> int:
        """The newest quorum epoch that the directory knows of."""
        return max(self.epoch, -1 if self.election is None else self.election.epoch)


class CopyRelation(StrEnum):
    """How a copy stands to the one that it is compared with."""

    SAME = "the same"
    PREFIX = "same prefix"
    DIVERGES = "diverges"
    NOTHING_SHARED = "nothing shared"
    OTHER_CLUSTER = "another cluster"
    NOT_COMPARED = "not compared"


class ComparedQuorumCopy(NamedTuple):
    """``agrees_to``: below this offset both hold the same batches, as far as both have them; None: not known.
    ``why`` tells why the two were not compared, "" otherwise.
    """

    copy: QuorumCopy
    relation: CopyRelation
    agrees_to: int | None
    why: str = ""

    @property
    def lost_from(self) -> int | None:
        """The offset from which on the copy has what the other one lacks; None: it has nothing beyond."""
        if self.agrees_to is None or self.relation is CopyRelation.SAME:
            return None
        return self.agrees_to if self.agrees_to < self.copy.end else None


def best_first(copies: Iterable[QuorumCopy]) -> tuple[QuorumCopy, ...]:
    """By Raft's rule for votes; of equal ones a voter's first, then by node."""
    return tuple(sorted(copies, key=lambda c: (-c.epoch, -c.end, not c.is_voter, c.node, c.path)))


def compared(
    chosen: QuorumCopy, copy: QuorumCopy, batches: tuple[int | None, int] | str | None
) -> ComparedQuorumCopy:
    """``copy`` beside the ``chosen`` one. ``batches``: from which offset on their batches differ (None:
    nowhere) and how many batches both have; or why they could not be compared. Batches are named by offset,
    leader epoch and checksum.
    """
    if copy.path == chosen.path:
        return ComparedQuorumCopy(copy, CopyRelation.SAME, copy.end)
    if copy.cluster_id and chosen.cluster_id and copy.cluster_id != chosen.cluster_id:
        return ComparedQuorumCopy(copy, CopyRelation.OTHER_CLUSTER, None)
    return ComparedQuorumCopy(copy, *relation_by_batches(chosen.end, copy.end, batches))


def relation_by_batches(
    chosen_end: int, end: int, batches: tuple[int | None, int] | str | None
) -> tuple[CopyRelation, int | None, str]:
    """How a log that ends at ``end`` stands to the chosen one, to which offset the two agree, and why they were not
    compared; ``batches`` as in :func:`compared`.
    """
    if batches is None or isinstance(batches, str):
        return CopyRelation.NOT_COMPARED, None, batches or ""
    differs, count = batches
    if differs is not None:
        relation = CopyRelation.DIVERGES if count else CopyRelation.NOTHING_SHARED
        return relation, differs if count else None, ""
    if not count:
        why = "the two have no batch of the same offset: one begins behind a snapshot where the other ends"
        return CopyRelation.NOT_COMPARED, None, why
    return CopyRelation.SAME if end == chosen_end else CopyRelation.PREFIX, min(end, chosen_end), ""


def committed_to(chosen: QuorumCopy, compared_copies: Sequence[ComparedQuorumCopy]) -> tuple[int, str]:
    """The offset below which everything was committed for certain, and the reason. The high watermark is in no
    file, so what lies beyond may have been committed too.

    A snapshot is only made of what is committed. What a majority of the voters has on disk in the newest epoch
    that any copy knows is committed (Raft's rule needs a record of the leader's own epoch; a leader begins with
    one).
    """
    alike = [found for found in compared_copies if found.agrees_to is not None]
    newest = max((f.copy.snapshot[0] for f in alike if f.copy.snapshot is not None), default=0)
    proof = (
        (newest, f"a snapshot ends at offset {newest:,}")
        if newest
        else (0, "there is no snapshot, and no majority of the voters among the copies")
    )
    voters = chosen.voters
    known = max(f.copy.epochs_known for f in alike)
    ends: dict[ReplicaKey, int] = {}
    for f in alike:
        voter = voters.find(f.copy.key)
        if f.copy.epoch == known and voter is not None:
            # The same disk may have been given twice, as itself and as a copy of it.
            ends[voter.key] = max(ends.get(voter.key, 0), min(f.agrees_to or 0, f.copy.end))
    if voters.voters and len(ends) >= voters.majority:
        mark = sorted(ends.values(), reverse=True)[voters.majority - 1]
        if mark > proof[0]:
            return mark, f"{voters.majority} of {len(voters.voters)} voters have it in epoch {known}"
    return proof


def voter_path(old: VoterSet, new: VoterSet) -> tuple[VoterSet, ...]:
    """The voter sets that lead from ``old`` to ``new``, each with one voter more or fewer than the one before, as
    KIP-853 has it. Kafka 3.9.1 and 4.3.1 only log a set without a majority in common with the one before
    (VoterSetHistory.addAt); other builds end there.

    Voters that stay but have another endpoint are in the last set as they are in ``new``.
    """
    wanted, ids = {voter.key for voter in new.voters}, {voter.key.id for voter in new.voters}
    leaving = sorted((key for key in old.keys if key not in wanted), key=lambda key: key.id not in ids)
    joining = [voter for voter in new.voters if voter.key not in set(old.keys)]
    # The last old voter leaves only when a new one is in: a set is never empty. One node has one voter at a time.
    stays_until_last = leaving[-1:] if len(leaving) == len(old.keys) and leaving[-1].id not in ids else []
    steps: list[VoterSet] = []
    now = old
    for key in leaving[: len(leaving) - len(stays_until_last)]:
        now = now.minus(key)
        steps.append(now)
    for voter in joining:
        now = now.plus(voter)
        steps.append(now)
    for key in stays_until_last:
        now = now.minus(key)
        steps.append(now)
    steps = [voters for voters in steps if voters.voters]
    return (*steps[:-1], new) if steps and set(steps[-1].keys) == set(new.keys) else (*steps, new)


EPOCH_MARGIN = 1_000
"""So far above every quorum epoch that any directory knows the rebuilt log goes on: an old voter that was not
looked at may have been in a newer epoch. Each election is one epoch."""


def rebuilt_epoch(copies: Iterable[QuorumCopy]) -> int:
    """The quorum epoch of what a rebuild appends."""
    return max(copy.epochs_known for copy in copies) + EPOCH_MARGIN


def endpoints_of(voters: VoterSet) -> Mapping[int, tuple[str, int] | None]:
    """Where each voter is registered to listen, host and port; None: not known."""
    return {
        voter.key.id: (voter.endpoints[0].host, voter.endpoints[0].port) if voter.endpoints else None
        for voter in voters.voters
    }
