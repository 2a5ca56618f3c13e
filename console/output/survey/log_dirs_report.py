"""Log dirs as text and as JSON (docs/output.md, ``ktriage.log-dirs/1``, ``log-dirs-if-fails/1``, ``-swap/1``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from backends.base.answers import LogDir
from console.operations.survey.log_dir_survey import Disks
from console.output.json_document import document
from console.output.survey.survey_json import last_listed_ms, unknown_json
from recovery.disks.disk_swap import DiskSwap, waiting
from recovery.disks.failed_dirs import FailedDir, LostReplica, last_copies
from recovery.disks.failure_preview import FailureEffect, FailurePreview
from recovery.disks.values import LogDirPlace
from recovery.model import NO_LEADER, TopicPartition, Unknown
from recovery.wording.cluster_health_text import not_listed_text
from recovery.wording.quantity_text import counted, human_bytes, ids, printable
from widgets.text_table import TextColumn, table


def dirs_lines(disks: Disks, failed: tuple[FailedDir, ...], limit: int) -> Iterator[str]:
    """Counts, lost last copies, failed dirs with their replicas, then every dir."""
    listed = disks.listed
    replicas = sum(len(d.replicas) for d in listed if not d.error)
    yield (
        f"cluster {disks.cluster.cluster_id}: {counted(len(listed), 'log dir')} of"
        f" {counted(len(disks.dirs), 'broker')}: {len(failed):,} failed{not_listed_text(disks.not_listed)};"
        f" {counted(replicas, 'replica')} on those that work"
    )
    gone = last_copies(failed)
    if gone:
        yield ""
        yield f"LOST THEIR LAST COPY: {counted(len(gone), 'partition')}"
        yield from _some([f"  {_lost_line(lost)}" for lost in gone], limit)
    for found in failed:
        yield ""
        yield from _failed_lines(found, limit)
    if disks.moved:
        yield ""
        yield f"CAME BACK EMPTY ON ANOTHER DIR: {counted(len(disks.moved), 'replica')}"
        lines = [f"  {m.tp} on broker {m.broker}: was on {m.was}, is on {m.now}" for m in disks.moved]
        yield from _some([printable(line) for line in lines], limit)
    yield ""
    columns = (
        TextColumn("BROKER", right=True),
        TextColumn("DIR"),
        TextColumn("STATE"),
        TextColumn("USED", right=True),
        TextColumn("FREE", right=True),
        TextColumn("TOTAL", right=True),
        TextColumn("REPLICAS", right=True),
        TextColumn("MOVING", right=True),
    )
    # What has failed or is unknown first: nobody must search for it among a thousand.
    broken = [_dir_row(d) for d in listed if d.error]
    silent = [_silent_row(broker, why) for broker, why in disks.unknown_dirs]
    yield from table(columns, [*broken, *silent, *(_dir_row(d) for d in listed if not d.error)])


def fails_lines(found: FailurePreview, limit: int) -> Iterator[str]:
    """The effects of the failures, the worst first."""
    yield f"if {' and '.join(map(str, found.places))} failed:"
    for broker in found.stopped:
        yield f"  broker {broker} would stop altogether"
    if found.without_controller:
        yield (
            f"  {found.without_controller}: nobody would be elected and no ISR would shrink until one leads, so"
            " acks=all writes would wait wherever a member of the ISR is hit"
        )
    led_under = sum(1 for fate in found.under if fate.leader != NO_LEADER)
    yield (
        f"  {counted(len(found.fates), 'partition')} hit: {len(found.last_copies):,} would lose their last copy,"
        f" {len(found.offline):,} would go offline, {led_under:,} more would fall under min ISR,"
        f" {len(found.moved):,} would change leader"
    )
    if not found.fates:
        return
    yield ""
    columns = (
        TextColumn("PARTITION"),
        TextColumn("LEADER", right=True),
        TextColumn("THEN", right=True),
        TextColumn("ISR"),
        TextColumn("ISR THEN"),
        TextColumn("ELR THEN"),
        TextColumn("WHAT"),
    )
    shown = found.fates[: limit or len(found.fates)]
    yield from table(columns, [_effect_row(fate) for fate in shown])
    left = len(found.fates) - len(shown)
    if left:
        yield f"… and {left:,} more (--rows 0, or --output json, shows all)"


def swap_lines(found: DiskSwap, disks: Disks, limit: int, target: Sequence[str]) -> Iterator[str]:
    """What must be recovered first, the steps, and the progress. ``target``: the options that name the cluster."""
    left = waiting(disks.partitions.states, found.place, found.replicas)
    yield (
        f"{found.place}: {counted(len(found.replicas), 'replica')} known to belong there, {len(left):,} of them not"
        " in the ISR"
    )
    if found.unplaced:
        yield (
            f"  and {counted(len(found.unplaced), 'replica')} of that broker that may have been there:"
            " on which of its log dirs is not known"
        )
    if found.place.broker in disks.not_listed:
        yield f"  broker {found.place.broker} does not list its log dirs now: this is what is known from before"
    first = [d for d in found.dangers if d.others]
    if first:
        yield ""
        yield f"RECOVER FIRST: an empty disk could be elected to lead {counted(len(first), 'partition')}"
        lines = [f"  {d.tp}: {d.why}; {ids(d.others)} would truncate to it" for d in first]
        yield from _some(lines, limit)
    gone = [d for d in found.dangers if not d.others]
    if gone:
        yield ""
        yield (
            f"NO OTHER COPY: {counted(len(gone), 'partition')} would start empty; keep the old disk, its records"
            " may be readable"
        )
        yield from _some([f"  {d.tp}: {d.why}" for d in gone], limit)
    yield ""
    for number, step in enumerate(_swap_steps(found, disks, target), 1):
        yield printable(f"{number}. {step}")


def _swap_steps(found: DiskSwap, disks: Disks, target: Sequence[str]) -> list[str]:
    return [step.text(target).replace("CLUSTER", disks.cluster.cluster_id) for step in found.steps]


def dirs_document(disks: Disks, failed: tuple[FailedDir, ...]) -> Iterator[str]:
    """``ktriage.log-dirs/1``."""
    last_listed = {LogDirPlace(d.broker, d.path): last_listed_ms(d) for d in disks.failed_before}
    return document(
        "log-dirs",
        {
            "clusterId": disks.cluster.cluster_id,
            "counts": {
                "brokers": len(disks.dirs),
                "dirs": len(disks.listed),
                "failed": len(failed),
                "notListed": len(disks.not_listed),
                "lastCopiesLost": len(last_copies(failed)),
            },
            "notTold": [{"broker": broker, **unknown_json(why)} for broker, why in disks.unknown_dirs],
            "lastCopies": [_lost_json(lost) for lost in last_copies(failed)],
            "failed": [
                {
                    "broker": f.place.broker,
                    "path": f.place.path,
                    "lastListed": last_listed.get(f.place),
                    "partitions": [_lost_json(x) for x in f.lost],
                }
                for f in failed
            ],
            "moved": [
                {"broker": m.broker, **_tp_json(m.tp), "was": m.was, "now": m.now} for m in disks.moved
            ],
            "dirs": [_dir_json(d) for d in disks.listed],
        },
    )


def fails_document(found: FailurePreview) -> Iterator[str]:
    """``ktriage.log-dirs-if-fails/1``."""
    return document(
        "log-dirs-if-fails",
        {
            "places": [{"broker": p.broker, "path": p.path} for p in found.places],
            "brokersStopped": list(found.stopped),
            "withoutController": found.without_controller or None,
            "counts": {
                "hit": len(found.fates),
                "lastCopies": len(found.last_copies),
                "offline": len(found.offline),
                "underMinIsr": len(found.under),
                "newLeader": len(found.moved),
            },
            "partitions": [
                {
                    **_tp_json(fate.tp),
                    "leader": fate.state.leader,
                    "isr": list(fate.state.isr),
                    "leaderThen": fate.leader,
                    "isrThen": list(fate.isr),
                    "elrThen": list(fate.elr),
                    "unclean": fate.unclean,
                    "underMinIsr": fate.under,
                    "copies": fate.copies,
                    "what": _what(fate),
                }
                for fate in found.fates
            ],
        },
    )


def swap_document(found: DiskSwap, disks: Disks, target: Sequence[str]) -> Iterator[str]:
    """``ktriage.log-dirs-swap/1``; ``target`` as above."""
    left = waiting(disks.partitions.states, found.place, found.replicas)
    return document(
        "log-dirs-swap",
        {
            "broker": found.place.broker,
            "path": found.place.path,
            "held": len(found.replicas),
            "unplaced": [_tp_json(tp) for tp in found.unplaced],
            "brokerLists": found.place.broker not in disks.not_listed,
            "waiting": [_tp_json(state.tp) for state in left],
            "recoverFirst": [
                {**_tp_json(d.tp), "reason": d.why, "others": list(d.others)}
                for d in found.dangers
                if d.others
            ],
            "noOtherCopy": [{**_tp_json(d.tp), "reason": d.why} for d in found.dangers if not d.others],
            "steps": _swap_steps(found, disks, target),
        },
    )


def _failed_lines(found: FailedDir, limit: int) -> Iterator[str]:
    yield printable(f"FAILED: {found.place} held {counted(len(found.lost), 'replica')} as far as is known")
    columns = (
        TextColumn("PARTITION"),
        TextColumn("THE CONTROLLER"),
        TextColumn("LEFT TO DO", below=True),
        TextColumn("KNOWN FROM", below=True),
    )
    rows = [_lost_row(lost) for lost in found.lost[: limit or len(found.lost)]]
    if rows:
        yield from table(columns, rows, "  ")
    left = len(found.lost) - len(rows)
    if left:
        yield f"  … and {left:,} more (--rows 0, or --output json, shows all)"


def _lost_row(lost: LostReplica) -> tuple[str, ...]:
    return str(lost.tp), lost.done, str(lost.left), str(lost.known)


def _lost_line(lost: LostReplica) -> str:
    disks = "the disk of broker" if len(lost.brokers) == 1 else "the disks of brokers"
    return printable(f"{lost.tp}: {lost.left}; it was on {disks} {', '.join(map(str, lost.brokers))}")


def _lost_json(lost: LostReplica) -> dict[str, object]:
    return {
        **_tp_json(lost.tp),
        "leader": lost.state.leader,
        "isr": list(lost.state.isr),
        "elr": None if lost.state.elr is None else list(lost.state.elr),
        "failedOn": list(lost.brokers),
        "left": lost.left.name.lower(),
        "done": lost.done,
        "sure": lost.sure,
    }


def _effect_row(fate: FailureEffect) -> tuple[str, ...]:
    return (
        str(fate.tp),
        _leader(fate.state.leader),
        _leader(fate.leader),
        ids(fate.state.isr),
        ids(fate.isr),
        ids(fate.elr),
        _what(fate),
    )


def _what(fate: FailureEffect) -> str:
    outcomes = ", ".join(fate.outcomes)
    return f"{outcomes}, by an unclean election" if fate.unclean else outcomes


def _dir_row(found: LogDir) -> tuple[str, ...]:
    moving = sum(1 for replica in found.replicas if replica.future)
    return (
        str(found.broker),
        printable(found.path),
        printable(found.problem or ("online, cordoned" if found.cordoned else "online")),
        human_bytes(sum(replica.size for replica in found.replicas)) if not found.error else "",
        human_bytes(found.usable_bytes, unknown=""),
        human_bytes(found.total_bytes, unknown=""),
        f"{len(found.replicas):,}" if not found.error else "",
        f"{moving:,}" if moving else "",
    )


def _silent_row(broker: int, why: Unknown) -> tuple[str, ...]:
    return str(broker), "?", f"unknown: {why.why}", *("",) * 5


def _dir_json(found: LogDir) -> dict[str, object]:
    return {
        "broker": found.broker,
        "path": found.path,
        "error": found.error,
        "totalBytes": found.total_bytes,
        "usableBytes": found.usable_bytes,
        "cordoned": found.cordoned,
        "lastListed": last_listed_ms(found),
        "usedBytes": sum(replica.size for replica in found.replicas) if not found.error else -1,
        "replicas": [
            [r.tp.topic, r.tp.partition, r.size, r.offset_lag, r.future]
            for r in (() if found.error else found.replicas)
        ],
    }


def _tp_json(tp: TopicPartition) -> dict[str, object]:
    """The same keys as in plans; the module that writes plans is not imported for two keys."""
    return {"topic": tp.topic, "partition": tp.partition}


def _some(lines: Sequence[str], limit: int) -> Iterable[str]:
    shown = list(lines[: limit or len(lines)])
    if len(shown) < len(lines):
        shown.append(f"  … and {len(lines) - len(shown):,} more (--rows 0, or --output json, shows all)")
    return shown


def _leader(leader: int) -> str:
    return "none" if leader == NO_LEADER else str(leader)
