"""Pane 3 in plain words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from recovery.model import Unknown
from widgets.eligible.row import DiskWord, EligibleRow
from widgets.text import Line, Piece, Tone, either, fold, ids, line, printable


def summary(rows: Iterable[EligibleRow], width: int) -> list[Line]:
    """First of all: whose return would end how many of them without a loss."""
    offline = [row for row in rows if row.survey.state.offline]
    if not offline:
        return [line(Piece("  no partition waits for a leader", Tone.GOOD))]
    returns = Counter(broker for row in offline for broker in row.clean)
    nobody = sum(1 for row in offline if not row.clean)
    lines: list[Line] = []
    for broker, count in returns.most_common(3):
        text = f"The return of broker {broker} ends {count:,} of {len(offline):,} without an unclean election"
        lines += fold(
            line(Piece(f"  {text}", Tone.GOOD), Piece(f" ({_disk(offline, broker)})")), width, "    "
        )
    if nobody:
        text = f"  For {nobody:,} of {len(offline):,} nobody's return ends it without an unclean election"
        lines += fold(line(Piece(text, Tone.WARN)), width, "    ")
    return lines


def _disk(rows: Iterable[EligibleRow], broker: int) -> str:
    words = {row.disk(broker) for row in rows if broker in row.clean}
    worst_first = (DiskWord.EMPTY, DiskWord.FAILED_DIR, DiskWord.NOT_KNOWN, DiskWord.HOLDS_LOG)
    return next(word for word in worst_first if word in words).value


def details(row: EligibleRow, width: int) -> list[Line]:
    """One partition: who ends it cleanly, what happens if that disk is empty, what each strategy would do."""
    state = row.survey.state
    lines = fold(line(Piece(f"{state.tp}: ", Tone.STRONG), *_sets(row)), width, "  ")
    waiting = row.waiting
    if isinstance(waiting, Unknown):
        text = f"what the controller does is not known: min ISR {printable(str(waiting))}"
        return [*lines, *fold(line(Piece(text, Tone.WARN)), width, "  ")]
    if not state.offline:
        return [*lines, line(Piece(f"led by {state.leader}: nothing is waited for", Tone.GOOD))]
    lines += _clean_return(row, width)
    lines += fold(line(Piece("The controller now:  ", Tone.HEAD), Piece(waiting.sentence)), width, "  ")
    lines.append(line(Piece("What it would do under each strategy (KIP-966):", Tone.HEAD)))
    for strategy, then in row.strategies().items():
        now = "  ← as it is set" if strategy is row.rules.strategy else ""
        sign = Piece("may lose records: " if then.unclean else "", Tone.WARN)
        told = line(
            Piece(f"  {strategy.value:<11}", Tone.STRONG), sign, Piece(then.sentence), Piece(now, Tone.KEY)
        )
        lines += fold(told, width, " " * 13)
    return lines


def _sets(row: EligibleRow) -> tuple[Piece, ...]:
    state = row.survey.state
    elr = "not offered" if state.elr is None else ids(state.elr)
    known = "not offered" if state.last_known_elr is None else ids(state.last_known_elr)
    text = (
        f"replicas {ids(state.replicas)} · ISR {ids(state.isr)} · ELR {elr} · LastKnownELR {known} · min ISR "
    )
    return (Piece(text), Piece(printable(str(row.survey.min_isr))))


def _clean_return(row: EligibleRow, width: int) -> list[Line]:
    if not row.clean:
        text = "Nobody's return ends this without an unclean election: ISR and ELR name nobody who is away."
        return fold(line(Piece(text, Tone.WARN)), width, "  ")
    text = f"The return of {either(row.clean)} ends this without a loss, if its disk is whole."
    lines = fold(line(Piece(text, Tone.GOOD)), width, "  ")
    for broker in row.clean:
        lines += fold(line(Piece(f"  broker {broker}: "), *_empty_disk(row, broker)), width, "    ")
    return lines


def _empty_disk(row: EligibleRow, broker: int) -> tuple[Piece, ...]:
    disk = row.disk(broker)
    told = Piece(f"{disk.value}. ", Tone.BAD if disk in (DiskWord.EMPTY, DiskWord.FAILED_DIR) else Tone.PLAIN)
    if disk is DiskWord.HOLDS_LOG:
        return (told,)
    elected = row.with_empty_disk(broker)
    if isinstance(elected, Unknown):
        return (told, Piece("What happens if it comes back empty is not known.", Tone.WARN))
    if elected:
        text = (
            "Should it come back with an EMPTY disk, it is elected all the same, and all that it held is lost"
        )
        return (told, Piece(f"{text}: look at its log dirs before it is started.", Tone.BAD))
    text = "Should it come back with an empty disk, the controller notices and does not elect it"
    return (told, Piece(f"{text}; the partition stays offline.", Tone.INFO))
