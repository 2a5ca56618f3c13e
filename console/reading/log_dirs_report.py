"""Log dirs, each described once for pane 5, ``log-dirs``, ``status`` and their JSON, and what failed with them
(docs/output.md, ``ktriage.log-dirs/2``, ``log-dirs-if-fails/1``, ``-swap/1``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from backends.base.answers import LogDir
from console.output.json_document import document
from console.reading.cluster_reading import ClusterReading
from console.reading.log_dir_survey import Disks
from console.reading.survey_json import last_listed_ms, unknown_json
from recovery.disks.disk_swap import DiskSwap, waiting
from recovery.disks.failed_dirs import FailedDir, LostReplica, last_copies
from recovery.disks.failure_preview import FailureEffect, FailurePreview
from recovery.disks.values import LogDirPlace
from recovery.model import NO_LEADER, TopicPartition, Unknown, Why
from recovery.wording.cluster_health_text import not_listed_text
from recovery.wording.quantity_text import counted, human_bytes, ids, printable
from widgets.fields import (
    Field,
    data_field,
    first_lines,
    json_of,
    json_row,
    partition_fields,
    text_field,
    text_rows,
)
from widgets.text import Tone

DirRow = tuple[int, LogDir | Unknown]
"""A broker and one of its log dirs, or why its log dirs are not known."""
NEARLY_FULL = 0.85
BAR = 10
_STATES = ("FAILED", "unknown", "nearly full", "healthy")
_STATE_TONES = {"FAILED": Tone.BAD, "healthy": Tone.GOOD}


def dir_rows(reading: ClusterReading) -> tuple[DirRow, ...]:
    """Failed dirs first, then brokers whose dirs are not known: nobody must search for one among a thousand."""
    every = [dir_ for dirs in reading.log_dirs.values() if not isinstance(dirs, Unknown) for dir_ in dirs]
    listed = sorted((*every, *reading.failed_before), key=lambda d: (d.broker, d.path))
    absent = Unknown(Why.NOT_ANSWERED, "the cluster does not list this broker")
    silent: list[DirRow] = []
    for broker in reading.dirs_not_listed:
        answer = reading.log_dirs.get(broker, absent)
        silent.append((broker, answer if isinstance(answer, Unknown) else absent))
    failed = [(d.broker, d) for d in listed if d.error]
    return (*failed, *silent, *((d.broker, d) for d in listed if not d.error))


def fullest_first(rows: Iterable[DirRow]) -> tuple[DirRow, ...]:
    """Those that failed and the unknown ones, then by how full their volumes are."""
    return tuple(sorted(rows, key=lambda row: (_STATES.index(_word(row)), -(_share(row) or 0.0))))


def dir_problem(row: DirRow) -> str:
    """What has failed, or why the broker's dirs are not known; "" for a healthy dir."""
    return printable(str(row[1]) if isinstance(row[1], Unknown) else row[1].problem)


def dir_state(row: DirRow) -> str:
    """The state in a word, and whether the dir takes no new replica."""
    dir_ = row[1]
    if isinstance(dir_, Unknown):
        return "unknown"
    full = _share(row)
    state = "FAILED" if dir_.error else "healthy" if full is None or full < NEARLY_FULL else "nearly full"
    return f"{state}, cordoned" if dir_.cordoned else state


def _word(row: DirRow) -> str:
    return dir_state(row).removesuffix(", cordoned")


def _share(row: DirRow) -> float | None:
    """How full the volume is, 0 to 1; None where its size is not known."""
    dir_ = row[1]
    if isinstance(dir_, Unknown) or dir_.total_bytes <= 0 or dir_.usable_bytes < 0:
        return None
    return 1 - dir_.usable_bytes / dir_.total_bytes


def _bar(row: DirRow) -> str:
    full = _share(row)
    if full is None:
        return "size unknown"
    filled = min(max(round(full * BAR), 0), BAR)
    return f"{'█' * filled}{'·' * (BAR - filled)} {full:4.0%}"


def _bytes(name: str, title: str, priority: int, size: Callable[[LogDir], int]) -> Field[DirRow]:
    """A column of bytes; -1 and "?" where they are not known."""

    def value(row: DirRow) -> int:
        return -1 if isinstance(row[1], Unknown) else size(row[1])

    return Field(name, title, value, lambda row: human_bytes(value(row)), right=True, priority=priority)


def _logs(dir_: LogDir) -> int:
    return -1 if dir_.error else sum(max(0, replica.size) for replica in dir_.replicas)


def _moving(row: DirRow) -> int:
    return 0 if isinstance(row[1], Unknown) else sum(1 for replica in row[1].replicas if replica.future)


def _replicas(row: DirRow) -> int | None:
    return None if isinstance(row[1], Unknown) or row[1].error else len(row[1].replicas)


LOG_DIR: tuple[Field[DirRow], ...] = (
    Field("broker", "BROKER", lambda r: r[0], lambda r: str(r[0]), Tone.STRONG, right=True),
    Field(
        "path",
        "LOG DIR",
        lambda r: None if isinstance(r[1], Unknown) else r[1].path,
        lambda r: "?" if isinstance(r[1], Unknown) else printable(r[1].path),
        flex=True,
    ),
    Field(
        "state",
        "STATE",
        dir_state,
        tone=lambda r: _STATE_TONES.get(dir_state(r), Tone.WARN),
        sort=lambda r: _STATES.index(_word(r)),
        json=False,
    ),
    Field(
        "full",
        "FULL",
        lambda r: None if (full := _share(r)) is None else round(full, 4),
        _bar,
        lambda r: Tone.WARN if _word(r) == "nearly full" else Tone.GOOD,
        sort=lambda r: _share(r) or 0.0,
        priority=3,
        printed=False,
        json=False,
    ),
    _bytes("usableBytes", "FREE", 0, lambda d: d.usable_bytes),
    replace(_bytes("usedBytes", "LOGS", 4, _logs), json=False),
    _bytes("totalBytes", "TOTAL", 5, lambda d: d.total_bytes),
    Field(
        "replicas",
        "REPLICAS",
        _replicas,
        lambda r: "?" if (count := _replicas(r)) is None else f"{count:,}",
        right=True,
        priority=2,
        json=False,
    ),
    Field(
        "moving",
        "MOVING",
        _moving,
        lambda r: f"{moving:,}" if (moving := _moving(r)) else "",
        right=True,
        priority=6,
        json=False,
    ),
    Field(
        "error",
        "ERROR",
        lambda r: str(r[1]) if isinstance(r[1], Unknown) else r[1].error,
        dir_problem,
        Tone.BAD,
        priority=7,
        flex=True,
        width=20,
        below=True,
        shown_below=True,
    ),
    Field(
        "cordoned",
        "CORDONED",
        lambda r: None if isinstance(r[1], Unknown) else r[1].cordoned,
        screen=False,
        printed=False,
    ),
    Field(
        "lastListed",
        "LAST LISTED",
        lambda r: None if isinstance(r[1], Unknown) else last_listed_ms(r[1]),
        screen=False,
        printed=False,
    ),
)
FAILED_LOG_DIR = tuple(field for field in LOG_DIR if field.id in ("broker", "path", "error"))
"""What ``status`` shows of a failed log dir."""


def dirs_lines(disks: Disks, failed: tuple[FailedDir, ...], limit: int) -> Iterator[str]:
    """Counts, lost last copies, failed dirs with their replicas, then every dir."""
    listed = disks.listed
    replicas = sum(len(d.replicas) for d in listed if not d.error)
    yield (
        f"cluster {disks.cluster.cluster_id}: {counted(len(listed), 'log dir')} of"
        f" {counted(len(disks.log_dirs), 'broker')}:"
        f" {len(failed):,} failed{not_listed_text(disks.dirs_not_listed)};"
        f" {counted(replicas, 'replica')} on those that work"
    )
    gone = last_copies(failed)
    if gone:
        yield ""
        yield f"LOST THEIR LAST COPY: {counted(len(gone), 'partition')}"
        yield from first_lines([_lost_line(lost) for lost in gone], limit, "  ")
    for found in failed:
        yield ""
        yield from _failed_lines(found, limit)
    if disks.moved:
        yield ""
        yield f"CAME BACK EMPTY ON ANOTHER DIR: {counted(len(disks.moved), 'replica')}"
        lines = [f"{m.tp} on broker {m.broker}: was on {m.was}, is on {m.now}" for m in disks.moved]
        yield from first_lines([printable(line) for line in lines], limit, "  ")
    yield ""
    yield from text_rows(LOG_DIR, dir_rows(disks))


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
    yield from text_rows(EFFECT, found.fates, limit=limit)


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
    if found.place.broker in disks.dirs_not_listed:
        yield f"  broker {found.place.broker} does not list its log dirs now: this is what is known from before"
    first = [d for d in found.dangers if d.others]
    if first:
        yield ""
        yield f"RECOVER FIRST: an empty disk could be elected to lead {counted(len(first), 'partition')}"
        lines = [f"{d.tp}: {d.why}; {ids(d.others)} would truncate to it" for d in first]
        yield from first_lines(lines, limit, "  ")
    gone = [d for d in found.dangers if not d.others]
    if gone:
        start = "could start" if found.unplaced else "would start"
        yield ""
        yield (
            f"NO OTHER COPY: {counted(len(gone), 'partition')} {start} empty; keep the old disk, its records"
            " may be readable"
        )
        yield from first_lines([f"{d.tp}: {d.why}" for d in gone], limit, "  ")
    yield ""
    for number, step in enumerate(_swap_steps(found, disks, target), 1):
        yield printable(f"{number}. {step}")


def _swap_steps(found: DiskSwap, disks: Disks, target: Sequence[str]) -> list[str]:
    return [step.text(target).replace("CLUSTER", disks.cluster.cluster_id) for step in found.steps]


def dirs_document(disks: Disks, failed: tuple[FailedDir, ...]) -> Iterator[str]:
    """``ktriage.log-dirs/2``."""
    last_listed = {LogDirPlace(d.broker, d.path): last_listed_ms(d) for d in disks.failed_before}
    return document(
        "log-dirs",
        {
            "clusterId": disks.cluster.cluster_id,
            "counts": {
                "brokers": len(disks.log_dirs),
                "dirs": len(disks.listed),
                "failed": len(failed),
                "notListed": len(disks.dirs_not_listed),
                "lastCopiesLost": len(last_copies(failed)),
            },
            "unknown": [{"broker": broker, **unknown_json(why)} for broker, why in disks.unknown_dirs],
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
            "partitions": list(map(json_of(EFFECT), found.fates)),
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
            "brokerLists": found.place.broker not in disks.dirs_not_listed,
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
    yield from text_rows(LOST_REPLICA, found.lost, "  ", limit=limit)


def _lost_line(lost: LostReplica) -> str:
    disks = "the disk of broker" if len(lost.brokers) == 1 else "the disks of brokers"
    return printable(f"{lost.tp}: {lost.left}; it was on {disks} {', '.join(map(str, lost.brokers))}")


LOST_REPLICA: tuple[Field[LostReplica], ...] = (
    *partition_fields(lambda r: r.tp),
    data_field("leader", lambda r: r.state.leader),
    data_field("isr", lambda r: list(r.state.isr)),
    data_field("elr", lambda r: None if r.state.elr is None else list(r.state.elr)),
    data_field("failedOn", lambda r: list(r.brokers)),
    data_field("left", lambda r: r.left.name.lower()),
    Field("done", "THE CONTROLLER", lambda r: r.done),
    text_field("LEFT TO DO", lambda r: str(r.left), below=True),
    text_field("KNOWN FROM", lambda r: str(r.known), below=True),
    data_field("sure", lambda r: r.sure),
)
_lost_json = json_of(LOST_REPLICA)


def _what(fate: FailureEffect) -> str:
    outcomes = ", ".join(fate.outcomes)
    return f"{outcomes}, by an unclean election" if fate.unclean else outcomes


EFFECT: tuple[Field[FailureEffect], ...] = (
    *partition_fields(lambda f: f.tp),
    Field("leader", "LEADER", lambda f: f.state.leader, lambda f: _leader(f.state.leader), right=True),
    text_field("THEN", lambda f: _leader(f.leader), right=True),
    Field("isr", "ISR", lambda f: list(f.state.isr), lambda f: ids(f.state.isr)),
    data_field("leaderThen", lambda f: f.leader),
    Field("isrThen", "ISR THEN", lambda f: list(f.isr), lambda f: ids(f.isr)),
    Field("elrThen", "ELR THEN", lambda f: list(f.elr), lambda f: ids(f.elr)),
    data_field("unclean", lambda f: f.unclean),
    data_field("underMinIsr", lambda f: f.under),
    data_field("copies", lambda f: f.copies),
    Field("what", "WHAT", _what),
)


def _dir_json(dir_: LogDir) -> dict[str, object]:
    replicas = () if dir_.error else dir_.replicas
    return {
        **json_row(LOG_DIR, (dir_.broker, dir_)),
        "usedBytes": _logs(dir_),
        "replicas": [[r.tp.topic, r.tp.partition, r.size, r.offset_lag, r.future] for r in replicas],
    }


def _tp_json(tp: TopicPartition) -> dict[str, object]:
    """The same keys as in plans; the module that writes plans is not imported for two keys."""
    return {"topic": tp.topic, "partition": tp.partition}


def _leader(leader: int) -> str:
    return "none" if leader == NO_LEADER else str(leader)
