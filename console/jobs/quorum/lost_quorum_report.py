"""The evidence of a lost quorum, described once for the text and ``ktriage.quorum-evidence/1`` (docs/output.md)."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from console.jobs.quorum.lost_quorum_evidence import (
    CopiedChange,
    LostQuorumEvidence,
    history_of,
    online_directories,
)
from console.output.json_document import document
from recovery.membership.controllers_asked import controllers_text, old_voters_stopped
from recovery.membership.directory_ids import directory_uuid
from recovery.membership.lost_quorum import ComparedQuorumCopy, CopyRelation, QuorumCopy, RunningNode
from recovery.membership.quorum_rebuild import STATIC_VOTERS, voters_to_name
from recovery.wording.quantity_text import both, counted, human_bytes, offset, printable, time_text
from widgets.fields import Field, json_row, text_rows
from widgets.text import Tone

SHOWN = 20
"""Changes of one kind in the text; JSON has all."""
VOTERS_PROVE_NOTHING = (
    "this does not show that nobody rebuilt the quorum: a voter that a rebuild replaced never hears of it. Read the"
    " logs of brokers too"
)
_MAJORITY_GONE = "the disks of a majority of the voters are gone for good"
_OBSERVER = "observer"


def copy_fields(chosen: QuorumCopy) -> tuple[Field[ComparedQuorumCopy], ...]:
    """What is shown of a copy, beside the ``chosen`` one."""
    return (
        Field("node", "NODE", lambda f: f.copy.node, lambda f: _node(f.copy), Tone.STRONG),
        Field("role", "ROLE", lambda f: role_of(f.copy)),
        Field("epoch", "LAST EPOCH", lambda f: f.copy.epoch, right=True),
        Field("logEndOffset", "LOG END", lambda f: f.copy.end, right=True),
        Field(
            "lastTimeMs",
            "LAST BATCH (UTC)",
            lambda f: f.copy.last_ms,
            lambda f: "none" if f.copy.last_ms is None else time_text(f.copy.last_ms),
            below=True,
        ),
        Field("leader", "LAST LEADER SEEN", _leader, lambda f: _leader_text(f.copy), below=True),
        Field("running", "PROCESS", lambda f: str(f.copy.running), _running_text),
        Field(
            "compared",
            "COMPARED WITH THE BEST",
            lambda f: str(f.relation),
            partial(relation_text, chosen),
            below=True,
        ),
        Field("why", "", lambda f: f.why, printed=False),
        Field("agreesTo", "", lambda f: f.agrees_to, printed=False),
        Field("clusterId", "", lambda f: f.copy.cluster_id, printed=False),
        Field("kraftVersion", "", lambda f: f.copy.kraft_version, printed=False),
        Field("logStartOffset", "", lambda f: f.copy.start, printed=False),
        Field("snapshot", "", lambda f: f.copy.snapshot, printed=False),
        Field("defect", "", _defect, printed=False),
        Field("directoryId", "DIRECTORY ID", lambda f: f.copy.directory_id, below=True),
        Field("path", "DIRECTORY", lambda f: f.copy.path, lambda f: printable(f.copy.path), below=True),
    )


def evidence_lines(evidence: LostQuorumEvidence, *, best: bool = True) -> Iterator[str]:
    """The verdict first, then the copies, then what would be lost."""
    chosen = evidence.chosen
    cluster = chosen.cluster_id or "of an unknown id (no meta.properties)"
    yield f"cluster {cluster}: {counted(len(evidence.copies), 'copy', 'copies')} of the metadata log"
    yield printable(
        f"{'the best' if best else 'the chosen'} copy is that of node {_node(chosen)}: last epoch"
        f" {chosen.epoch},"
        f" log end {offset(chosen.end)} ({chosen.path})"
    )
    yield committed_line(evidence)
    yield from voters_lines(chosen)
    if chosen.rebuilt_epoch is not None:
        gone = both([str(voter.key) for voter in chosen.replaced]) or "the old voters"
        yield (
            f"REBUILT in quorum epoch {chosen.rebuilt_epoch:,}: no node must start again with a metadata log of"
            f" {gone}. ktriage knows it here from now on"
        )
        yield from _without_rebuild(chosen, evidence.copies)
    elif chosen.voters.voters:  # a setting that names other voters is in no log
        begins = "its beginning" if chosen.snapshot is None else f"offset {offset(chosen.start)}"
        yield f"no rebuild of the quorum is in this log, from {begins} to offset {offset(chosen.end)}"
        if not any(role_of(one.copy) == _OBSERVER for one in evidence.copies):
            yield VOTERS_PROVE_NOTHING
    yield ""
    yield from text_rows(copy_fields(chosen), evidence.copies)
    for found in evidence.copies:
        yield from _defect_lines(found.copy)
    for path, why in evidence.unread:
        yield printable(f"{path}: NOT READ: {why}")
    yield from scan_end_lines(evidence)
    yield ""
    yield from lacking_lines(evidence)
    if evidence.uncertain:
        yield (
            f"of its own changes, {len(evidence.uncertain):,} from offset {offset(evidence.committed)} on"
            " are not"
            " committed for certain. A quorum that is rebuilt from it commits them:"
        )
        left = len(evidence.uncertain) - SHOWN
        if left > 0:
            yield f"  … {left:,} before these (--output json shows all)"
        yield from change_lines(evidence.uncertain[-SHOWN:])


def _without_rebuild(chosen: QuorumCopy, copies: Sequence[ComparedQuorumCopy]) -> Iterator[str]:
    """Whose copies hold the newest rebuild, and whose do not: the latter are of old voters, or end before it."""
    for one in copies:
        copy = one.copy
        if copy.path == chosen.path or copy.cluster_id != chosen.cluster_id:
            continue
        if copy.rebuilt_epoch == chosen.rebuilt_epoch:
            yield f"the log of node {_node(copy)} holds this rebuild too"
        elif copy.snapshot is not None and copy.epoch >= (chosen.rebuilt_epoch or 0):
            yield f"whether the log of node {_node(copy)} held this rebuild is not known: it begins later"
        else:
            yield f"the log of node {_node(copy)} does NOT hold this rebuild"


def next_plan_lines(evidence: LostQuorumEvidence) -> Iterator[str]:
    """Who is started after a rebuild that the best copy holds; then the command that makes a plan from this copy.
    Nothing where its voters are not known.
    """
    best = evidence.chosen
    own = best.voters.find(best.key)
    others = voters_to_name(best, evidence.copies)
    if not best.voters.voters:
        if best.kraft_version == 0:
            yield f"next, only where {_MAJORITY_GONE} (docs/runbook-lost-quorum.md): {STATIC_VOTERS}"
        return
    if best.rebuilt_epoch is not None:
        yield f"next: {_voters_started(best)}"
    if set(best.voters.keys) == {best.key}:
        return
    history = history_of(best)
    brokers = history.registered_brokers()
    given = {one.node: one.source for one in evidence.scans}
    compare: list[str] = []
    for one in evidence.copies:
        known, path = online_directories(history, one.copy.node), str(Path(one.copy.path).parent)
        if known and one.copy.directory_id not in known:  # a metadata.log.dir of its own has no partitions
            compare += [path] if one.copy.path != best.path else []
        else:
            given[one.copy.node] = path
    data: list[str] = []
    for broker in brokers:
        data.append(given.get(broker, f"LOG_DIR_OF_BROKER_{broker}"))
        # A plan is refused while one of them is missing; here only that with the metadata log can be given.
        further = range(2, len(online_directories(history, broker)) + 1)
        data += (f"LOG_DIR_{number}_OF_BROKER_{broker}" for number in further)
    where = own.endpoints[0].address if own is not None and own.endpoints else "HOST:PORT"
    # The address of the new voter is not known where no voter's disk is left.
    voter = "NODE@HOST:PORT" if own is None else f"{own.key.id}@{where}"
    words = ["--from", best.path, *(("--into", "NEW_LOG_DIR") if own is None else ()), "--voter", voter]
    words += [word for node in others for word in ("--dead", str(node))]
    words += [word for path in compare for word in ("--compare", path)]
    words += [word for path in data for word in ("--data", path)]
    stop = f"stop node {_node(best)}, then " if best.running is RunningNode.RUNS else ""
    command = shlex.join(("ktriage", "quorum", "rebuild", *words, "--plan-out", "rebuild.json"))
    voters = best.voters.keys
    gone = (
        f"the disk of controller {voters[0].id} is gone for good"
        if best.rebuilt_epoch is not None and len(voters) == 1
        else _MAJORITY_GONE
    )
    yield (
        f"next, only where {gone} (docs/runbook-lost-quorum.md):"
        f" {stop}{command} (with --data for each further log dir of a broker)"
    )


def _voters_started(rebuilt: QuorumCopy) -> str:
    """The order after a rebuild, without full stop: who must not run is stopped before the others start. Each with
    its disk: a node may have another one by now.
    """
    voters = rebuilt.voters.keys
    gone = tuple(dict.fromkeys(str(voter.key) for voter in rebuilt.replaced if voter.key not in voters))
    stop = f"{old_voters_stopped(gone)}; then " if gone else ""
    disks = "its disk, unless it runs" if len(voters) == 1 else "their disks, unless they run"
    text = f"{stop}start {controllers_text([str(key) for key in voters])} with {disks}"
    return f"{text[0].lower()}{text[1:]}"


def scan_end_lines(evidence: LostQuorumEvidence) -> Iterator[str]:
    """Copies of which a scan tells only the end: by epoch and offset, never by content."""
    chosen = evidence.chosen
    for one in evidence.scans:
        if one.cluster_id != chosen.cluster_id:
            beside = f"it is of ANOTHER CLUSTER, {one.cluster_id}"
        elif one.position > chosen.position:
            beside = "BEYOND this copy. Copy its __cluster_metadata-0 here to see what it has"
        else:
            beside = "not beyond this copy. Whether their batches are the same is not in a scan"
        yield printable(
            f"{one.source}: node {one.node}, scanned on {one.host}: last epoch {one.epoch}, log end"
            f" {offset(one.end)}: {beside}"
        )


def committed_line(evidence: LostQuorumEvidence) -> str:
    """What was committed for certain; the high watermark is in no file."""
    if not evidence.committed:
        return (
            f"how much of it was committed is not known: {evidence.committed_why}, and the high watermark is"
            " in no"
            " file"
        )
    return (
        f"committed for certain: everything below offset {offset(evidence.committed)}"
        f" ({evidence.committed_why})."
        " The high watermark is in no file: what lies beyond may have been committed too"
    )


def lacking_lines(evidence: LostQuorumEvidence) -> Iterator[str]:
    """What a quorum that goes on from the chosen copy would not have."""
    if not evidence.missing:
        yield "no other copy that was read has anything that it lacks"
        return
    for found in evidence.copies:
        changes = evidence.missing.get(found.copy.path)
        if changes is None:
            continue
        begin, end = found.lost_from or 0, found.copy.end
        yield printable(
            f"it LACKS offsets {offset(begin)} to {offset(end - 1)} of node {_node(found.copy)}"
            f" ({found.copy.path}): {counted(len(changes), 'change')}"
            + ("" if changes else ", nothing but idle records and the quorum's own")
        )
        yield from change_lines(changes)


def change_lines(changes: Sequence[CopiedChange]) -> Iterator[str]:
    for change in changes[:SHOWN]:
        yield printable(f"  {time_text(change.time_ms)}  offset {offset(change.offset)}  {change.text}")
    if len(changes) > SHOWN:
        yield f"  … and {len(changes) - SHOWN:,} more (--output json shows all)"


def voters_lines(copy: QuorumCopy) -> Iterator[str]:
    """The voters by the copy."""
    if not copy.voters.voters:
        yield (
            f"kraft.version {copy.kraft_version}: the voters are in no record; controller.quorum.voters of"
            " each"
            " node names them"
        )
        return
    named = ", ".join(
        f"{v.key.id} ({v.key.directory_id}) at {', '.join(map(str, v.endpoints)) or 'no known endpoint'}"
        for v in copy.voters.voters
    )
    yield printable(f"kraft.version {copy.kraft_version}; voters since offset {copy.voters_offset}: {named}")


def evidence_document(evidence: LostQuorumEvidence) -> Iterator[str]:
    chosen = evidence.chosen
    fields = copy_fields(chosen)
    return document(
        "quorum-evidence",
        {
            "clusterId": chosen.cluster_id,
            "best": chosen.path,
            "committedTo": evidence.committed,
            "committedWhy": evidence.committed_why,
            "voters": voters_json(chosen),
            "copies": [json_row(fields, found) for found in evidence.copies],
            "lacks": [
                {"path": path, **_change_json(change)}
                for path, changes in evidence.missing.items()
                for change in changes
            ],
            "uncertain": [_change_json(change) for change in evidence.uncertain],
            "unread": [{"path": path, "why": why} for path, why in evidence.unread],
            "scans": [
                {
                    "source": one.source,
                    "host": one.host,
                    "node": one.node,
                    "clusterId": one.cluster_id,
                    "epoch": one.epoch,
                    "logEndOffset": one.end,
                }
                for one in evidence.scans
            ],
        },
    )


def voters_json(copy: QuorumCopy) -> list[dict[str, object]]:
    return [
        {
            "id": voter.key.id,
            "directoryId": voter.key.directory_id,
            "directoryUuid": directory_uuid(voter.key.directory_id),
            "endpoints": [endpoint._asdict() for endpoint in voter.endpoints],
        }
        for voter in copy.voters.voters
    ]


def role_of(copy: QuorumCopy) -> str:
    """Whether the copy is that of a voter, by its own voter set."""
    if copy.is_voter:
        return "voter"
    if not copy.voters.voters:
        return "not known"
    return "voter's old disk" if copy.voters.has_id(copy.node) else _OBSERVER


def relation_text(chosen: QuorumCopy, found: ComparedQuorumCopy) -> str:
    """How the copy stands to the chosen one, in words."""
    copy = found.copy
    if copy.path == chosen.path:
        return "this one"
    more, less = counted(copy.end - chosen.end, "offset"), counted(chosen.end - copy.end, "offset")
    texts = {
        CopyRelation.SAME: "the same batches",
        CopyRelation.DIVERGES: f"DIVERGES at offset {offset(found.agrees_to or 0)}",
        CopyRelation.NOTHING_SHARED: "SHARES NOTHING: another cluster with the same id",
        CopyRelation.OTHER_CLUSTER: printable(f"ANOTHER CLUSTER: {copy.cluster_id}"),
        CopyRelation.NOT_COMPARED: f"not compared: {printable(found.why)}",
        CopyRelation.PREFIX: f"same up to its end; lacks {less}"
        if copy.end < chosen.end
        else f"same up to {offset(chosen.end)}; {more} more",
    }
    return texts[found.relation]


def _change_json(change: CopiedChange) -> dict[str, object]:
    return {"timeMs": change.time_ms, "offset": change.offset, "text": change.text}


def _node(copy: QuorumCopy) -> str:
    return str(copy.node) if copy.node >= 0 else "unknown"


def _leader(found: ComparedQuorumCopy) -> object:
    election = found.copy.election
    return (
        None
        if election is None
        else {"id": election.leader, "epoch": election.epoch, "voted": election.voted}
    )


def _leader_text(copy: QuorumCopy) -> str:
    if copy.election is None:
        return "no quorum-state"
    leader = str(copy.election.leader) if copy.election.leader >= 0 else "nobody"
    return f"{leader} in epoch {copy.election.epoch}"


def _running_text(found: ComparedQuorumCopy) -> str:
    running = found.copy.running
    return "RUNS" if running is RunningNode.RUNS else str(running)


def _defect(found: ComparedQuorumCopy) -> object:
    defect = found.copy.defect
    return None if defect is None else defect._asdict()


def _defect_lines(copy: QuorumCopy) -> Iterator[str]:
    defect = copy.defect
    if defect is None:
        return
    what = "a torn end" if defect.torn else "BROKEN BEFORE ITS END"
    yield printable(
        f"node {_node(copy)}: {what}: {defect.file}: {defect.text} ({human_bytes(defect.size)} behind offset"
        f" {offset(copy.end)} are no part of it)"
    )
