"""Rebuilds a quorum that is lost for good from one directory of the metadata log: the plan, its carrying out on
the host that has the directory, and the way back. Nothing goes over the network but the question whether a dead
voter answers.
"""

from __future__ import annotations

import socket
import stat
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from backends.disk_scan.checkpoint_files import CheckpointError, read_properties
from backends.disk_scan.log_dir_scan import scan_log_dirs
from backends.disk_scan.scan_values import LIVE, DiskScan, ScanDepth
from backends.metadata_log.batch_writer import data_batch, voters_batch
from backends.metadata_log.directory import DIRECTORY, DirectoryReading, MetadataDirError, read_directory
from backends.metadata_log.quorum_copy import PROPERTIES, running_node
from backends.metadata_log.rebuild_main import AskedAddress, ScriptedRebuild
from backends.metadata_log.rebuild_script import rebuild_script
from backends.metadata_log.rebuild_steps import (
    RebuildOrder,
    WrittenFiles,
    answers,
    is_blank,
    journal_line,
    undo_order,
    write_order,
)
from backends.metadata_log.rebuilt_directory import RewriteError, planned_files
from console.disk_evidence_files import last_epoch_of, read_disk_evidence
from console.errors import InputError, NotDone
from console.jobs.quorum.lost_quorum_evidence import (
    LostQuorumEvidence,
    ScannedMetadataEnd,
    gather_evidence,
    history_of,
    online_directories,
)
from console.new_files import replace_own, write_new
from console.provenance import made_by, now, version
from recovery.disk_evidence import DiskReading
from recovery.membership.lost_quorum import EPOCH_MARGIN, CopyRelation, QuorumCopy, RunningNode
from recovery.membership.quorum_rebuild import (
    GivenVoter,
    PlannedFile,
    RebuildError,
    RebuildPlan,
    TargetDirectory,
    ahead_from,
    copy_refusals,
    from_json,
    is_forked,
    later_rebuild,
    new_voter,
    newer_voters,
    nodes_ahead,
    other_voters,
    plan_steps,
    refusals,
    replaced_voters,
    to_json,
    whole_refusals,
)
from recovery.membership.replacement import ReplacementHeader
from recovery.membership.restored_topics import RestoredTopic, restored_topics
from recovery.membership.rewritten_partitions import (
    KnownPartitions,
    LogDirsRead,
    RewrittenPartition,
    ScannedReplica,
    rewritten_partitions,
    running_refusal,
    unscanned_refusal,
)
from recovery.membership.stray_replicas import (
    lost_partitions,
    lost_topics,
    stray_refusals,
    stray_replicas,
)
from recovery.membership.voters import ReplicaKey, Voter
from recovery.metadata_log.field_reader import MalformedRecordError
from recovery.metadata_log.history import MetadataHistory
from recovery.metadata_log.metadata_image import image_at_end, image_of
from recovery.metadata_log.records import TopicRecord
from recovery.wording.quantity_text import counted

METADATA_TOPIC = "__cluster_metadata"


@dataclass(frozen=True, slots=True)
class RebuildRequest:
    """What the options say. ``into`` is the log dir of a blank controller, None: the directory itself is
    written. ``compare``: further copies of the metadata log; ``data``: log dirs of brokers. ``unscanned``:
    brokers whose disks cannot be given. ``accept_loss_of``: nodes whose copies may have more than the chosen
    one; ``accept_loss_of_rebuild``: the quorum epochs of later rebuilds that it does not know.
    """

    source: Path
    voters: tuple[GivenVoter, ...]
    dead: tuple[int, ...]
    into: Path | None = None
    compare: tuple[Path, ...] = ()
    data: tuple[Path, ...] = ()
    unscanned: tuple[int, ...] = ()
    accept_loss_of: tuple[int, ...] = ()
    accept_strays: bool = False
    keep_strays: bool = False
    backup: Path | None = None
    accept_loss_of_rebuild: tuple[int, ...] = ()


class RebuildRefused(NotDone):
    """Every reason why nothing may be written, each one line for a person."""

    def __init__(self, reasons: tuple[str, ...]) -> None:
        super().__init__("no rebuild; nothing was written")
        self.reasons = reasons


class PlannedRebuild(NamedTuple):
    """The plan with what it rests on."""

    plan: RebuildPlan
    evidence: LostQuorumEvidence


Answers = Callable[[str, int], bool]
"""Whether something listens at that host and port."""


def make_rebuild(request: RebuildRequest, answering: Answers = answers) -> PlannedRebuild:
    """The plan; nothing is written. Raises InputError: the directory cannot be read; NotDone with every reason
    why there must be no rebuild (RebuildRefused).
    """
    # A broker's log dir holds a copy of the metadata log too, and the scan of one tells where that ends.
    beside = [path for path in request.data if path.is_file() or (path / DIRECTORY).is_dir()]
    evidence = gather_evidence((*request.compare, *beside), chosen=request.source)
    copy = evidence.chosen
    try:
        history = history_of(copy)
        target = read_target(request.into, copy)
        files = planned_files(Path(copy.path))
    except (MetadataDirError, RewriteError) as error:
        raise InputError(str(error)) from None
    brokers = history.registered_brokers()
    disks, known = read_disks(request, copy, history, brokers), known_partitions(history)
    lost, forked = lost_partitions(known, disks.replicas), is_forked(copy, evidence.copies)
    topics = lost_topics(known, lost)
    written = rewritten_partitions(
        known,
        disks.replicas,
        disks.left_out,
        is_stale=bool(request.accept_loss_of or lost),
        is_forked=forked,
        gone=request.dead,
        starts=(target.node,),
        restored=[subject for one in topics for subject in one.keepable] if request.keep_strays else (),
    )
    newer, replaced = newer_voters(copy, evidence.copies), replaced_voters(evidence.copies)
    loses = bool(request.accept_loss_of or lost) or any(one.disk_epoch >= 0 for one in written)
    whole = whole_refusals(copy, target, newer=newer, loses=loses)
    if whole:
        raise RebuildRefused(whole)
    found = [
        *refusals(copy, target, request.voters, request.dead, brokers, newer=newer, replaced=replaced),
        *(printable_unread(path, why) for path, why in evidence.unread),
        *scan_refusals(copy, evidence.scans, request.accept_loss_of),
        *copy_refusals(
            copy, evidence.copies, evidence.missing, request.accept_loss_of, request.accept_loss_of_rebuild
        ),
        *(f"{copy.path}: {refused}: no controller starts with it" for refused in history.refused.values()),
        *disks.refusals,
        *unscanned_refusal({b: read for b, read in disks.left_out.items() if b not in request.unscanned}),
        *running_refusal(disks.replicas, written, set(request.dead).intersection(disks.left_out)),
        *stray_refusals(
            known, topics, accepts_strays=request.accept_strays, keeps_strays=request.keep_strays
        ),
    ]
    key = ReplicaKey(target.node, target.directory_id)
    if not found:
        found += answering_voters(
            other_voters((copy.voters, newer, replaced), key), request.dead, request.voters[0], answering
        )
    if found:
        raise RebuildRefused(tuple(found))
    try:
        voter = new_voter(request.voters[0], key, copy.voters)
        steps, epoch = plan_steps(copy, voter, [one.copy for one in evidence.copies])
    except RebuildError as error:
        raise NotDone(str(error)) from None
    ahead = _ahead(evidence, disks.left_out, request.dead)
    header = ReplacementHeader(str(uuid.uuid4()), now().isoformat(timespec="seconds"), made_by(), version())
    plan = RebuildPlan(
        header=header,
        cluster_id=copy.cluster_id,
        source=copy.path,
        target=target.path,
        key=voter.key,
        backup=str(backup_directory(request.backup, Path(target.path), header.plan_id)),
        files=files,
        segment=copy.segment,
        whole_bytes=copy.whole_bytes,
        cut_bytes=0 if copy.defect is None else copy.defect.size,
        log_end=copy.end,
        last_epoch=copy.epoch,
        epoch=epoch,
        time_ms=int(time.time() * 1000),
        old=copy.voters,
        steps=steps,
        dead=tuple(sorted(set(request.dead))),
        brokers=brokers,
        losses=tuple(accepted_losses(copy, evidence, request)),
        unchecked=tuple(unchecked(request, written, forked=forked)),
        partitions=written,
        known_topics=tuple(sorted(known.present_topics & {one.topic_id for one in written})),
        newer=newer,
        replaced=replaced,
        ahead=ahead,
        ahead_dirs=tuple(
            sorted(
                (one.copy.node, str(Path(one.copy.path).absolute()))
                for one in evidence.copies
                if one.copy.node in ahead and one.relation is not CopyRelation.OTHER_CLUSTER
            )
        ),
        ahead_from=ahead_from(copy, evidence.copies),
        restored_topics=_restored_topics(evidence, written),
        strays=stray_replicas(known, disks.replicas, topics if request.keep_strays else (), written),
    )
    return PlannedRebuild(plan, evidence)


def _ahead(evidence: LostQuorumEvidence, left_out: Iterable[int], dead: Collection[int]) -> tuple[int, ...]:
    """Whose metadata goes on beyond the chosen copy, or may: of a disk that was not read nobody knows."""
    scanned = (one.node for one in evidence.scans if one.position > evidence.chosen.position)
    found = {*nodes_ahead(evidence.chosen, evidence.copies), *scanned, *left_out}
    return tuple(sorted(found - set(dead)))


def _restored_topics(
    evidence: LostQuorumEvidence, written: Sequence[RewrittenPartition]
) -> tuple[RestoredTopic, ...]:
    """Raises InputError where a copy cannot be read."""
    if not any(one.is_new for one in written):
        return ()
    try:
        own = image_of(read_directory(DirectoryReading(Path(evidence.chosen.path))))
        others = [
            (one.copy.node, image_of(read_directory(DirectoryReading(Path(one.copy.path)))))
            for one in evidence.copies
            if one.copy.path != evidence.chosen.path
        ]
    except (MetadataDirError, MalformedRecordError) as error:
        raise InputError(str(error)) from None
    return restored_topics(written, own, others)


def save_rebuild(plan: RebuildPlan, file: Path) -> None:
    """Writes the plan to a new file. Raises InputError."""
    write_new(file, to_json(plan))


def save_rehearsed(plan: RebuildPlan, file: Path) -> None:
    """Writes the plan with its rehearsal in the place of the one without. Raises InputError."""
    replace_own(file, to_json(plan), stat.S_IMODE(file.stat().st_mode))


def read_rebuild(file: Path) -> RebuildPlan:
    """The plan that a file holds. Raises InputError."""
    try:
        return from_json(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read ({error})") from None
    except RebuildError as error:
        raise InputError(f"{file}: {error}") from None


# What a plan rests on


def read_target(into: Path | None, copy: QuorumCopy) -> TargetDirectory:
    """The directory that is written: the copy's own, or that of the blank controller ``into``.

    Raises MetadataDirError.
    """
    directory = Path(copy.path) if into is None else into.absolute() / DIRECTORY
    log_dir = directory.parent
    try:
        properties = read_properties(log_dir / PROPERTIES) or {}
    except CheckpointError as error:
        raise MetadataDirError(str(error)) from None
    node = properties.get("node.id", "")
    return TargetDirectory(
        path=str(directory),
        cluster_id=properties.get("cluster.id", ""),
        node=int(node) if node.isascii() and node.isdigit() and len(node) < 11 else -1,
        directory_id=properties.get("directory.id", ""),
        running=running_node(log_dir),
        blank=is_blank(directory),
    )


def backup_directory(given: Path | None, target: Path, plan_id: str) -> Path:
    """Beside the log dir, not in it: a broker that finds a directory that is no partition does not start."""
    if given is not None:
        return given.absolute()
    log_dir = target.parent
    return log_dir.with_name(f"{log_dir.name}.before-rebuild-{plan_id[:8]}")


class ReadDisks(NamedTuple):
    """What brokers' disks hold of partitions, and why they are no ground for a plan. ``left_out``: registered
    brokers of which a log dir was not read, with those that were.
    """

    replicas: tuple[ScannedReplica, ...]
    refusals: tuple[str, ...]
    left_out: dict[int, LogDirsRead]


def read_disks(
    request: RebuildRequest, copy: QuorumCopy, history: MetadataHistory, brokers: Sequence[int]
) -> ReadDisks:
    """The log dirs that were given with --data, and the scans of others."""
    files = [path for path in request.data if path.is_file()]
    paths = [str(path) for path in request.data if path not in files]
    scan = scan_log_dirs(paths, socket.gethostname(), 0, ScanDepth("none"))
    readings = read_disk_evidence(files)
    given = [one for one in scan.dirs if one.problem is None]
    found = [f"{one.path}: {one.problem}" for one in scan.dirs if one.problem is not None]
    clusters = [*((one.path, one.cluster_id) for one in given), *((r.source, r.cluster_id) for r in readings)]
    found += [
        f"{path}: is of cluster {cluster or '(none)'}, the copy is of {copy.cluster_id}"
        for path, cluster in clusters
        if cluster != copy.cluster_id
    ]
    read = [
        *((one.node_id, one.directory_id) for one in given),
        *((reading.broker, directory) for reading in readings for directory in ("", *reading.directories)),
    ]
    dirs = {b: _dirs_read(read, b, online_directories(history, b)) for b in brokers}
    left_out = {broker: one for broker, one in dirs.items() if one.missing or not one.given}
    replicas = (*scanned_replicas(scan), *(replica for one in readings for replica in evidence_replicas(one)))
    return ReadDisks(replicas, tuple(found), left_out)


def _dirs_read(read: Sequence[tuple[int, str]], broker: int, directories: Sequence[str]) -> LogDirsRead:
    """Which log dirs of the broker were read; ``read``: brokers, and the ids of their log dirs. Before
    metadata.version 3.7 no ids are registered: then one dir of it must do.
    """
    found = {directory for node, directory in read if node == broker}
    missing = tuple(directory for directory in directories if directory not in found)
    return LogDirsRead(len(directories) - len(missing) if directories else len(found), missing)


def known_partitions(history: MetadataHistory) -> KnownPartitions:
    """What the copy says of partitions."""
    present = dict(history.present())
    topics = {
        row.change.topic_id: row.change.name for row in history.rows() if isinstance(row.change, TopicRecord)
    }
    has_elr = image_at_end(history).features.get("eligible.leader.replicas.version", 0) > 0
    return KnownPartitions(present, topics, any(now.directories for now in present.values()), has_elr)


def scanned_replicas(scan: DiskScan) -> Iterator[ScannedReplica]:
    """The replicas on the scanned disks; the metadata log is none."""
    for one in scan.dirs:
        runs = running_node(Path(one.path)) is RunningNode.RUNS
        for log in one.logs:
            if log.kind == LIVE and log.topic != METADATA_TOPIC:
                yield ScannedReplica(
                    one.node_id,
                    one.directory_id,
                    log.topic_id,
                    log.topic,
                    log.partition,
                    max(log.leader_epoch, log.last_epoch),
                    log.last_epoch,
                    log.log_end,
                    runs,
                )


def evidence_replicas(reading: DiskReading) -> Iterator[ScannedReplica]:
    """The replicas in the output of ``disk scan`` or its script. Whether the broker runs since, nobody looked."""
    for (topic, partition), disk in reading.logs.items():
        last_epoch = last_epoch_of(disk)
        yield ScannedReplica(
            reading.broker,
            disk.directory_id,
            disk.topic_id,
            topic,
            partition,
            max(disk.log.leader_epoch, last_epoch),
            last_epoch,
            disk.log.log_end_offset,
        )


def scan_refusals(
    copy: QuorumCopy, scans: Iterable[ScannedMetadataEnd], accepted: Collection[int]
) -> Iterator[str]:
    """Scans of nodes whose metadata log ends beyond the copy."""
    for one in scans:
        if one.cluster_id == copy.cluster_id and one.position > copy.position and one.node not in accepted:
            yield (
                f"{one.source}: the metadata log of node {one.node} ends at offset {one.end} of epoch {one.epoch},"
                f" and the chosen copy at {copy.end} of epoch {copy.epoch}: copy its {DIRECTORY} here and use it,"
                f" or lose what it has beyond: --accept-loss-of {one.node}"
            )


def answering_voters(
    voters: Iterable[Voter], dead: Iterable[int], voter: GivenVoter, answering: Answers
) -> list[str]:
    """The voters that are named as dead, or are to be stopped, and whose address accepts a connection."""
    gone = set(dead)
    found = [
        f"voter {one.key.id} is named with --dead, and something listens at {endpoint.host}:{endpoint.port}:"
        " it may be alive; nothing is written while it answers"
        for one in voters
        if one.key.id in gone
        for endpoint in one.endpoints
        if answering(endpoint.host, endpoint.port)
    ]
    if answering(voter.host, voter.port):
        found.append(
            f"something listens at {voter.host}:{voter.port}, where controller {voter.node} is to start:"
            " stop it first"
        )
    return found


def accepted_losses(
    chosen: QuorumCopy, evidence: LostQuorumEvidence, request: RebuildRequest
) -> Iterable[str]:
    """What the quorum will lack, in the order of the copies; a rebuild that the chosen copy does not know first."""
    yield from dict.fromkeys(filter(None, (later_rebuild(chosen, one) for one in evidence.copies)))
    for one in evidence.copies:
        changes = evidence.missing.get(one.copy.path)
        if not changes:
            continue
        yield f"offsets {one.lost_from} to {one.copy.end - 1} of node {one.copy.node}: {len(changes)} changes"
        for change in changes[:_LISTED]:
            yield f"  offset {change.offset}: {change.text}"
    for node in request.accept_loss_of:
        yield f"whatever node {node} has beyond the chosen copy (--accept-loss-of {node})"


_LISTED = 200


def unchecked(
    request: RebuildRequest, written: Sequence[RewrittenPartition], *, forked: bool = False
) -> Iterable[str]:
    """What the operator has decided to go on without; ``forked`` as in :func:`is_forked`."""
    twice = sum(one.disk_epoch == one.known_epoch > 0 for one in written) if forked else 0
    if twice:
        yield (
            f"whether brokers followed two quorums: both may have given the leader epoch of"
            f" {counted(twice, 'partition')} out, and replicas that were written to in both differ without an epoch"
            " that tells"
        )
    for broker in request.unscanned:
        count = sum(broker in one.registration.replicas for one in written)
        yield (
            f"the disks of broker {broker}: its {count:,} partitions get leader epochs"
            f" {EPOCH_MARGIN:,} above all that"
            " is known of them; it may know of more leader changes than that only if there were so many"
        )
    files = [path for path in request.data if path.is_file()]
    if files:
        named = ", ".join(str(path) for path in files)
        yield f"whether brokers have run since these scans: {named}"


def printable_unread(path: str, why: str) -> str:
    return f"{path}: {why}: a copy that is named must be readable; leave it out to go on without it"


# Carrying it out


class AppliedRebuild(NamedTuple):
    """What was written for the plan; ``returned``: the dead voters that answer now, each in one line."""

    plan: RebuildPlan
    files: WrittenFiles
    returned: tuple[str, ...] = ()


def appended(plan: RebuildPlan) -> bytes:
    """The batches that the plan appends: the voters, and behind them the partitions."""
    batches = [voters_batch(plan.log_end, plan.epoch, plan.time_ms, plan.steps)]
    offset, values = plan.log_end + len(plan.steps), plan.values
    for start in range(0, len(values), _IN_A_BATCH):
        some = values[start : start + _IN_A_BATCH]
        batches.append(data_batch(offset + start, plan.epoch, plan.time_ms, some))
    return b"".join(batches)


_IN_A_BATCH = 1_000
"""Records in a batch: Kafka takes no batch of the metadata log beyond 8 MB."""


def order_of(plan: RebuildPlan) -> RebuildOrder:
    """What is written where."""
    return RebuildOrder(
        plan.header.plan_id,
        plan.cluster_id,
        plan.key.id,
        plan.key.directory_id,
        plan.source,
        plan.target,
        plan.backup,
        plan.files,
        plan.segment,
        plan.whole_bytes,
        appended(plan),
    )


def apply_rebuild(
    plan: RebuildPlan, reason: str, answering: Answers = answers, *, reviewed: str = ""
) -> AppliedRebuild:
    """Carries the plan out on this host; ``reviewed``: by whom, for the journal. Raises NotDone: the directory is
    not as it was planned, its node runs, or a dead voter answers; then nothing was written.
    """
    require_rehearsal_passed(plan)
    voter = plan.voter
    given = GivenVoter(voter.key.id, *voter.endpoints[0])
    alive = answering_voters(plan.other_voters, plan.dead, given, answering)
    if alive:
        raise RebuildRefused(tuple(alive))
    order = order_of(plan)
    try:
        files = write_order(order, _recorder(order, reason, reviewed))
    except (RewriteError, MetadataDirError) as error:
        raise NotDone(str(error)) from None
    # One that came up meanwhile may lead, with others, before the new voter does.
    returned = [
        f"VOTER {address.node} ANSWERS NOW at {address.host}:{address.port}, and was silent before: stop it,"
        f" and move {DIRECTORY} out of its log dir, before controller {plan.key.id} is started"
        for address in dead_addresses(plan)
        if answering(address.host, address.port)
    ]
    return AppliedRebuild(plan, files, tuple(returned))


def dead_addresses(plan: RebuildPlan) -> tuple[AskedAddress, ...]:
    """Where the dead voters were registered to listen."""
    return tuple(
        AskedAddress(voter.key.id, endpoint.host, endpoint.port)
        for voter in plan.other_voters
        if voter.key.id in plan.dead
        for endpoint in voter.endpoints
    )


def require_rehearsal_passed(plan: RebuildPlan) -> None:
    """Raises NotDone where there was a rehearsal that failed."""
    if plan.rehearsal is not None and not plan.rehearsal.is_passed:
        raise NotDone("its rehearsal failed: nothing was written; rehearse it again, or make another plan")


def script_of(plan: RebuildPlan, summary: Iterable[str], *, reviewed: str = "") -> str:
    """The same as one standard-library script. Raises NotDone."""
    require_rehearsal_passed(plan)
    _, host, port = plan.voter.endpoints[0]
    addresses = (*dead_addresses(plan), AskedAddress(plan.key.id, host, port))
    return rebuild_script(ScriptedRebuild(order_of(plan), tuple(summary), plan.dead, addresses, reviewed))


def undo_rebuild(plan: RebuildPlan, reason: str) -> Path | None:
    """Puts back what was there before; returns where the rebuilt files are, None: an earlier run had done it.
    Raises NotDone: the node runs, nothing was applied, or the rebuilt quorum has led since.
    """
    order = order_of(plan)
    try:
        return undo_order(order, _recorder(order, reason))
    except (RewriteError, MetadataDirError) as error:
        raise NotDone(str(error)) from None


def _recorder(
    order: RebuildOrder, reason: str, reviewed: str = ""
) -> Callable[[str, Sequence[PlannedFile]], None]:
    def record(what: str, files: Sequence[PlannedFile]) -> None:
        at = now().isoformat(timespec="milliseconds")
        entry = {"at": at, "by": made_by(), "what": what, "reason": reason}
        journal_line(order, {**entry, **({"reviewed": reviewed} if reviewed else {})}, files)

    return record
