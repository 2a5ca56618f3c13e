"""Log dirs in words and bars."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from recovery.disks.values import DiskOutcome
from recovery.wording.quantity_text import counted, human_bytes, printable
from widgets.log_dirs.log_dirs_view import LogDirDetail, LogDirRow, LogDirsView, PartitionOutcome
from widgets.text import Line, Piece, Tone, fit, fold, line

NEARLY_FULL = 0.85
BAR = 10
_TONES = {
    DiskOutcome.LAST_COPY: Tone.BAD,
    DiskOutcome.OFFLINE: Tone.BAD,
    DiskOutcome.SURVIVOR: Tone.BAD,
    DiskOutcome.UNDER_MIN_ISR: Tone.WARN,
    DiskOutcome.NEW_LEADER: Tone.INFO,
    DiskOutcome.FEWER: Tone.PLAIN,
    DiskOutcome.UNNOTICED: Tone.WARN,
}
SHOWN = 12


def share(row: LogDirRow) -> float | None:
    """How full the volume is, 0 to 1; None where its size is not known."""
    return None if row.total <= 0 or row.usable < 0 else 1 - row.usable / row.total


def bar(row: LogDirRow) -> str:
    """How full the volume is, as a bar and in figures."""
    full = share(row)
    if full is None:
        return "size unknown"
    filled = min(max(round(full * BAR), 0), BAR)
    return f"{'█' * filled}{'·' * (BAR - filled)} {full:4.0%}"


def bar_tone(row: LogDirRow) -> Tone:
    full = share(row)
    return Tone.WARN if full is not None and full >= NEARLY_FULL else Tone.GOOD


def state(row: LogDirRow) -> str:
    """Its state in a word."""
    if row.unknown is not None:
        return "unknown"
    if row.error is not None:
        return "FAILED"
    full = share(row)
    return "nearly full" if full is not None and full >= NEARLY_FULL else "healthy"


def state_tone(row: LogDirRow) -> Tone:
    return {"FAILED": Tone.BAD, "unknown": Tone.WARN, "nearly full": Tone.WARN}.get(state(row), Tone.GOOD)


def summary(view: LogDirsView, width: int) -> list[Line]:
    """How many dirs there are and have failed, and of how many brokers they are unknown."""
    if not view.dirs:
        why = "no broker listed its log dirs" if view.known else "the log dirs are not known yet"
        return fold(line(Piece(f"  {why}", Tone.WARN)), width, "  ")
    failed = sum(1 for row in view.dirs if row.error is not None)
    brokers = len({row.broker for row in view.dirs})
    dirs = Piece(f"  {counted(len(view.dirs), 'log dir')} on {counted(brokers, 'broker')}: ")
    unknown = f", those of {counted(len(view.refused), 'broker')} unknown" if view.refused else ""
    count = Piece(f"{failed:,} failed", Tone.BAD if failed else Tone.GOOD)
    return fold(line(dirs, count, Piece(unknown, Tone.WARN)), width, "  ")


def details(row: LogDirRow, detail: LogDirDetail | None, width: int) -> list[Line]:
    """What was on it, or what if it failed; then its largest partitions."""
    if row.unknown is not None:
        text = f"the log dirs of broker {row.broker} are unknown: {printable(str(row.unknown))}"
        return fold(line(Piece(text, Tone.WARN)), width, "  ")
    where = f"broker {row.broker} {printable(row.path)}"
    lines: list[Line] = []
    if row.error is not None:
        lines += fold(line(Piece(f"{where} FAILED: ", Tone.BAD), Piece(printable(row.error))), width, "  ")
    if detail is None or (detail.broker, detail.path) != row.key:
        return [*lines, line(Piece("being worked out …", Tone.DIM)), *_largest(row, width)]
    # In small letters: in capitals it reads as if it had.
    title = "WHAT WAS ON IT" if detail.failed else f"WHAT IF {where} failed?"
    lines += fold(line(Piece(title, Tone.HEAD), Piece("  "), *_counts(detail)), width, "  ")
    if detail.note:
        lines += fold(line(Piece(printable(detail.note), Tone.DIM)), width, "  ")
    lines += _outcomes(detail, width)
    return [*lines, *_largest(row, width)]


def _counts(detail: LogDirDetail) -> Sequence[Piece]:
    counts = Counter(outcome.what for outcome in detail.outcomes)
    if not counts:
        return [Piece("no partition", Tone.GOOD)]
    pieces: list[Piece] = []
    for what in DiskOutcome:
        if counts[what]:
            pieces += [Piece(", " if pieces else ""), Piece(f"{_word(what)}: {counts[what]:,}", _TONES[what])]
    return pieces


def _word(what: DiskOutcome) -> str:
    """The outcome; what is worst in capitals, as states are."""
    return what.upper() if what in (DiskOutcome.LAST_COPY, DiskOutcome.OFFLINE) else what


def _outcomes(detail: LogDirDetail, width: int) -> list[Line]:
    rank = {what: number for number, what in enumerate(DiskOutcome)}
    ordered = sorted(detail.outcomes, key=lambda o: (rank[o.what], o.tp))
    name = min(max((len(str(o.tp)) for o in ordered[:SHOWN]), default=0), max(width - 50, 16))
    wide = max((len(o.what) for o in ordered[:SHOWN]), default=0)
    lines = []
    for outcome in ordered[:SHOWN]:
        unclean = Piece(" uncleanly", Tone.BAD) if outcome.unclean else Piece("")
        note = Piece(f"  {printable(outcome.note)}", Tone.DIM) if outcome.note else Piece("")
        row_line = line(
            Piece(f"  {fit(str(outcome.tp), name)}  ", Tone.STRONG),
            Piece(f"{_word(outcome.what):<{wide}}  ", _TONES[outcome.what]),
            Piece(_moved(outcome)),
            unclean,
            note,
        )
        lines += fold(row_line, width, " " * 6)
    left = len(ordered) - SHOWN
    return [*lines, line(Piece(f"  … and {left:,} more", Tone.DIM))] if left > 0 else lines


def _moved(outcome: PartitionOutcome) -> str:
    before, after = outcome.leader_before, outcome.leader_after
    if before == after:
        return "no leader" if after < 0 else f"leader stays {after}"
    return f"leader {'none' if before < 0 else before} → {'none' if after < 0 else after}"


def _largest(row: LogDirRow, width: int) -> list[Line]:
    if not row.largest:
        return []
    largest = ", ".join(f"{tp} {human_bytes(size)}" for tp, size in row.largest)
    return fold(line(Piece("largest: ", Tone.HEAD), Piece(largest)), width, "  ")
