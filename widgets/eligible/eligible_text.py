"""Pane 3 in plain words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from recovery.model import Unknown
from recovery.wording.advice_text import do_not_start
from recovery.wording.quantity_text import both, either, ids, printable
from recovery.wording.replica_text import elr_text
from widgets.eligible.eligible_row import DiskWord, EligibleRow
from widgets.text import Line, Piece, Tone, fold, line
from widgets.unknown_min_isr import unknown_min_isr_lines

SHOWN = 3
_WORST_FIRST = (DiskWord.EMPTY, DiskWord.FAILED_DIR, DiskWord.NOT_KNOWN, DiskWord.HOLDS_LOG)


class Return(NamedTuple):
    """A broker whose return gives so many offline ``partitions`` a leader cleanly; the worst word of its disk.
    ``not_first``: for how many of them it is not to be started before something else is done.
    """

    broker: int
    partitions: int
    disk: DiskWord
    not_first: int


@dataclass(frozen=True, slots=True)
class Returns:
    """Whose return ends how many of ``offline`` partitions, most first; ``nobody``: for how many nobody's does;
    ``failed``: how many partitions name a broker whose disk failed; ``unknown_min_isr``: why the min ISR of how
    many is not known.
    """

    offline: int
    brokers: tuple[Return, ...]
    nobody: int
    failed: Mapping[int, int] = field(default_factory=dict)
    unknown_min_isr: Mapping[Unknown, int] = field(default_factory=dict)


def returns(rows: Iterable[EligibleRow]) -> Returns:
    """For each broker, how many of the offline partitions its return ends; counted over all rows."""
    rows = tuple(rows)
    unknown_min_isr = Counter(row.survey.min_isr for row in rows if isinstance(row.survey.min_isr, Unknown))
    offline = [row for row in rows if row.survey.state.offline]
    counts: Counter[int] = Counter()
    failed: Counter[int] = Counter()
    words: dict[int, set[DiskWord]] = {}
    not_first: Counter[int] = Counter()
    nobody = 0
    for row in offline:
        clean = row.clean
        nobody += not clean
        failed.update(row.failed)
        not_first.update(row.not_first)
        for broker in clean:
            counts[broker] += 1
            words.setdefault(broker, set()).add(row.disk(broker))
    brokers = (
        Return(broker, count, next(word for word in _WORST_FIRST if word in words[broker]), not_first[broker])
        for broker, count in counts.most_common()
    )
    return Returns(len(offline), tuple(brokers), nobody, dict(failed), dict(unknown_min_isr))


def summary(found: Returns, width: int, doubt: str = "") -> list[Line]:
    """Shown first: which broker's return brings how many partitions online without an unclean election. ``doubt``
    says why what is known may not be so now, "" where it is.
    """
    lines = unknown_min_isr_lines(found.unknown_min_isr, width)
    if doubt:
        text = f"  As before, {doubt}:" if found.offline else f"  {unknown_now(doubt)}"
        lines = fold(line(Piece(text, Tone.WARN)), width, "    ") + lines
    if not found.offline:
        nobody = () if doubt else (line(Piece("  no partition waits for a leader", Tone.GOOD)),)
        return [*nobody, *lines]
    for broker, count in sorted(found.failed.items()):
        text = (
            f"  Broker {broker}'s disk FAILED under {count:,} of {found.offline:,}: its return does not help"
        )
        lines += fold(line(Piece(text, Tone.BAD)), width, "    ")
    for broker, count, disk, not_first in found.brokers[:SHOWN]:
        text = f"  Broker {broker} back: a leader for {count:,} of {found.offline:,}, no unclean election"
        tone = Tone.BAD if disk is DiskWord.EMPTY else Tone.PLAIN
        warned = Piece(
            f"; do not start it first (for {not_first:,}, see below)" if not_first else "", Tone.BAD
        )
        lines += fold(line(Piece(text, Tone.STRONG), Piece(f" ({disk.short})", tone), warned), width, "    ")
    if found.nobody:
        text = (
            f"  For {found.nobody:,} of {found.offline:,} nobody's return ends it without an unclean election"
        )
        lines += fold(line(Piece(text, Tone.WARN)), width, "    ")
    return lines


def unknown_now(doubt: str) -> str:
    """Shown in place of an empty list, which would look as if no partition were offline. ``doubt``: why it is not
    known.
    """
    return f"who waits for a leader is not known: {doubt}"


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
        pieces = line(
            Piece(f"  {strategy.value:<11}", Tone.STRONG), sign, Piece(then.sentence), Piece(now, Tone.KEY)
        )
        lines += fold(pieces, width, " " * 13)
    return lines


def _sets(row: EligibleRow) -> tuple[Piece, ...]:
    state = row.survey.state
    elr = elr_text(state.elr)
    known = elr_text(state.last_known_elr)
    text = (
        f"replicas {ids(state.replicas)} · ISR {ids(state.isr)} · ELR {elr} · LastKnownELR {known} · min ISR "
    )
    return (Piece(text), Piece(printable(str(row.survey.min_isr))))


def _clean_return(row: EligibleRow, width: int) -> list[Line]:
    """Which broker's return elects a leader cleanly, and what happens with an empty disk; equal brokers share
    a line.
    """
    if not row.clean:
        who = "nobody else who is away" if row.failed else "nobody who is away"
        text = f"Nobody's return ends this without an unclean election: ISR and ELR name {who}."
        lines = fold(line(Piece(text, Tone.WARN)), width, "  ")
    else:
        text = f"The return of broker {either(row.clean)} elects a leader without an unclean election."
        lines = fold(line(Piece(text, Tone.STRONG)), width, "  ")
    for text in () if row.advice is None else do_not_start(row.advice):
        lines += fold(line(Piece(text, Tone.BAD)), width, "  ")
    if row.clean and (not row.rules.elr or any(_elected_unchecked(row, broker) for broker in row.clean)):
        why = "The topic elects uncleanly by itself" if row.rules.elr else "The ELR is off"
        text = f"{why}: Kafka elects it whatever its log lost, for example when its host lost power."
        lines += fold(line(Piece(text, Tone.WARN)), width, "  ")
    alike: dict[tuple[Piece, ...], list[int]] = {}
    for broker in (*row.failed, *row.clean):
        alike.setdefault(_empty_disk(row, broker), []).append(broker)
    for pieces, brokers in alike.items():
        who = f"broker {brokers[0]}" if len(brokers) == 1 else f"brokers {both(brokers)}, each"
        lines += fold(line(Piece(f"  {who}: "), *pieces), width, "    ")
    return lines


def _elected_unchecked(row: EligibleRow, broker: int) -> bool:
    """Whether Kafka elects it also after an unclean shutdown: on a topic that elects uncleanly by itself, in spite
    of the ELR.
    """
    advice = row.advice
    if advice is None:
        return False
    return broker in advice.check_disk or any(
        one.broker == broker and not one.checks_records for one in advice.keep_down
    )


def _empty_disk(row: EligibleRow, broker: int) -> tuple[Piece, ...]:
    disk = row.disk(broker)
    pieces = Piece(
        f"{disk.value}. ", Tone.BAD if disk in (DiskWord.EMPTY, DiskWord.FAILED_DIR) else Tone.PLAIN
    )
    if disk is DiskWord.HOLDS_LOG:
        return (pieces,)
    elected = row.with_empty_disk(broker)
    if isinstance(elected, Unknown):
        return (pieces, Piece("What happens if it comes back empty is not known.", Tone.WARN))
    if elected or _elected_unchecked(row, broker):
        text = "Coming back with an EMPTY disk, it is elected anyway, and all that it held is lost"
        return (pieces, Piece(f"{text}: look at its log dirs before it is started.", Tone.BAD))
    text = "Coming back with an empty disk, it is noticed by the controller and not elected"
    return (pieces, Piece(f"{text}: the partition stays offline.", Tone.INFO))
