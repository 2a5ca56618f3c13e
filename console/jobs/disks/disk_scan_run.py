"""``ktriage disk``: log dirs are scanned, or the script is printed."""

from __future__ import annotations

import shlex
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from backends.disk_scan.broker_start import METADATA_TOPIC
from backends.disk_scan.log_dir_scan import scan_log_dirs
from backends.disk_scan.scan_script import scan_script
from backends.disk_scan.scan_values import (
    BEGINS_EMPTY,
    DELETED,
    ENDS,
    FUTURE,
    LIVE,
    STRAY,
    TO_REPAIR,
    DiskScan,
    ScanDepth,
    ScannedDir,
    ScannedLog,
    scan_lines,
)
from console.errors import InputError, Status
from console.paths import unused
from console.program import Program
from console.signals import Stopped
from recovery.membership.lost_quorum import CopyRelation, relation_by_batches
from recovery.wording.quantity_text import counted, human_bytes, more, offset, printable
from widgets.fields import ALL_SHOWN, Field, id_field, text_field, text_rows

# A scan of log dirs as text. The JSON is the scan's own (backends/disk_scan/scan_values.py).

SPANS_SHOWN = 3
RUNBOOK = "docs/runbook-dead-broker-disk.md"


def scan_table(scan: DiskScan, limit: int) -> Iterator[str]:
    """What the broker does with the dirs at its start, the worst first; then every dir with whose it is, and its
    partitions, those that lost records first.
    """
    yield from start_lines(scan, limit)
    for number, found in enumerate(scan.dirs):
        if number:
            yield ""
        yield from _dir_lines(found, limit)
    yield from metadata_lines(scan)


def start_lines(scan: DiskScan, limit: int) -> Iterator[str]:
    """What Kafka does at its start that has to be known before; nothing where it loads everything as it is."""
    effects = scan.at_start
    if not effects:
        return
    yield "WHAT THE BROKER DOES WITH THESE DIRS AT ITS START"
    for one in effects[: limit or len(effects)]:
        yield printable(f"  {one.effect.upper()}: {one.where}: {one.why}")
        yield printable(f"    repair: {one.repair}")
    yield from more(len(effects) - (limit or len(effects)), ALL_SHOWN, "  ")
    yield ""


class _MetadataCopy(NamedTuple):
    """The metadata log on one node's disk, beside the longest one: the same below ``agrees_to``; None: not
    known.
    """

    node: int
    path: str
    epoch: int
    end: int
    lost_tail: str | None
    relation: CopyRelation = CopyRelation.SAME
    agrees_to: int | None = None
    why: str = ""


def metadata_lines(scan: DiskScan) -> Iterator[str]:
    """The metadata logs of several nodes compared; nothing where fewer than two were scanned."""
    copies = [
        _MetadataCopy(found.node_id, found.path, log.last_epoch, log.log_end, log.lost_tail)
        for found in scan.dirs
        for log in found.logs
        if (log.topic, log.partition, log.kind) == (METADATA_TOPIC, 0, LIVE)
    ]
    if len({copy.node for copy in copies}) < 2:
        return
    longest, *others = sorted(copies, key=lambda copy: (-copy.epoch, -copy.end, copy.node))
    compared = [
        longest._replace(agrees_to=longest.end),
        *(_with_relation(longest, copy, scan) for copy in others),
    ]
    yield ""
    yield f"metadata log of {counted(len(copies), 'node')}, the longest first (by last epoch, then log end):"
    for copy in compared:
        yield printable(f"  {_copy_text(copy, longest)}{_batches_text(scan, copy)}")
    ends = sorted((copy.agrees_to for copy in compared if copy.agrees_to is not None), reverse=True)
    majority = len(compared) // 2 + 1
    if len(ends) >= majority:
        yield (
            f"offsets below {offset(ends[majority - 1])} hold the same batches on {majority} of these"
            f" {len(compared)}; what was committed is in no file"
        )


def _with_relation(longest: _MetadataCopy, copy: _MetadataCopy, scan: DiskScan) -> _MetadataCopy:
    batches = scan.metadata_batches.get(copy.path)
    relation, agrees_to, why = relation_by_batches(longest.end, copy.end, batches)
    return copy._replace(relation=relation, agrees_to=agrees_to, why=why)


def _batches_text(scan: DiskScan, copy: _MetadataCopy) -> str:
    """How many batches of this copy were compared with those of the longest."""
    batches = scan.metadata_batches.get(copy.path)
    if batches is None or isinstance(batches, str):
        return ""
    return f"; {counted(batches[1], 'batch', 'batches')} the same by epoch and checksum"


def _copy_text(copy: _MetadataCopy, longest: _MetadataCopy) -> str:
    text = f"node {copy.node}: last epoch {copy.epoch}, log end {offset(copy.end)}"
    same = copy.agrees_to
    if copy.relation is CopyRelation.NOTHING_SHARED:
        text += f"; SHARES NOTHING with node {longest.node}"
    elif same is None:
        text += f"; what its batches hold was not compared ({copy.why or 'no answer'})"
    elif same < longest.end:
        text += f"; lacks {offset(longest.end - same)} offsets of node {longest.node}, from {offset(same)} on"
    if same is not None and same < copy.end:
        text += f"; {offset(copy.end - same)} offsets from {offset(same)} on are another branch"
    return text if copy.lost_tail is None else f"{text}; records are missing at its end"


def _dir_lines(found: ScannedDir, limit: int) -> Iterator[str]:
    if found.problem is not None:
        yield printable(f"{found.path}: {found.problem}")
        return
    lost = sum(log.lost_tail is not None for log in found.logs)
    beside = sum(log.kind != LIVE for log in found.logs)
    size = human_bytes(sum(log.size for log in found.logs))
    yield printable(f"{found.path}: {_owner(found)}")
    if found.never_started:
        yield "  formatted, and never started: no broker or controller has run with this dir"
        return
    stopped = (
        "stopped cleanly" if found.clean_shutdown else "no clean stop (killed, crashed, or still running)"
    )
    yield (
        f"  {stopped}; {counted(len(found.logs) - beside, 'replica')}, {size};"
        f" {lost:,} with records missing at the end; {beside:,} being moved or deleted, or stray"
    )
    skipped = sum(log.skipped for log in found.logs)
    if skipped:
        yield (
            f"  {human_bytes(skipped)} of flushed batches were skipped: the indexes tell their epochs"
            " (--every-batch reads them)"
        )
    for remark in found.remarks:
        yield printable(f"  {remark}")
    yield from text_rows(SCANNED_LOG, sorted(found.logs, key=_urgency), limit=limit)


def _owner(found: ScannedDir) -> str:
    if found.node_id < 0 and not found.cluster_id:
        return "which broker it belongs to is not known"
    directory = f", directory id {found.directory_id}" if found.directory_id else ""
    return f"node {found.node_id} of cluster {found.cluster_id}{directory}"


def _urgency(log: ScannedLog) -> tuple[bool, bool, bool, str, int]:
    return log.lost_tail is None, log.kind == LIVE, not log.remarks, log.topic, log.partition


def _spans(log: ScannedLog) -> str:
    spans = " ".join(f"{epoch}:{start}-{end}" for epoch, start, end in log.spans[-SPANS_SHOWN:])
    earlier = "… " if len(log.spans) > SPANS_SHOWN else ""
    return earlier + spans if spans else "empty"


def _remarks(log: ScannedLog) -> str:
    remarks = [*([log.lost_tail] if log.lost_tail is not None else []), *log.remarks]
    if log.may_be_tiered:
        remarks.append("older records may be in tiered storage")
    return printable("; ".join(remarks))


SCANNED_LOG: tuple[Field[ScannedLog], ...] = (
    text_field("PARTITION", lambda log: f"{log.topic}-{log.partition}"),
    text_field("WHAT", lambda log: log.kind),
    id_field("", "LAST EPOCH", lambda log: log.last_epoch, "none", json=False),
    text_field("LOG END", lambda log: offset(log.log_end), right=True),
    text_field("LOG START", lambda log: offset(log.log_start), right=True),
    text_field("HIGH WATERMARK", lambda log: offset(log.high_watermark), right=True, below=True),
    text_field("EPOCHS", _spans, below=True),
    text_field("SIZE", lambda log: human_bytes(log.size), right=True, below=True),
    text_field("REMARK", _remarks, below=True),
)


def advice_lines(scan: DiskScan) -> Iterator[str]:
    """The best recovery first: the disk itself, where it is whole."""
    read = [found for found in scan.dirs if found.problem is None]
    used = [found for found in read if not found.never_started]
    replicas = [log for found in used for log in found.logs if log.kind == LIVE]
    lost = [log for log in replicas if log.lost_tail is not None]
    nodes = {found.node_id for found in read}
    if not replicas or len(nodes) != 1 or -1 in nodes:
        return
    node = nodes.pop()
    broken = [effect for effect in scan.at_start if effect.effect in TO_REPAIR]
    if lost_then := len(scan.at_start) - len(broken):
        yield (
            f"Before broker {node} is started, copy or move what you may need of the records that its start deletes"
            f" ({counted(lost_then, 'place')} above)."
        )
    ends = any(effect.effect == ENDS for effect in broken)
    begins = sum(effect.effect == BEGINS_EMPTY for effect in broken)
    if begins:
        yield (
            f"Before broker {node} is started, look whether {counted(begins, 'partition')} without a folder"
            " (above) are still assigned to it: if so, it begins an empty log there. A partition that was deleted"
            " or moved away needs nothing."
        )
    if reasons := len(broken) - begins:
        what = "ends at its start" if ends else "does not serve all of it"
        yield (
            f"Do not start broker {node} with these dirs as they are: it {what}"
            f" ({counted(reasons, 'reason')}, see above). Repair a copy, or repair and keep what you replace."
        )
    if lost:
        yield (
            f"Do not start broker {node} with this disk before you have compared:"
            f" {counted(len(lost), 'log')} lost records at the end. If Kafka elects broker {node} by itself, the"
            " other replicas are truncated to these logs."
        )
    elif not broken:
        ids = ", ".join(sorted({found.directory_id for found in read if found.directory_id})) or "not known"
        yield (
            f"Try first: run broker {node} with this disk again. Mount it here, or move it to another host, with"
            f" node id {node} and its meta.properties as it is (directory id {ids}). No check of Kafka's start that"
            f" is known here stops it, and no sign of a lost record was found{_not_read(used)}."
        )
        yield (
            "Compare its logs with the replicas that are up before you start it: Kafka may elect it at once, and"
            " a host that lost power can have lost records without a sign."
        )
    yield f"How, and what to compare: {RUNBOOK}"


def _not_read(dirs: Iterable[ScannedDir]) -> str:
    """What "no sign" leaves out: batches that were skipped, bytes behind a tear, messages of old formats, and
    folders that are no replicas.
    """
    logs = [log for found in dirs for log in found.logs]
    live = [log for log in logs if log.kind == LIVE]
    parts = []
    if skipped := sum(log.skipped for log in live):
        parts.append(f"{human_bytes(skipped)} of flushed batches")
    if old := sum(log.old_messages for log in live):
        parts.append(f"{counted(old, 'message')} of formats 0 and 1")
    if torn := sum(log.defect is not None for log in live):
        parts.append(f"what lies behind a damaged place in {counted(torn, 'log')}")
    text = f"not read: {', '.join(parts)}" if parts else ""
    kinds = [
        counted(sum(log.kind == kind for log in logs), f"{kind} folder")
        for kind in (FUTURE, DELETED, STRAY)
        if any(log.kind == kind for log in logs)
    ]
    beside = f"no replicas, and not counted: {', '.join(kinds)}" if kinds else ""
    found = "; ".join(filter(None, (text, beside)))
    return f" ({found})" if found else ""


def scan_disks(program: Program, dirs: Sequence[Path], depth: ScanDepth, rows: int, *, json: bool) -> int:
    """Scans and shows it; returns the exit status. Raises Stopped, and InputError where no dir could be read."""
    screen, stop = program.screen, program.supervisor.stop

    def progress(done: int, of: int) -> None:
        if stop.signum is not None:
            raise Stopped(stop.signum, in_flight=False)
        screen.progress("reading partitions", done, of)

    now_ms = int(time.time() * 1000)
    scan = scan_log_dirs([str(path) for path in dirs], socket.gethostname(), now_ms, depth, progress)
    bad = [found for found in scan.dirs if found.problem is not None]
    problems = [printable(f"{found.path}: {found.problem}") for found in bad]
    if len(bad) == len(scan.dirs):
        raise InputError("; ".join(problems))
    if json:
        screen.out(scan_lines(scan))
    else:
        screen.out(scan_table(scan, rows))
    screen.say(*problems)
    if not json:
        screen.say(*advice_lines(scan), *_next(scan, depth))
    return Status.PARTLY if bad else Status.DONE


def _next(scan: DiskScan, depth: ScanDepth) -> list[str]:
    nodes = sorted({found.node_id for found in scan.dirs if found.node_id >= 0})
    clusters = {found.cluster_id for found in scan.dirs if found.cluster_id}
    if (
        len(nodes) != 1
        or len(clusters) > 1
        or not any(found.logs and not found.never_started for found in scan.dirs)
    ):
        return []
    file = unused(f"broker-{nodes[0]}.json")
    paths = [found.path for found in scan.dirs if found.problem is None]
    options = [*(("--checksums", depth.checksums) if depth.checksums != "unflushed" else ())]
    options += ["--every-batch"] * depth.every_batch
    scanned = shlex.join(("ktriage", "disk", "scan", "--output", "json", *options, *paths))
    planned = shlex.join(("ktriage", "plan", "--evidence", file, "--bootstrap-server", "HOST:PORT"))
    return [f"next: {scanned} > {file}", f"next: {planned} {shlex.quote(unused())}"]


def print_script(program: Program) -> int:
    """The script on stdout."""
    program.screen.out(scan_script().splitlines())
    return Status.DONE
