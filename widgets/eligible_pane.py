"""Pane 3: ELR and LastKnownELR, and what the controller waits for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from recovery.advice import Advice, AdviceKind
from recovery.controller.prediction import (
    LeaderWait,
    PartitionView,
    if_back,
    under_strategies,
    view_of,
    waiting_for,
)
from recovery.controller.rules import ControllerRules, UncleanRecoveryStrategy
from recovery.model import Replica, Standing, Survey, Unknown
from recovery.ranking import Ranking
from recovery.strategy import clean_electors
from recovery.wording.advice_text import do_not_start, not_to_start_first
from recovery.wording.quantity_text import both, either, ids, printable
from recovery.wording.replica_text import elr_text, min_isr_on_brokers, min_isr_text
from widgets.base_pane import TablePane
from widgets.fields import Field, natural_partition
from widgets.log_diagram import picture
from widgets.table import Grouping, RowTable
from widgets.text import BLANK, Line, Piece, Tone, fit, fold, line
from widgets.unknown_min_isr import unknown_min_isr_lines


class DiskWord(StrEnum):
    """What is known about the disk of a broker that is down."""

    HOLDS_LOG = "answers, and its log is there"
    EMPTY = "answers, and its log is EMPTY"
    FAILED_DIR = "its log dir has FAILED"
    NOT_KNOWN = "does not answer: whether its disk is still there is not known"

    @property
    def short(self) -> str:
        """In two or three words."""
        return {
            DiskWord.HOLDS_LOG: "its log is there",
            DiskWord.EMPTY: "its log is EMPTY",
            DiskWord.FAILED_DIR: "log dir FAILED",
            DiskWord.NOT_KNOWN: "disk not known",
        }[self]


class EligibleRow(NamedTuple):
    """One partition; ``rules`` are its controller's, ``disks`` what is known of each broker's disk. ``advice`` is
    what to do first, None where it was not judged.
    """

    survey: Survey
    rules: ControllerRules
    disks: Mapping[int, DiskWord]
    advice: Advice | None = None

    @property
    def not_first(self) -> tuple[int, ...]:
        """The brokers whose return before the first step may lose acknowledged records."""
        return () if self.advice is None else tuple(one.broker for one in not_to_start_first(self.advice))

    @property
    def view(self) -> PartitionView | Unknown:
        return view_of(self.survey, self.rules)

    @property
    def waiting(self) -> LeaderWait | Unknown:
        """What the controller waits for."""
        view = self.view
        return view if isinstance(view, Unknown) else waiting_for(view)

    @property
    def clean(self) -> tuple[int, ...]:
        """The brokers whose return ends it without an unclean election, those left out whose disks failed."""
        return tuple(broker for broker in self._electors if self.disk(broker) is not DiskWord.FAILED_DIR)

    @property
    def likely(self) -> tuple[int, ...]:
        """Those of ``clean`` whose election is expected (the advice); all of them where it expects nobody more than
        the others.
        """
        expected = () if self.advice is None else self.advice.brokers
        return tuple(broker for broker in self.clean if broker in expected) or self.clean

    @property
    def perhaps(self) -> tuple[int, ...]:
        """The others: Kafka elects them after a clean shutdown only, and none was seen."""
        return tuple(broker for broker in self.clean if broker not in self.likely)

    @property
    def led_later(self) -> tuple[int, ...]:
        """Whom to start before the leader that is expected: what they took after it is cut off when it leads."""
        if self.advice is None or self.advice.kind is not AdviceKind.BRING_BACK:
            return ()
        return tuple(one.broker for one in self.advice.led_after if not (one.log_known or one.failed_disk))

    @property
    def failed(self) -> tuple[int, ...]:
        """The brokers of ISR and ELR whose disks failed: they return without the log that they had."""
        return tuple(broker for broker in self._electors if self.disk(broker) is DiskWord.FAILED_DIR)

    @property
    def _electors(self) -> tuple[int, ...]:
        return clean_electors(self.survey) if self.survey.state.offline else ()

    def disk(self, broker: int) -> DiskWord:
        return self.disks.get(broker, DiskWord.NOT_KNOWN)

    def with_empty_disk(self, broker: int) -> bool | Unknown:
        """Whether the controller would elect ``broker`` if it came back with an empty disk.

        An empty disk tells of no clean shutdown (KIP-966, "Unclean shutdown"): with the ELR on, the broker leaves
        ISR and ELR first. Without the ELR nothing is noticed.
        """
        view = self.view
        if isinstance(view, Unknown):
            return view
        return if_back(view, [broker], unclean=frozenset([broker])).partition.leader == broker

    def strategies(self) -> Mapping[UncleanRecoveryStrategy, LeaderWait]:
        """What the controller would wait for under None, Balanced and Aggressive; {} where that is not known."""
        view = self.view
        return {} if isinstance(view, Unknown) else under_strategies(view)


SHOWN = 3
_WORST_FIRST = (DiskWord.EMPTY, DiskWord.FAILED_DIR, DiskWord.NOT_KNOWN, DiskWord.HOLDS_LOG)


class Return(NamedTuple):
    """A broker whose return gives so many offline ``partitions`` a leader cleanly; the worst word of its disk.
    ``not_first``: for how many of them it is not to be started before something else is done. ``perhaps``: for how
    many of them another one is expected. ``after``: whom to start before it.
    """

    broker: int
    partitions: int
    disk: DiskWord
    not_first: int
    perhaps: int = 0
    after: tuple[int, ...] = ()


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
    perhaps: Counter[int] = Counter()
    after: dict[int, set[int]] = {}
    nobody = 0
    for row in offline:
        clean = row.clean
        nobody += not clean
        failed.update(row.failed)
        not_first.update(row.not_first)
        perhaps.update(row.perhaps)
        for broker in row.likely:
            after.setdefault(broker, set()).update(row.led_later)
        for broker in clean:
            counts[broker] += 1
            words.setdefault(broker, set()).add(row.disk(broker))
    brokers = (
        Return(
            broker,
            count,
            next(word for word in _WORST_FIRST if word in words[broker]),
            not_first[broker],
            perhaps[broker],
            tuple(sorted(after.get(broker, ()))),
        )
        for broker, count in sorted(counts.items(), key=lambda pair: (perhaps[pair[0]] - pair[1], -pair[1]))
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
    for broker, count, disk, not_first, perhaps, after in found.brokers[:SHOWN]:
        if not_first:
            text = f"  Do not start {broker} yet: it would lead, and may cut off records ({not_first:,}, see below)"
            lines += fold(line(Piece(text, Tone.BAD)), width, "    ")
            continue
        a_leader = "perhaps a leader" if perhaps == count else "a leader"
        text = f"  Broker {broker} back: {a_leader} for {count:,} of {found.offline:,}"
        if after:
            text += f", but start {both(after)} first"
        elif perhaps == count:
            text += ", after a clean shutdown"
        tone = Tone.BAD if disk is DiskWord.EMPTY else Tone.PLAIN
        lines += fold(line(Piece(text, Tone.STRONG), Piece(f" ({disk.short})", tone)), width, "    ")
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


_LABEL, _SET = 12, 5
_SIGNS = {
    Standing.ELECTABLE: "up",
    Standing.FENCED: "fenced",
    Standing.OFFLINE_REPLICA: "disk offline",
    Standing.UNREGISTERED: "not registered",
}


def who_may_lead(row: EligibleRow, width: int) -> list[Line]:
    """One partition as a drawing: each replica with the sets that it is in, how it stands, and whether it leads."""
    state, survey = row.survey.state, row.survey
    sets = (
        ("ISR", state.isr, _SET),
        ("ELR", state.elr, _SET),
        ("LASTKNOWNELR", state.last_known_elr, 13),
    )
    heads = "".join(f"{title:<{wide}}" for title, _, wide in sets)
    min_isr = printable(min_isr_on_brokers(survey))
    title = line(Piece("WHO MAY LEAD", Tone.HEAD), Piece(f"  {state.tp}, min ISR {min_isr}", Tone.DIM))
    lines = [*fold(title, width, "  "), line(Piece(" " * _LABEL + heads.rstrip(), Tone.DIM))]
    for replica in survey.replicas:
        broker = replica.broker
        pieces = [Piece(fit(f"broker {broker}", _LABEL), Tone.STRONG)]
        for _, members, wide in sets:
            sign, tone = (_IN, Tone.GOOD) if broker in (members or ()) else (_OUT, Tone.DIM)
            sign, tone = ("?", Tone.WARN) if members is None else (sign, tone)
            pieces.append(Piece(f"{sign:<{wide}}", tone))
        how, tone = _may_lead(row, replica)
        known = row.disk(broker)
        disk = "" if known is DiskWord.HOLDS_LOG else f", {known.short}"
        pieces += [Piece(f"{_SIGNS[replica.standing]}{disk}: "), Piece(how, tone)]
        lines += fold(tuple(pieces), width, " " * _LABEL)
    return lines


_IN, _OUT = "■", "·"


def _may_lead(row: EligibleRow, replica: Replica) -> tuple[str, Tone]:
    """Whether the controller makes it the leader, by itself or when it returns."""
    state, waiting, broker = row.survey.state, row.waiting, replica.broker
    if not state.offline:
        in_sync = ("follows", Tone.DIM) if broker in state.isr else ("not in sync", Tone.WARN)
        return ("LEADS", Tone.GOOD) if broker == state.leader else in_sync
    if broker in row.failed:
        return "its return does not help", Tone.BAD
    if isinstance(waiting, Unknown):
        return "not known", Tone.WARN
    when = "by itself" if replica.electable else "when it returns"
    if broker in row.clean or broker in waiting.brokers:
        clean, perhaps = broker in row.clean, "perhaps " if broker in row.perhaps else ""
        how = f"{perhaps}leads {when}" if clean else f"leads {when}, UNCLEANLY"
        if broker in row.not_first:
            return f"{how}: do not start it first", Tone.BAD
        # Without advice it is not known yet whether that is safe.
        not_sure = row.advice is None or bool(perhaps)
        return how, Tone.WARN if not clean else Tone.PLAIN if not_sure else Tone.GOOD
    return ("only uncleanly, by a person (c)" if replica.electable else "does not lead"), Tone.DIM


def details(row: EligibleRow, width: int) -> list[Line]:
    """One partition in words: who ends it cleanly, and what happens if that disk is empty."""
    state, waiting = row.survey.state, row.waiting
    if isinstance(waiting, Unknown):
        text = f"{state.tp}: what the controller does is not known: min ISR {printable(str(waiting))}"
        return fold(line(Piece(text, Tone.WARN)), width, "  ")
    if not state.offline:
        return [line(Piece(f"{state.tp} is led by {state.leader}: nothing is waited for", Tone.GOOD))]
    return _clean_return(row, width)


def strategies(row: EligibleRow, width: int) -> list[Line]:
    """What the controller waits for, and what it would do under each strategy; nothing where that is not known."""
    waiting = row.waiting
    if isinstance(waiting, Unknown) or not row.survey.state.offline:
        return []
    lines = fold(line(Piece("The controller now:  ", Tone.HEAD), Piece(waiting.sentence)), width, "  ")
    lines.append(line(Piece("What it would do under each strategy (KIP-966):", Tone.HEAD)))
    for strategy, then in row.strategies().items():
        now = "  ← as it is set" if strategy is row.rules.strategy else ""
        sign = Piece("may lose records: " if then.unclean else "", Tone.WARN)
        pieces = line(
            Piece(f"  {strategy.value:<11}", Tone.STRONG), sign, Piece(then.sentence), Piece(now, Tone.STRONG)
        )
        lines += fold(pieces, width, " " * 13)
    return lines


def _clean_return(row: EligibleRow, width: int) -> list[Line]:
    """Which broker's return elects a leader cleanly, and what happens with an empty disk; equal brokers share
    a line.
    """
    if not row.clean:
        who = "nobody else who is away" if row.failed else "nobody who is away"
        text = f"Nobody's return ends this without an unclean election: ISR and ELR name {who}."
        lines = fold(line(Piece(text, Tone.WARN)), width, "  ")
    else:
        lines = [
            folded
            for text, tone in _how_elected(row)
            for folded in fold(line(Piece(text, tone)), width, "  ")
        ]
    for text in () if row.advice is None else do_not_start(row.advice):
        lines += fold(line(Piece(text, Tone.BAD)), width, "  ")
    if row.clean and (not row.rules.elr or any(_elected_unchecked(row, broker) for broker in row.clean)):
        why = "The topic elects uncleanly by itself" if row.rules.elr else "The ELR is off"
        if row.rules.elr and _last_known(row):
            why = "After a kill too, as the last known leader, and then by an unclean election"
        text = f"{why}: Kafka elects it whatever its log lost, for example when its host lost power."
        lines += fold(line(Piece(text, Tone.WARN)), width, "  ")
    alike: dict[tuple[Piece, ...], list[int]] = {}
    for broker in (*row.failed, *row.clean):
        alike.setdefault(_empty_disk(row, broker), []).append(broker)
    for pieces, brokers in alike.items():
        who = f"broker {brokers[0]}" if len(brokers) == 1 else f"brokers {both(brokers)}, each"
        lines += fold(line(Piece(f"  {who}: "), *pieces), width, "    ")
    return lines


def _how_elected(row: EligibleRow) -> Iterator[tuple[str, Tone]]:
    """By which election the return of these brokers ends it: with the ELR on a kill makes the difference."""
    who, advice = either(row.clean), row.advice
    returns = f"return of broker {who} elects a leader without an unclean election."
    shut_down = advice is not None and advice.was_shut_down and set(row.clean) <= set(advice.brokers)
    clean = not row.rules.elr or shut_down
    yield f"The {returns}" if clean else f"After a clean shutdown the {returns}", Tone.STRONG


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


def _last_known(row: EligibleRow) -> bool:
    """Whether one broker is the only member of ISR and ELR and the last known leader: the controller elects it
    uncleanly if it left the ELR by a kill.
    """
    state = row.survey.state
    return state.last_known_elr is not None and {*state.isr, *(state.elr or ())} == set(state.last_known_elr)


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


@dataclass(frozen=True, slots=True)
class EligibleView:
    """The partitions in the order to show them. ``known`` False: their logs have not been read yet, so an empty
    list is not good news. ``doubt`` says why it may not be so now, "" where it is. Not ``complete``: whether the
    start of a broker is safe is still being read.
    """

    rows: Sequence[EligibleRow]
    known: bool = True
    doubt: str = ""
    complete: bool = True
    ranking: Ranking = Ranking.LAST_RECORD


def _ends(row: EligibleRow) -> str:
    if not row.survey.state.offline:
        return "online"
    perhaps = f", perhaps {either(row.perhaps)}" if row.perhaps else ""
    return f"{either(row.likely)}{perhaps}" if row.clean else "nobody"


def _ends_tone(row: EligibleRow) -> Tone:
    if not row.survey.state.offline:
        return Tone.GOOD
    return Tone.STRONG if row.clean else Tone.WARN


def _waits(row: EligibleRow) -> str:
    waiting = row.waiting
    return printable(str(waiting)) if isinstance(waiting, Unknown) else waiting.sentence


COLUMNS: tuple[Field[EligibleRow], ...] = (
    Field(
        "partition",
        "PARTITION",
        lambda r: str(r.survey.tp),
        sort=lambda r: natural_partition(r.survey.tp),
        tone=Tone.STRONG,
        flex=True,
    ),
    Field("ends", "ELECTED ON RETURN", _ends, tone=_ends_tone),
    Field("isr", "ISR", lambda r: ids(r.survey.state.isr)),
    Field("elr", "ELR", lambda r: elr_text(r.survey.state.elr)),
    Field("lastKnownElr", "LASTKNOWNELR", lambda r: elr_text(r.survey.state.last_known_elr), priority=2),
    Field("minIsr", "MIN ISR", lambda r: printable(min_isr_text(r.survey)), priority=3),
    Field("waits", "THE CONTROLLER", _waits, priority=5, flex=True, width=34),
)
GROUPINGS: tuple[Grouping[EligibleRow], ...] = (
    Grouping("topic", "by topic", lambda r: (r.survey.state.topic,)),
    Grouping("broker", "by whose return ends it", lambda r: (_ends(r),)),
)


class EligiblePane(TablePane):
    """ISR, ELR, LastKnownELR, and what the controller is waiting for. The table's keys are topic-partitions."""

    DEFAULT_CSS = """
    EligiblePane .details { max-height: 70%; }
    """

    NAME = "eligible"
    DRAWS = True

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._view = EligibleView((), known=False)
        self._returns = returns(())

    def make_table(self) -> RowTable[Any]:
        return RowTable(
            COLUMNS,
            lambda row: row.survey.tp,
            groupings=GROUPINGS,
            noun="partition",
            empty="not known yet",
        )

    def update(self, view: EligibleView) -> None:
        """Shows a new picture; the cursor stays on its partition."""
        if view.rows != self._view.rows:
            self._returns = returns(view.rows)
        self._view = view
        self.table.update(view.rows)
        self.show_lines()

    def summary_lines(self, width: int) -> list[Line]:
        if not self._view.known:
            return fold(line(Piece("  who waits for a leader is not known yet", Tone.WARN)), width, "  ")
        if not self._view.complete and self._returns.offline:
            text = "  Still reading: whom to start, and whom not yet, is said when all of it is read."
            return fold(line(Piece(text, Tone.WARN)), width, "    ")
        return summary(self._returns, width, self._view.doubt)

    def detail_lines(self, width: int) -> list[Line]:
        row = self.table.cursor_row
        if not isinstance(row, EligibleRow):
            return []
        said = details(row, width) if self._view.complete else []
        if self.is_wide:
            return [*said, *self.left_out(width)]
        return [*who_may_lead(row, width), *said, *strategies(row, width)]

    def drawing_lines(self, width: int) -> list[Line]:
        row = self.table.cursor_row
        if not isinstance(row, EligibleRow):
            return []
        then = strategies(row, width)
        logs = [line(Piece(f"THE LOGS OF {row.survey.tp}", Tone.HEAD))]
        logs += picture(row.survey, self._view.ranking, width)
        return [*who_may_lead(row, width), *([BLANK, *then] if then else ()), BLANK, *logs]
