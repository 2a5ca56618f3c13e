"""The plan that makes one surviving directory of the metadata log the only voter of its cluster's quorum, when
a majority of the voters is gone for good. KIP-853 has no such step: what is appended is the control record with
which each reconfiguration ends (VotersRecord), in a quorum epoch that no old voter can have been in.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from recovery.membership.lost_quorum import (
    ComparedQuorumCopy,
    CopyRelation,
    QuorumCopy,
    RunningNode,
    rebuilt_epoch,
    voter_path,
)
from recovery.membership.replacement import ReplacementHeader
from recovery.membership.restored_topics import RestoredTopic, read_restored_topic, restored_topic_members
from recovery.membership.rewritten_partitions import (
    RewrittenPartition,
    partition_members,
    read_partition,
    record_values,
)
from recovery.membership.stray_replicas import StrayReplica, read_stray, stray_members
from recovery.membership.voters import ReplicaKey, Voter, VoterEndpoint, VoterSet
from recovery.wording.quantity_text import both

FORMAT = "ktriage.quorum-rebuild/7"
WARNING = "the digest is over all that decides; a plan that was edited is refused"
MAX_EPOCH = (1 << 31) - 1
NO_VOTERS = VoterSet(())
_VOTER = re.compile(r"(\d+)@(?:([A-Za-z0-9_.-]+)://)?(\[[^\]\s]+\]|[^:\[\]\s/]+):(\d+)")


class RebuildError(ValueError):
    """A rebuild that cannot be planned, or a plan that cannot be read; one line for a person."""


class GivenVoter(NamedTuple):
    """``--voter``: the node that becomes the only voter, and where it listens. ``listener`` "": as the old ones."""

    node: int
    listener: str
    host: str
    port: int


class PlannedFile(NamedTuple):
    """A file of the directory as it was when the plan was made."""

    name: str
    size: int
    sha256: str


class TargetDirectory(NamedTuple):
    """The log dir of the controller that becomes the voter: whose it is by its meta.properties. ``path`` is its
    directory of the metadata log, which need not exist yet.
    """

    path: str
    cluster_id: str
    node: int
    directory_id: str
    running: RunningNode
    blank: bool


class RehearsalReport(NamedTuple):
    """What a controller of that ``kafka`` version made of a copy: after how many milliseconds it led (None: not
    within ``limit_ms``), in which quorum epoch, and how many ``topics``, ``partitions``, ``configs`` and ``acls``
    it had. ``differences`` from what the log implies, and the ``errors`` of its own log where it did not lead, the
    cause first. ``ended_after_ms``: it ended on its own; None: it did not.
    """

    at: str
    by: str
    kafka: str
    limit_ms: int
    led_after_ms: int | None
    epoch: int
    counts: Mapping[str, int]
    differences: tuple[str, ...]
    errors: tuple[str, ...]
    ended_after_ms: int | None = None

    @property
    def is_passed(self) -> bool:
        """Whether it led and had exactly what was expected."""
        return self.led_after_ms is not None and not self.differences


@dataclass(frozen=True, slots=True)
class RebuildPlan:
    """``source`` is the directory that is copied, ``target`` the one that is written: the same one, unless the
    source is another node's. ``files`` are those of the source. The log of ``source`` is whole up to
    ``log_end``, where ``segment`` has ``whole_bytes``; ``cut_bytes`` behind that are a torn batch, and are left
    out. From there on the voter sets ``steps`` are appended in one batch of quorum epoch ``epoch``, the last of
    them being the new voter alone, and behind them the ``partitions``; the copy knows the ids of
    ``known_topics``, and the ``restored_topics`` are those of which only brokers' disks know. ``newer`` is
    the voter set of a copy that goes on beyond the chosen one, or shares nothing with it; empty: there is none.
    ``replaced`` are the voters that rebuilds in the past of a copy replaced. ``ahead`` are the nodes whose metadata
    log goes on beyond the chosen copy, or may; their snapshots above ``ahead_from`` may be of changes it lacks.
    ``ahead_dirs``: where their metadata logs were given, by node, as far as they were.
    ``losses`` and ``unchecked`` are what the operator has accepted, in words. ``strays`` are the scanned folders
    that the quorum has no place for. ``rehearsal`` None: there was none
    yet.
    """

    header: ReplacementHeader
    cluster_id: str
    source: str
    target: str
    key: ReplicaKey
    backup: str
    files: tuple[PlannedFile, ...]
    segment: str
    whole_bytes: int
    cut_bytes: int
    log_end: int
    last_epoch: int
    epoch: int
    time_ms: int
    old: VoterSet
    steps: tuple[VoterSet, ...]
    dead: tuple[int, ...]
    brokers: tuple[int, ...]
    losses: tuple[str, ...]
    unchecked: tuple[str, ...]
    partitions: tuple[RewrittenPartition, ...] = ()
    known_topics: tuple[str, ...] = ()
    restored_topics: tuple[RestoredTopic, ...] = ()
    rehearsal: RehearsalReport | None = None
    newer: VoterSet = NO_VOTERS
    replaced: VoterSet = NO_VOTERS
    ahead: tuple[int, ...] = ()
    ahead_from: int = 0
    strays: tuple[StrayReplica, ...] = ()
    ahead_dirs: tuple[tuple[int, str], ...] = ()

    @property
    def other_voters(self) -> tuple[Voter, ...]:
        """Whoever has or had a vote as far as is known, but the new voter: each is dead, and does not answer."""
        return other_voters((self.old, self.newer, self.replaced), self.key)

    @property
    def values(self) -> list[bytes]:
        """The data records that are appended behind the voters."""
        configs = (value for topic in self.restored_topics for value in topic.values)
        return [*record_values(self.partitions, self.known_topics), *configs]

    @property
    def end(self) -> int:
        """Where the log ends with all that is appended."""
        return self.log_end + len(self.steps) + len(self.values)

    @property
    def voter(self) -> Voter:
        return self.steps[-1].voters[0]

    @property
    def in_place(self) -> bool:
        return self.source == self.target


def address_notes(plan: RebuildPlan) -> tuple[str, ...]:
    """What is odd about the address of the new voter, which brokers and later voters must reach."""
    voter = plan.voter
    known = (plan.old, plan.newer, plan.replaced)
    here = {endpoint.address for endpoint in voter.endpoints}
    notes = []
    own = {
        at.address: None
        for voters in known[:2]
        for old in voters.voters
        if old.key.id == voter.key.id
        for at in old.endpoints
    }
    if own and not here & set(own):
        notes.append(
            f"controller {voter.key.id} is registered at {', '.join(own)} in the log, and is to listen at"
            f" {', '.join(here)}: is that its own listener?"
        )
    for voters in known:
        for old in voters.voters:
            taken = here & {at.address for at in old.endpoints}
            if taken and old.key.id != voter.key.id:
                notes.append(
                    f"{', '.join(taken)} is the address of voter {old.key.id}, which is dead: does controller"
                    f" {voter.key.id} listen there now?"
                )
    return tuple(dict.fromkeys(notes))


def parsed_voter(text: str) -> GivenVoter:
    """``NODE@HOST:PORT`` or ``NODE@LISTENER://HOST:PORT``. Raises RebuildError."""
    found = _VOTER.fullmatch(text.strip())
    if found is None or not 0 < int(found[4]) < 1 << 16 or int(found[1]) >= 1 << 31:
        raise RebuildError(f"--voter {text!r}: give NODE@HOST:PORT, such as 100@controller-100:9093")
    return GivenVoter(int(found[1]), found[2] or "", found[3].strip("[]"), int(found[4]))


def new_voter(wanted: GivenVoter, key: ReplicaKey, old: VoterSet) -> Voter:
    """The voter record for it, with the listener of the old voters. Raises RebuildError where they have several."""
    listeners = {endpoint.listener for voter in old.voters for endpoint in voter.endpoints}
    listener = wanted.listener
    if not listener:
        if len(listeners) != 1:
            named = ", ".join(sorted(listeners)) or "none"
            raise RebuildError(
                f"--voter {wanted.node}: the old voters have several listeners ({named}): give"
                f" {wanted.node}@LISTENER://HOST:PORT"
            )
        (listener,) = listeners
    before = next((voter for voter in old.voters if voter.key.id == key.id), old.voters[0])
    return Voter(key, (VoterEndpoint(listener, wanted.host, wanted.port),), before.kraft_versions)


def other_voters(sets: Iterable[VoterSet], key: ReplicaKey) -> tuple[Voter, ...]:
    """The voters of all sets but ``key``; one whose address was changed is there with each of them."""
    return tuple(
        voter for voter in dict.fromkeys(v for voters in sets for v in voters.voters) if voter.key != key
    )


STATIC_VOTERS = (
    "On every node, brokers included, set controller.quorum.voters to the surviving controller alone, as"
    " ID@HOST:PORT, and restart them all, that controller first. No controller must start again with the former"
    " setting: a majority of the former voters would lead another quorum, and no epoch tells the two apart"
)
"""The way out where the voters are a setting (kraft.version 0), without full stop."""


def refusals(
    copy: QuorumCopy,
    target: TargetDirectory,
    voters: Sequence[GivenVoter],
    dead: Collection[int],
    brokers: Collection[int],
    *,
    newer: VoterSet,
    replaced: VoterSet = NO_VOTERS,
) -> tuple[str, ...]:
    """Why nothing may be written, each in one line; none: it may. Without the network and what the other copies
    hold; ``newer`` are the voters that they know, ``replaced`` those that rebuilds in their past replaced.
    """
    return (
        *_copy_refusals(copy),
        *_target_refusals(copy, target, voters, brokers),
        *(_death_refusals(copy.voters, newer, replaced, target, dead) if copy.voters.voters else ()),
    )


def newer_voters(chosen: QuorumCopy, others: Sequence[ComparedQuorumCopy]) -> VoterSet:
    """The voters of the best copy that goes on beyond the chosen one, or shares nothing with it: they may lead,
    whatever the chosen copy says. Empty where they are those of the chosen copy.
    """
    beyond = [
        one.copy
        for one in others
        if one.relation is CopyRelation.NOTHING_SHARED
        or (one.relation is not CopyRelation.OTHER_CLUSTER and one.copy.position > chosen.position)
    ]
    best = max(beyond, key=lambda copy: copy.position, default=chosen)
    return NO_VOTERS if set(best.voters.keys) == set(chosen.voters.keys) else best.voters


def replaced_voters(others: Iterable[ComparedQuorumCopy]) -> VoterSet:
    """The voters that rebuilds in the past of any copy of the cluster replaced. Their disks may come back, and a
    majority of them elects without asking anybody.
    """
    found = (
        voter
        for one in others
        if one.relation is not CopyRelation.OTHER_CLUSTER
        for voter in one.copy.replaced
    )
    return VoterSet(tuple(dict.fromkeys(found)))


def nodes_ahead(chosen: QuorumCopy, others: Iterable[ComparedQuorumCopy]) -> tuple[int, ...]:
    """The nodes with anything beyond the chosen copy, idle records too. One that runs ends when it finds the
    rebuilt quorum. Kafka cuts its log off where the two differ, and keeps its snapshots: with one from beyond that
    place the node then passes over what the quorum has at these offsets (seen on 4.3.1).
    """
    found = {
        one.copy.node
        for one in others
        if one.copy.path != chosen.path
        and one.relation is not CopyRelation.OTHER_CLUSTER
        and (one.agrees_to is None or one.lost_from is not None)
    }
    return tuple(sorted(found))


def ahead_from(chosen: QuorumCopy, others: Iterable[ComparedQuorumCopy]) -> int:
    """Up to this offset every copy that goes on beyond the chosen one is the same; 0: of one nobody knows."""
    ahead = nodes_ahead(chosen, others := tuple(others))
    return min([chosen.end, *(one.agrees_to or 0 for one in others if one.copy.node in ahead)])


def is_forked(chosen: QuorumCopy, others: Iterable[ComparedQuorumCopy]) -> bool:
    """Whether another copy and the chosen one each have changes of their own, or may: two quorums went on from one
    log, as where old voters led on beside a rebuilt quorum.
    """
    return any(
        one.agrees_to is None if one.lost_from is None else one.lost_from < chosen.end
        for one in others
        if one.relation is not CopyRelation.OTHER_CLUSTER
    )


def voters_to_name(chosen: QuorumCopy, others: Sequence[ComparedQuorumCopy]) -> tuple[int, ...]:
    """Whom a rebuild from the chosen copy must name as dead: all that any copy knows to have, or to have had, a
    vote, but the copy's own node where it is a voter.
    """
    own = chosen.voters.find(chosen.key)
    sets = (chosen.voters, newer_voters(chosen, others), replaced_voters(others))
    found = {voter.key.id for voters in sets for voter in voters.voters}
    return tuple(sorted(found if own is None else found - {own.key.id}))


def whole_refusals(
    copy: QuorumCopy, target: TargetDirectory, *, newer: VoterSet, loses: bool
) -> tuple[str, ...]:
    """Why a log is not rebuilt whose only voter is the node itself. ``loses``: another copy or a disk has what the
    log lacks.
    """
    alone = set(copy.voters.keys) == {ReplicaKey(target.node, target.directory_id)}
    if target.path != copy.path or not alone or copy.defect is not None or newer.voters or loses:
        return ()
    return (f"{copy.path}: controller {target.node} is the only voter already. Nothing is lost: start it",)


def _copy_refusals(copy: QuorumCopy) -> list[str]:
    found = []
    if copy.defect is not None and not copy.defect.torn:
        found.append(
            f"{copy.path}: the log is broken before its end ({copy.defect.file}: {copy.defect.text}): what"
            " stands behind"
            f" offset {copy.end} would be lost; choose another copy"
        )
    if not copy.cluster_id:
        found.append(f"{copy.path}: which cluster it belongs to is not known: meta.properties names none")
    if copy.kraft_version < 1:
        found.append(
            f"kraft.version is {copy.kraft_version}: the voters are no record, nothing needs to be written."
            f" {STATIC_VOTERS}"
        )
    elif not copy.voters.voters:
        found.append(
            f"{copy.path}: it has no voter set, so who is to be dead is not known; choose another copy"
        )
    if copy.end < 1:
        found.append(f"{copy.path}: its log is empty")
    return found


def _target_refusals(
    copy: QuorumCopy, target: TargetDirectory, voters: Sequence[GivenVoter], brokers: Collection[int]
) -> list[str]:
    found = []
    if len(voters) != 1:
        found.append(
            f"--voter is given {len(voters)} times: the quorum begins with one voter; the others are added"
            " to it"
            " afterwards, each by quorum add"
        )
    if target.cluster_id != copy.cluster_id:
        found.append(
            f"{target.path}: its meta.properties names cluster {target.cluster_id or '(none)'}, the copy is"
            " of"
            f" {copy.cluster_id}"
        )
    if target.node < 0 or not target.directory_id:
        found.append(f"{target.path}: meta.properties names no node.id or no directory.id")
    found += [
        f"--voter {voter.node}: {target.path} belongs to node {target.node}"
        for voter in voters
        if voter.node != target.node
    ]
    if target.running is RunningNode.RUNS:
        found.append(
            f"{target.path}: node {target.node} runs (it holds the lock of its log dir): stop it first"
        )
    elif target.running is RunningNode.NOT_KNOWN:
        found.append(f"{target.path}: whether its node runs is not known: the lock file cannot be read")
    in_place = target.path == copy.path
    if not in_place and not target.blank:
        found.append(
            f"{target.path}: it holds a metadata log already. --into takes a log dir that was formatted and"
            " never"
            " started (kafka-storage format --no-initial-controllers)"
        )
    if in_place and target.node in brokers and not copy.voters.has_id(target.node):
        found.append(
            f"{target.path}: node {target.node} is a broker, and no controller: format a controller with"
            " --no-initial-controllers and give its log dir as --into"
        )
    return found


def _death_refusals(
    old: VoterSet, newer: VoterSet, replaced: VoterSet, target: TargetDirectory, dead: Collection[int]
) -> list[str]:
    found = []
    named = set(dead)
    unknown = sorted(n for n in named if not any(voters.has_id(n) for voters in (old, newer, replaced)))
    if unknown:
        found.append(f"--dead {', '.join(map(str, unknown))}: no voter of the lost quorum has that node id")
    stays = ReplicaKey(target.node, target.directory_id)
    for voters, where in ((old, ""), (newer, "of a copy that goes on beyond the chosen one ")):
        unnamed = [v.key for v in voters.voters if v.key != stays and v.key.id not in named]
        if unnamed and not (voters is newer and all(old.has_id(key.id) for key in unnamed)):
            found.append(_unnamed(voters, unnamed, where, has_vote=voters.find(stays) is not None))
    # What the node had before it was formatted is not named: its id is that of the new voter.
    before = {v.key.id for v in replaced.voters if v.key.id not in {*named, stays.id}}
    before -= {v.key.id for voters in (old, newer) for v in voters.voters}
    if before:
        found.append(
            f"voters {', '.join(map(str, sorted(before)))}, which an earlier rebuild replaced, are not named with"
            " --dead: with the disks that they had they could come back together, and lead beside the new voter"
        )
    if stays.id in named and (old.find(stays) is not None or newer.find(stays) is not None):
        found.append(f"--dead {stays.id}: it is the node that becomes the voter")
    return found


def _unnamed(voters: VoterSet, unnamed: Sequence[ReplicaKey], where: str, *, has_vote: bool) -> str:
    """``has_vote``: the node that becomes the only voter is one of these voters."""
    named, left = ", ".join(str(key.id) for key in unnamed), len(unnamed) + has_vote
    if left >= voters.majority:
        return (
            f"voters {named} {where}are not named with --dead: {left} of {len(voters.voters)} voters would be left,"
            f" which is a majority ({voters.majority}). Nothing is lost then: start them"
        )
    return (
        f"voters {named} {where}are not named with --dead: with a voter that may come back there could be two"
        " quorums. A node that still has its disk is named too: it never starts with it again, and is formatted"
        " before it is added"
    )


def later_rebuild(chosen: QuorumCopy, one: ComparedQuorumCopy) -> str:
    """That the copy's log was rebuilt where the chosen one was not: its voters are the quorum, and those that were
    replaced must not run. "" where it was not, or the chosen one has that rebuild too.
    """
    copy = one.copy
    if one.relation is CopyRelation.OTHER_CLUSTER or copy.rebuilt_epoch is None:
        return ""
    if copy.rebuilt_epoch <= (-1 if chosen.rebuilt_epoch is None else chosen.rebuilt_epoch):
        return ""
    voters = both([str(key) for key in copy.voters.keys])
    gone = chosen.key in {voter.key for voter in copy.replaced}
    never = f". It replaced {chosen.key}, the chosen disk, which must never start" if gone else ""
    return (
        f"a later rebuild, in quorum epoch {copy.rebuilt_epoch:,}, stands in another copy, not in the chosen one:"
        f" the quorum is {voters} since. If its disk is left, start that{never}"
    )


def copy_refusals(
    chosen: QuorumCopy,
    compared_copies: Sequence[ComparedQuorumCopy],
    missing: Mapping[str, Sequence[object]],
    accepted: Collection[int],
    given_up: Collection[int] = (),
) -> tuple[str, ...]:
    """Copies that have changes (``missing``) or voters which the chosen one lacks, and are not named by
    ``--accept-loss-of``; copies that were not comparable, or are of another cluster. ``given_up``: the quorum
    epochs of later rebuilds that are: whoever gives up a few changes of a node has not given up the quorum.
    """
    found = []
    for one in compared_copies:
        copy = one.copy
        later = later_rebuild(chosen, one)
        if later and copy.rebuilt_epoch not in given_up:
            asked = f"{later}. To give that quorum up: --accept-loss-of-rebuild {copy.rebuilt_epoch}"
            found += [] if asked in found else [asked]
        if copy.path == chosen.path or copy.node in accepted:
            continue
        if one.relation is CopyRelation.OTHER_CLUSTER:
            found.append(f"{copy.path}: is of another cluster, {copy.cluster_id}")
        elif one.relation in (CopyRelation.NOTHING_SHARED, CopyRelation.NOT_COMPARED):
            why = one.why or "they share no batch, although the cluster id is the same"
            found.append(
                f"{copy.path}: whether it has what the chosen copy lacks is not known ({why}). To go on"
                " without it:"
                f" --accept-loss-of {copy.node}"
            )
        elif one.lost_from is not None and (missing.get(copy.path) or copy.voters != chosen.voters):
            found.append(
                f"node {copy.node} has offsets {one.lost_from} to {copy.end - 1} that the chosen copy lacks"
                f" ({copy.path}): quorum evidence shows them. To lose them: --accept-loss-of {copy.node}"
            )
    return tuple(found)


def plan_steps(
    copy: QuorumCopy, voter: Voter, others: Sequence[QuorumCopy]
) -> tuple[tuple[VoterSet, ...], int]:
    """The voter sets to append, and their quorum epoch. Raises RebuildError."""
    epoch = rebuilt_epoch((copy, *others))
    if epoch >= MAX_EPOCH - 1:
        raise RebuildError(f"the quorum is in epoch {epoch}: no higher one is left")
    return voter_path(copy.voters, VoterSet((voter,))), epoch


# The file


def to_json(plan: RebuildPlan) -> str:
    """The file's text; the same plan gives the same bytes."""
    header = plan.header
    members = {
        "format": FORMAT,
        "warning": WARNING,
        "planId": header.plan_id,
        "madeAt": header.made_at,
        "madeBy": header.made_by,
        "toolVersion": header.tool_version,
        "digest": digest(plan),
        **_members(plan),
    }
    return json.dumps(members, indent=2, ensure_ascii=False) + "\n"


def digest(plan: RebuildPlan) -> str:
    """SHA-256 of the header and everything that decides."""
    header = plan.header
    about = [header.plan_id, header.made_at, header.made_by, header.tool_version]
    return hashlib.sha256(json.dumps([about, _members(plan)], ensure_ascii=False).encode()).hexdigest()


def from_json(text: str) -> RebuildPlan:
    """The plan of a file. Raises RebuildError: no such plan, of another format, or edited."""
    try:
        members = json.loads(text)
    except ValueError as error:
        raise RebuildError(f"not JSON: {error}") from None
    if not isinstance(members, dict) or members.get("format") != FORMAT:
        raise RebuildError(f"not a plan of format {FORMAT}")
    try:
        plan = _plan(members)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RebuildError(f"broken ({type(error).__name__}: {error})") from None
    if members.get("digest") != digest(plan):
        raise RebuildError("it was edited: its digest is not that of what it holds; make a new plan")
    return plan


def _members(plan: RebuildPlan) -> dict[str, object]:
    return {
        "clusterId": plan.cluster_id,
        "source": plan.source,
        "target": plan.target,
        "node": plan.key.id,
        "directoryId": plan.key.directory_id,
        "backup": plan.backup,
        "files": [file._asdict() for file in plan.files],
        "segment": plan.segment,
        "wholeBytes": plan.whole_bytes,
        "cutBytes": plan.cut_bytes,
        "logEndOffset": plan.log_end,
        "lastEpoch": plan.last_epoch,
        "epoch": plan.epoch,
        "timeMs": plan.time_ms,
        "oldVoters": _set_members(plan.old),
        "newerVoters": _set_members(plan.newer),
        "replacedVoters": _set_members(plan.replaced),
        "steps": [_set_members(voters) for voters in plan.steps],
        "dead": list(plan.dead),
        "brokers": list(plan.brokers),
        "ahead": list(plan.ahead),
        "aheadFrom": plan.ahead_from,
        "aheadDirs": [list(one) for one in plan.ahead_dirs],
        "losses": list(plan.losses),
        "unchecked": list(plan.unchecked),
        "strays": [stray_members(one) for one in plan.strays],
        "partitions": [partition_members(written) for written in plan.partitions],
        "knownTopics": list(plan.known_topics),
        "restoredTopics": [restored_topic_members(one) for one in plan.restored_topics],
        "rehearsal": rehearsal_members(plan.rehearsal),
    }


def rehearsal_members(rehearsal: RehearsalReport | None) -> dict[str, object] | None:
    """As the plan file and the JSON document have it."""
    if rehearsal is None:
        return None
    return {
        "at": rehearsal.at,
        "by": rehearsal.by,
        "kafka": rehearsal.kafka,
        "limitMs": rehearsal.limit_ms,
        "ledAfterMs": rehearsal.led_after_ms,
        "epoch": rehearsal.epoch,
        "counts": dict(rehearsal.counts),
        "differences": list(rehearsal.differences),
        "errors": list(rehearsal.errors),
        "endedAfterMs": rehearsal.ended_after_ms,
    }


def _rehearsal(members: Mapping[str, Any] | None) -> RehearsalReport | None:
    if members is None:
        return None
    led, ended = members["ledAfterMs"], members["endedAfterMs"]
    return RehearsalReport(
        str(members["at"]),
        str(members["by"]),
        str(members["kafka"]),
        _int(members["limitMs"]),
        None if led is None else _int(led),
        _int(members["epoch"]),
        {str(name): _int(count) for name, count in members["counts"].items()},
        tuple(str(text) for text in members["differences"]),
        tuple(str(text) for text in members["errors"]),
        None if ended is None else _int(ended),
    )


def _plan(members: Mapping[str, Any]) -> RebuildPlan:
    header = ReplacementHeader(
        str(members["planId"]), str(members["madeAt"]), str(members["madeBy"]), str(members["toolVersion"])
    )
    return RebuildPlan(
        header,
        str(members["clusterId"]),
        str(members["source"]),
        str(members["target"]),
        ReplicaKey(_int(members["node"]), str(members["directoryId"])),
        str(members["backup"]),
        tuple(PlannedFile(str(f["name"]), _int(f["size"]), str(f["sha256"])) for f in members["files"]),
        str(members["segment"]),
        _int(members["wholeBytes"]),
        _int(members["cutBytes"]),
        _int(members["logEndOffset"]),
        _int(members["lastEpoch"]),
        _int(members["epoch"]),
        _int(members["timeMs"]),
        _set(members["oldVoters"]),
        tuple(_set(voters) for voters in members["steps"]),
        tuple(_int(node) for node in members["dead"]),
        tuple(_int(node) for node in members["brokers"]),
        tuple(str(text) for text in members["losses"]),
        tuple(str(text) for text in members["unchecked"]),
        tuple(read_partition(written) for written in members["partitions"]),
        tuple(str(topic_id) for topic_id in members["knownTopics"]),
        tuple(read_restored_topic(topic) for topic in members["restoredTopics"]),
        _rehearsal(members["rehearsal"]),
        _set(members["newerVoters"]),
        _set(members["replacedVoters"]),
        tuple(_int(node) for node in members["ahead"]),
        _int(members["aheadFrom"]),
        tuple(read_stray(one) for one in members["strays"]),
        tuple((_int(node), str(path)) for node, path in members["aheadDirs"]),
    )


def _set_members(voters: VoterSet) -> list[dict[str, object]]:
    return [
        {
            "id": voter.key.id,
            "directoryId": voter.key.directory_id,
            "endpoints": [endpoint._asdict() for endpoint in voter.endpoints],
            "kraftVersions": list(voter.kraft_versions),
        }
        for voter in voters.voters
    ]


def _set(members: Any) -> VoterSet:
    return VoterSet(
        tuple(
            Voter(
                ReplicaKey(_int(voter["id"]), str(voter["directoryId"])),
                tuple(
                    VoterEndpoint(str(e["listener"]), str(e["host"]), _int(e["port"]))
                    for e in voter["endpoints"]
                ),
                (_int(voter["kraftVersions"][0]), _int(voter["kraftVersions"][1])),
            )
            for voter in members
        )
    )


def _int(value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f"{value!r} is not a whole number")
    return value
