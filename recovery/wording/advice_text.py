"""What to do first, in words: the one description that screens, commands, plans and JSON print."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from recovery.acknowledged.verdict import (
    AutomaticElection,
    AutomaticElectionKind,
    ConditionKind,
    DeciderKind,
    EvidenceKind,
    VerdictKind,
)
from recovery.advice import Advice, AdviceKind, FirstStep, first_steps
from recovery.model import TopicPartition
from recovery.strategy import Decision, DecisionKind, WhyNot
from recovery.wording.quantity_text import both, counted, either, exact_age, time_text
from recovery.wording.replica_text import still_writes_text
from recovery.wording.unread_disk_text import READ_DISK, cut_off_at_start, lost_with_disk, may_hold_text
from recovery.wording.verdict_text import conditions_text, decider_text

ACKED = "every record that was acknowledged with acks=all"
ACCEPT_LOSS = "only if what stands above can never be done, accept the loss:"
"""Before a command that elects by the aggressive strategy."""
ACCEPT_UNCHECKED = "only if what stands above cannot be done, elect by what was not checked, and say why:"
"""Before a command with --accept-unchecked."""
WARNING = "! "
"""Before a sentence that says what not to do, or what speaks against the action."""


class AdviceText(NamedTuple):
    """An advice as everybody tells it.

    ``action``: what to do, in at most 90 characters. ``instead``: what may be done instead of it, "" for nothing.
    ``warnings``: what would undo the action, or speaks against it, in at most 120 characters each. ``reasons``:
    why, and how, in sentences of any length.
    """

    action: str
    instead: str = ""
    warnings: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """All of it, in the order in which it is read."""
        return (self.action, *filter(None, (self.instead,)), *self.warnings, *self.reasons)

    def without(self, said: set[str]) -> AdviceText | None:
        """What does not stand above already; None where all of it does."""
        if said.issuperset(self.sentences):
            return None
        warnings = tuple(sentence for sentence in self.warnings if sentence not in said)
        reasons = tuple(sentence for sentence in self.reasons if sentence not in said)
        return self._replace(warnings=warnings, reasons=reasons)


class AdvicePart(NamedTuple):
    """What is said of something else than partitions. ``about``: what that is, "" for nothing that has a pane."""

    text: AdviceText
    about: str = ""


class AdvisedStep(NamedTuple):
    """``first``: such as ``Do first (payments-0)``; ``step`` is None where it is about no partitions, and for the
    line that counts those left out; ``about`` as in :class:`AdvicePart`.
    """

    first: str
    text: AdviceText
    step: FirstStep | None = None
    about: str = ""

    @property
    def head(self) -> str:
        return " ".join(filter(None, (f"{self.first}: {self.text.action}", self.text.instead)))


def advice_text(advice: Advice, count: int = 1) -> AdviceText:
    """The advice for ``count`` partitions."""
    reasons = (*_WHY[advice.kind](advice, count), *_why_instead(advice), *_why_warned(advice))
    return AdviceText(
        _ACTIONS[advice.kind](advice, count), _instead(advice), tuple(_warnings(advice)), reasons
    )


def advised_steps(
    steps: Sequence[FirstStep],
    shown: int,
    *,
    before: Sequence[AdvicePart] = (),
    then: Sequence[AdvicePart] = (),
    after: bool = False,
) -> Iterator[AdvisedStep]:
    """What to do, in order; of more than ``shown`` steps for partitions the rest is counted. What two steps say
    stands once. ``before`` and ``then`` are about something else than partitions. ``after``: something else was
    said to be done first.
    """
    said: set[str] = set()
    parts = [
        *((part.text, None, part.about) for part in before),
        *((advice_text(step.advice, step.partitions), step, "") for step in steps[:shown]),
    ]
    left = sum(step.partitions for step in steps[shown:])
    if left:
        parts.append((AdviceText(f"{counted(left, 'partition')} in other ways."), None, ""))
    parts += [(part.text, None, part.about) for part in then[: max(1, shown - len(steps))]]
    first = not after
    for whole, step, about in parts:
        text = whole.without(said)
        if text is None:
            continue  # the same, for partitions in another state
        said.update(text.sentences)
        word = "Do first" if first else "Only then" if step is not None and step.only_then else "Then"
        first = False
        where = _where(step) if step is not None and len(parts) > 1 else ""
        yield AdvisedStep(f"{word}{where}", text, step, about)


def steps_lines(
    steps: Sequence[FirstStep],
    shown: int = 3,
    *,
    before: Sequence[AdvicePart] = (),
    then: Sequence[AdvicePart] = (),
    after: bool = False,
) -> Iterator[str]:
    """As :func:`advised_steps`, for commands: the action on a line, warnings and reasons indented below it."""
    for advised in advised_steps(steps, shown, before=before, then=then, after=after):
        yield advised.head
        yield from (f"  {WARNING}{warning}" for warning in advised.text.warnings)
        yield from (f"  {reason}" for reason in advised.text.reasons)


def without_reasons(lines: Iterable[str]) -> list[str]:
    """The lines of :func:`steps_lines` with each step on one line, for a page that has room for no more."""
    found: list[str] = []
    for line in lines:
        if not line.startswith("  "):
            found.append(line)
        elif found and line.startswith(f"  {WARNING}"):
            found[-1] += line[1:]
    return found


def _where(step: FirstStep) -> str:
    if step.partitions == 1:
        return f" ({step.example})"
    # "2,000 get a leader" has the number already.
    named = (AdviceKind.BRING_BACK, AdviceKind.START_TOGETHER)
    return "" if step.advice.kind in named else f" ({step.partitions:,} partitions)"


# The action, in one sentence.


def _few(brokers: Sequence[int], join: Callable[[Sequence[int]], str] = both) -> str:
    """``broker 3``; of many only how many."""
    if len(brokers) > _MOST_NAMED:
        return f"{len(brokers)} brokers"
    return f"broker{'s' if join is both and len(brokers) > 1 else ''} {join(sorted(brokers))}"


_MOST_NAMED = 3


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _disk_of(brokers: Sequence[int]) -> str:
    return f"the disk{'' if len(brokers) == 1 else 's'} of {_few(brokers)}"


def _they(brokers: Sequence[int], verb: str) -> str:
    """``it starts``, ``they start``."""
    return f"it {verb}s" if len(brokers) == 1 else f"they {verb}"


def _its(brokers: Sequence[int]) -> str:
    return "its" if len(brokers) == 1 else "their"


def _partitions(count: int) -> str:
    return "this partition" if count == 1 else f"{count:,} partitions"


def _stop_and_read(advice: Advice, _count: int) -> str:
    disks = "its disk" if len(advice.brokers) == 1 else "their disks"
    return (
        f"Stop {_few(advice.brokers)} and read {disks}: what {_they(advice.brokers, 'take')} is lost later."
    )


def _read_first(advice: Advice, count: int) -> str:
    leader = "the leader" if count == len(advice.brokers) == 1 else "leaders"
    if advice.failed_disk:
        failed = _disk_of(advice.brokers).replace("the disk", "the failed disk")
        return f"Read {failed} before {_they_are(advice.brokers)} replaced: {leader} may lack records."
    starts = _they(advice.brokers, "start")
    return f"Read {_disk_of(advice.brokers)} before {starts}: {leader} may lack records."


def _stop_or_mend(advice: Advice, _count: int) -> str:
    who = _few(advice.brokers)
    if advice.read_before:
        return _stop_and_read(advice, _count)
    if advice.leads_again:
        return (
            f"Stop {who}, or mend {_its(advice.brokers)} network: then {_they(advice.brokers, 'lead')} again."
        )
    return f"Stop {who}: {_they(advice.brokers, 'take')} writes that an election cuts off."


def _elect(advice: Advice, _count: int) -> str:
    who = str(advice.brokers[0]) if len(advice.brokers) == 1 else "a leader"
    if whole := started_before(advice):
        return f"Start {_few(whole)} if {_its(whole)} host kept power; else elect {who}."
    checked = advice.verdict is not None and advice.verdict.proved_none
    lost = "no acknowledged record is lost."
    if _compares_logs(advice):
        lost = "no acknowledged record that a log still has is lost."
    return f"Elect {who}: {lost if checked else f'as far as known, {lost}'}"


def started_before(advice: Advice) -> tuple[int, ...]:
    """Whom to start before the brokers of the advice are elected or started, where their hosts kept power."""
    if advice.kind is AdviceKind.ELECT:
        return tuple(b for one in advice.start_if_whole if (b := one.broker) not in advice.read_before)
    if advice.kind is AdviceKind.BRING_BACK and not advice.read_before:
        return _later(advice)[0]
    return ()


class StartInstead(NamedTuple):
    """What keeps more than an election that is planned: ``do`` ("start broker 2") where ``condition`` holds ("if
    its host kept power", "" for none), and ``then`` what comes of it.
    """

    do: str
    condition: str
    then: str

    @property
    def where(self) -> str:
        """What to do, and when."""
        return " ".join(filter(None, (self.do, self.condition)))

    @property
    def sentence(self) -> str:
        do = _capital(" ".join(filter(None, (f"{self.do} instead", self.condition))))
        return f"{do}: {self.then}."


_ELECTED_BACK = "Kafka elects it once it is back"


def start_instead(advice: Advice) -> StartInstead | None:
    """Whom to start in place of an election that is planned, as the advice was before; None: nobody."""
    if advice.kind is AdviceKind.ELECT:
        whole = started_before(advice)
        condition = f"if {_its(whole)} host kept power"
        return StartInstead(f"start {_few(whole)}", condition, "its log may hold more") if whole else None
    if advice.kind not in (AdviceKind.BRING_BACK, AdviceKind.START_TOGETHER):
        return None
    join = either if advice.kind is AdviceKind.BRING_BACK else both
    who = _few(advice.brokers, join)
    elected = _ELECTED_BACK if len(advice.brokers) == 1 else "Kafka elects one of them once they are back"
    if advice.read_before:
        return StartInstead(f"read {_disk_of(advice.read_before)} and start {who}", "", elected)
    if silent := started_before(advice):
        condition = f"if {_its(silent)} host kept power, then {who}"
        return StartInstead(f"start {_few(silent)}", condition, "their logs may hold more")
    if advice.check_disk and not advice.was_shut_down:
        condition = f"if {_its(advice.brokers)} host{'' if len(advice.brokers) == 1 else 's'} kept power"
        return StartInstead(f"start {who}", condition, elected)
    return StartInstead(f"start {who} with {_its(advice.brokers)} old disk", "", elected)


def better_starts(
    planned: Sequence[FirstStep], steps: Iterable[FirstStep]
) -> tuple[StartInstead | None, tuple[str, ...]]:
    """What keeps more than the elections that are ``planned``: for all of them, None where nothing does, or the
    sentences for some of them. ``steps`` are those of every partition: who is not to be started before one of them
    is started after the elections.
    """
    not_first: frozenset[int] = frozenset().union(*(step.advice.holds_back for step in (*planned, *steps)))
    better: dict[tuple[StartInstead, bool], list[FirstStep]] = {}
    for step in planned:
        if (instead := start_instead(step.advice)) is not None:
            better.setdefault((instead, bool(not_first & step.advice.starts)), []).append(step)
    if len(better) == 1:
        ((instead, later), of) = next(iter(better.items()))
        if not later and len(of) == len(planned):
            return instead, ()
    return None, tuple(_better_for(of, *how) for how, of in better.items())


def starts_instead(
    advised: Iterable[tuple[TopicPartition, Advice]], steps: Iterable[FirstStep] = ()
) -> tuple[str, ...]:
    """The sentences before the question whether to elect: what keeps more than these elections. ``steps`` as in
    :func:`better_starts`.
    """
    for_all, for_some = better_starts(first_steps(advised), steps)
    return for_some if for_all is None else (for_all.sentence,)


def _better_for(steps: Sequence[FirstStep], instead: StartInstead, later: bool) -> str:
    number = sum(step.partitions for step in steps)
    which = str(steps[0].example) if number == 1 else f"{number:,} of them"
    if later:
        when = " ".join(filter(None, (f"{instead.do} afterwards", instead.condition)))
        return f"{which}: better not here (d in pane 6): {when}."
    return f"{which}: better {instead.where}."


def planned_warnings(advice: Advice) -> Iterator[str]:
    """What speaks against an election that is planned for it, beside what :func:`start_instead` says."""
    returns = () if advice.kind is not AdviceKind.BRING_BACK else tuple(_return_warnings(advice))
    yield from (one for one in _warnings(advice) if one not in returns)


def _bring_back(advice: Advice, count: int) -> str:
    get = "1 partition gets a leader" if count == 1 else f"{count:,} get a leader"
    if advice.read_before:
        return f"Read {_disk_of(advice.read_before)} before the start: then {get}."
    back, each = _few(advice.brokers, either), "" if len(advice.brokers) == 1 else ", each"
    silent, saved = started_before(advice), _later(advice)[1]
    if silent:
        # Its log can be read then, before the other one leads. It need not lead itself: Kafka takes a broker that
        # was killed out of the ELR when it registers.
        return f"Start {_few(silent)} if {_its(silent)} host kept power; then {back}: {get}."
    if saved:
        return f"Save what only {_few(saved)} {_holds(saved)}; then start {back}{each} with its old disk."
    return f"Start {back}{each} with its old disk: {get}."


def _start_together(advice: Advice, count: int) -> str:
    get = "1 partition gets a leader" if count == 1 else f"{count:,} get a leader"
    if advice.read_before:
        return f"Read {_disk_of(advice.read_before)} before the start: then {get}."
    together = " with its old disk" if len(advice.brokers) == 1 else ", all with their old disks"
    return f"Start {_few(advice.brokers)}{together}: {get}."


def _later(advice: Advice) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Who led later than those that are to be brought back: whose logs nobody knows, and whose log or disk is to be
    read.
    """
    silent = {one.broker for one in advice.led_after if not (one.log_known or one.failed_disk)}
    return tuple(sorted(silent)), tuple(sorted({one.broker for one in advice.led_after} - silent))


def _holds(brokers: Sequence[int]) -> str:
    return "holds" if len(brokers) == 1 else "hold"


def _ask(advice: Advice, _count: int) -> str:
    if advice.read_before:
        return f"Read {_disk_of(advice.read_before)} before the start: it shows whose log is whole."
    return f"Start {_few(advice.brokers, either)} or read its disk: that shows whose log is whole."


def _compare(advice: Advice, _count: int) -> str:
    if advice.brokers and not advice.read_before:
        return f"The logs differ. Start {_few(advice.brokers, either)}, or choose a leader."
    return "The logs differ. Choose one: what it lacks is saved first."


def _choose(advice: Advice, _count: int) -> str:
    if advice.reassigning:
        return "A reassignment is in progress. See what an election loses before you hold one."
    if failed := [one.broker for one in advice.keep_down if one.failed_disk]:
        return f"No log surely has all. Read the failed disk of {_few(failed)} first, or choose a leader."
    return "No log surely has all. Choose one: what it lacks is saved first."


_ACTIONS: Mapping[AdviceKind, Callable[[Advice, int], str]] = {
    AdviceKind.STOP_AND_READ: _stop_and_read,
    AdviceKind.READ_FIRST: _read_first,
    AdviceKind.STOP_OR_MEND: _stop_or_mend,
    AdviceKind.ELECT: _elect,
    AdviceKind.UNFENCE: lambda a, _: f"Wait until {_few(a.brokers)} is unfenced: its log is better.",
    AdviceKind.START_TOGETHER: _start_together,
    AdviceKind.BRING_BACK: _bring_back,
    AdviceKind.ASK: _ask,
    AdviceKind.GIVE_LOG: lambda _a, _: "Give ktriage the metadata log: it shows whose log is whole.",
    AdviceKind.READ_DISK: lambda a, _: (
        f"Read the failed disk of {_few(a.brokers)}: no other replica is left."
    ),
    AdviceKind.COMPARE: _compare,
    AdviceKind.CHOOSE: _choose,
}


def _instead(advice: Advice) -> str:
    if not advice.instead:
        return ""
    who = str(advice.instead[0]) if len(advice.instead) == 1 else "one that answered"
    if advice.verdict is not None and advice.verdict.proved_none:
        return f"Or elect {who}: no acknowledged record is lost, but others may be."
    return f"Or elect {who}: not fully checked."


# What not to do, and what speaks against the action: a sentence each, the worst first.


def _warnings(advice: Advice) -> Iterator[str]:
    failed = [one.broker for one in advice.keep_down if one.failed_disk]
    if failed:
        returns = "it returns with an empty one" if len(failed) == 1 else "they return with empty ones"
        yield f"{_capital(_disk_of(failed))} FAILED: choose a leader before {returns}."
    for what, brokers in (("Repair", advice.repair), ("Copy", advice.copy)):
        if brokers:
            yield f"{what} {_disk_of(brokers)} before the start (ktriage disk scan says how)."
    yield from do_not_start(advice)
    if advice.kind is AdviceKind.ASK and (also := _also_read(advice)):
        yield f"Read {_disk_of(also)} too: only all of these logs together show whose is whole."
    if advice.kind is AdviceKind.BRING_BACK:
        yield from _return_warnings(advice)
    if advice.by_elr:
        yield "Leave min.insync.replicas alone."


def not_to_start_first(advice: Advice) -> list[AutomaticElection]:
    """Whom not to start before the step is done, beside brokers whose disks failed."""
    return [one for one in advice.keep_down if not one.failed_disk]


def do_not_start(advice: Advice) -> Iterator[str]:
    """One sentence that says so, and what would happen; nothing where there is nobody."""
    others = not_to_start_first(advice)
    if others:
        yield f"Do not start {_few([one.broker for one in others], either)} first: {_if_started(others)}."


def _if_started(others: Sequence[AutomaticElection]) -> str:
    it = "it" if len(others) == 1 else "each"
    cutting = sorted({broker for one in others for broker in one.cuts_off})
    if cutting:
        return f"{it} leads at once and cuts off what {_few(cutting)} {_holds(cutting)}"
    verdicts = [one.verdict for one in others if one.verdict is not None]
    # Where the logs are known, whether a host lost power is no question any more.
    if len(verdicts) == len(others):
        some = all(verdict.kind is VerdictKind.SOME for verdict in verdicts)
        return (
            f"{it} leads at once, and as read its log {'lacks' if some else 'may lack'} acknowledged records"
        )
    if AutomaticElectionKind.UNCLEAN_TOPIC in {one.kind for one in others}:
        return "Kafka elects whoever returns first, whatever its log lacks"
    if any(not one.checks_records for one in others):
        return f"{it} leads at once, and may lack records if its host lost power"
    return f"{it} leads at once, and nobody knows what its log holds"


def _also_read(advice: Advice) -> tuple[int, ...]:
    """Other brokers whose logs a verdict needs, and that are not started: they led after an unclean election."""
    needed = {
        broker
        for decider in advice.decided_by
        if decider.kind is DeciderKind.BROKER_DISK and decider.every
        for broker in decider.brokers
    }
    down = {one.broker for one in advice.keep_down if one.cuts_off}
    return tuple(sorted((needed & down).difference(advice.brokers)))


def _return_warnings(advice: Advice) -> Iterator[str]:
    if advice.led_after:
        who = tuple(sorted({one.broker for one in advice.led_after}))
        back = _few(advice.brokers, either)
        cut_off = f"what only {_few(who)} {_holds(who)} is cut off when {back} leads"
        if silent := started_before(advice):
            lost = "its host" if len(silent) == 1 else "their hosts"
            yield f"If {lost} lost power, read {_disk_of(silent)} first: {cut_off}."
        else:
            yield f"{_capital(_few(who))} led later: {cut_off}."
    # A member of the ELR: after a kill only as the last known leader, by an unclean election of the controller.
    if advice.check_disk and not advice.was_shut_down and not advice.read_before:
        yield "If its host lost power, or nobody knows, read its disk first: Kafka elects it whatever it lost."


# Why, and how.


def _why_stop_and_read(advice: Advice, count: int) -> Iterator[str]:
    yield f"For {_partitions(count)} {still_writes_text(advice.old_leaders, offline=False)}."
    yield f"Read {_disks(advice.brokers)} before {_its(advice.brokers)} network is mended ({READ_DISK})."


def _why_read_first(advice: Advice, count: int) -> Iterator[str]:
    lost = lost_with_disk(advice.brokers) if advice.failed_disk else cut_off_at_start(advice.brokers)
    yield f"{_capital(may_hold_text(advice.brokers, advice.missed, count, lost))}."
    yield f"Read {_disks(advice.brokers)} with: {READ_DISK}"


def _why_stop_or_mend(advice: Advice, count: int) -> Iterator[str]:
    act = "still act as leader" if len(advice.brokers) > 1 else "still acts as leader"
    who = f"{'broker' if len(advice.brokers) == 1 else 'brokers'} {both(advice.brokers)}"
    yield (
        f"For {_partitions(count)} {who} {act} and"
        f" {'takes' if len(advice.brokers) == 1 else 'take'} writes that an election will cut off."
    )
    if advice.read_before:
        yield f"Read {_disks(advice.brokers)} before {_its(advice.brokers)} network is mended ({READ_DISK})."
    elif advice.leads_again:
        it = "it" if len(advice.brokers) == 1 else "them"
        yield (
            f"Once {_its(advice.brokers)} network to the controllers is mended, the controller makes {it} leader"
            " again, and no election is needed."
        )
    else:
        yield "Then plan again."


def _why_elect(advice: Advice, _count: int) -> Iterator[str]:
    one = advice.brokers[0] if len(advice.brokers) == 1 else None
    holds = _holds_acknowledged("Of each partition one replica" if one is None else f"Broker {one}", advice)
    yield f"{holds}{_unless(advice)}{_unchecked(advice)}."
    brokers = sorted(one.broker for one in advice.start_if_whole)
    first = [broker for broker in brokers if broker not in advice.read_before]
    if first:
        # Of several that led different partitions last, each may cut off what another one took.
        outcome = f"{_its(first)} log{'' if len(first) == 1 else 's'} may hold more"
        if len(first) == 1 and advice.keeps_all and not (advice.repair or advice.copy):
            outcome = "then nothing at all is lost"
        start = "start it first" if len(first) == 1 else "start them first"
        yield f"If the host of broker {both(first)} kept power, {start}: {outcome}."
    if not brokers:
        return
    alone = tuple(_led_alone(advice))
    yield from alone or (f"What broker {both(brokers)} may have taken alone with acks=1 is on no other log.",)
    before = "If you elect, read" if first else "Read"
    yield f"{before} {_disks(brokers)} before {_they_are(brokers)} started (ktriage disk scan)."


def _why_unfence(advice: Advice, count: int) -> Iterator[str]:
    yield f"For {_partitions(count)} broker {both(advice.brokers)} has a better log than those that can lead now."
    yield f"Mend what keeps {'it' if len(advice.brokers) == 1 else 'them'} from the controllers, then plan again."


def _why_bring_back(advice: Advice, count: int) -> Iterator[str]:
    one = len(advice.brokers) == 1
    it = "it" if one else "one of them"
    if advice.reassigning:
        yield "A reassignment in progress needs this return."
    if advice.was_shut_down:
        who = _capital(_few(advice.brokers)) if started_before(advice) else "It" if one else "They"
        stopped = f"{who} {'was' if one else 'were'} shut down when last seen"
        lost = ""
        if advice.keeps_all:
            lost = ", and nothing at all is lost"
        elif advice.keeps_acked:
            lost = ", and no record that was acknowledged with acks=all is lost"
        yield f"{stopped}: Kafka elects {it} without an unclean election{lost}."
    elif not advice.check_disk:
        yield f"Kafka elects {it} without an unclean election, for certain only after a clean shutdown."
    elif advice.by_elr:
        # Nobody else is in the ELR: killed, it leaves that too, and is elected as the last known leader.
        yield f"After a kill Kafka elects {it} by an unclean election."
    else:
        yield f"Kafka elects {it} without an unclean election."
    yield f"Here, or with {_its(advice.brokers)} disk{'' if one else 's'} on another host."
    if advice.read_before:
        yield f"Read {_disks(advice.read_before)} with ktriage disk scan."
    yield from _later_leaders(advice, count)


def _later_leaders(advice: Advice, count: int) -> Iterator[str]:
    """Whose records the return cuts off, and how to keep them."""
    if not advice.led_after:
        return
    who, back = tuple(sorted({one.broker for one in advice.led_after})), either(advice.brokers)
    one = len(who) == 1
    led = f"{'Broker' if one else 'Brokers'} {both(who)} led after broker {back} had left the ISR"
    if count > 1:
        led += ", of one or more of these partitions"
    took = f"{'it' if one else 'they'} took then{' with acks=1' if advice.keeps_acked else ''}"
    dead = tuple(sorted({one.broker for one in advice.led_after if one.failed_disk}))
    known = tuple(sorted({one.broker for one in advice.led_after if one.log_known}))
    silent, _saved = _later(advice)
    steps = []
    if known:
        steps.append(f"read the log of broker {both(known)} first (ktriage rescue read)")
    if silent:
        hosts = "its host" if len(silent) == 1 else "their hosts"
        steps.append(f"start broker {both(silent)} first if {hosts} kept power")
    if lost := tuple(broker for broker in dead if broker not in known):
        steps.append(f"read the disk of broker {both(lost)} first (ktriage disk scan)")
    yield f"{led}: what {took} is cut off when broker {back} leads; {', and '.join(steps)}."


def _why_start_together(advice: Advice, _count: int) -> Iterator[str]:
    was, each = ("It was", "it holds") if len(advice.brokers) == 1 else ("They were", "each holds")
    yield f"{was} in sync when the metadata log ended: {each} {ACKED}, if the disk lost nothing."
    if len(advice.brokers) > 1:
        yield "Kafka may elect none of those that were killed while another of them is away."


def _why_ask(advice: Advice, count: int) -> Iterator[str]:
    decides = "only all of these logs together decide" if _also_read(advice) else "its log decides"
    yield f"For {_partitions(count)} {decides} who holds {ACKED}."
    yield "Start it here, or with its disk on another host; ktriage disk scan reads a disk."


def _why_give_log(_advice: Advice, count: int) -> Iterator[str]:
    yield f"For {_partitions(count)} it decides who holds {ACKED}."
    yield (
        "Give this user CLUSTER_ACTION and a way to the active controller, or a copy of that log (--metadata-dir)."
    )


def _why_read_disk(advice: Advice, count: int) -> Iterator[str]:
    yield (
        f"{_capital(_disks(advice.brokers))} FAILED, and no other replica of {_partitions(count)} is left."
        f" Read {'it' if len(advice.brokers) == 1 else 'them'} ({READ_DISK}) before"
        f" {_they_are(advice.brokers)} replaced, or the records are gone."
    )


def _why_compare(_advice: Advice, count: int) -> Iterator[str]:
    """A rescue reads what the chosen leader lacks, and so needs the choice."""
    whose = "The" if count == 1 else f"For {count:,} partitions the"
    yield (
        f"{whose} log that ranks best lacks records that were committed: whichever log is chosen, records of the"
        " other are cut off. They are read before the election (ktriage rescue)."
    )


def _why_choose(advice: Advice, count: int) -> Iterator[str]:
    if advice.reassigning:
        yield (
            f"Nobody's return is known to end the reassignment of {_partitions(count)}. An unclean election takes"
            " the first live replica of the assignment, whatever its log lacks (ktriage replicas)."
        )
        return
    texts = list(dict.fromkeys(decider_text(decider) for decider in advice.decided_by))
    decides = f" What would decide it: {either(texts)}." if texts else ""
    yield f"No replica of {_partitions(count)} is proved to hold {ACKED}.{decides}"


_WHY: Mapping[AdviceKind, Callable[[Advice, int], Iterator[str]]] = {
    AdviceKind.STOP_AND_READ: _why_stop_and_read,
    AdviceKind.READ_FIRST: _why_read_first,
    AdviceKind.STOP_OR_MEND: _why_stop_or_mend,
    AdviceKind.ELECT: _why_elect,
    AdviceKind.UNFENCE: _why_unfence,
    AdviceKind.START_TOGETHER: _why_start_together,
    AdviceKind.BRING_BACK: _why_bring_back,
    AdviceKind.ASK: _why_ask,
    AdviceKind.GIVE_LOG: _why_give_log,
    AdviceKind.READ_DISK: _why_read_disk,
    AdviceKind.COMPARE: _why_compare,
    AdviceKind.CHOOSE: _why_choose,
}


def _compares_logs(advice: Advice) -> bool:
    """Whether nothing but the logs shows that the election loses nothing: what none of them has was not counted."""
    return advice.verdict is not None and advice.verdict.compares_logs


def _holds_acknowledged(who: str, advice: Advice) -> str:
    """That its log has everything that was acknowledged, or that any log still has of it."""
    return f"{who} holds {f'{ACKED} and is on a log still' if _compares_logs(advice) else ACKED}"


def _unchecked(advice: Advice) -> str:
    """What it rests on that nothing speaks against, and that was not checked."""
    conditions = () if advice.verdict is None else advice.verdict.conditions
    unchecked = tuple(condition for condition in conditions if not condition.doubtful)
    return f", {conditions_text(unchecked)} (not checked)" if unchecked else ""


def _unless(advice: Advice) -> str:
    """What was seen that makes it uncertain."""
    conditions = () if advice.verdict is None else advice.verdict.conditions
    doubtful = [condition for condition in conditions if condition.doubtful]
    unflushed = [one for one in doubtful if one.kind is ConditionKind.RECORDS_KEPT]
    if unflushed:
        brokers = sorted({broker for one in unflushed for broker in one.brokers})
        return f", unless the host of broker {either(brokers)} lost power before it restarted"
    return ", unless compaction removed some from its log" if doubtful else ""


def _disks(brokers: Sequence[int]) -> str:
    return f"{'the disk of broker' if len(brokers) == 1 else 'the disks of brokers'} {both(sorted(brokers))}"


def _they_are(brokers: Sequence[int]) -> str:
    return "it is" if len(brokers) == 1 else "they are"


def _led_alone(advice: Advice) -> Iterator[str]:
    """``Broker 1 led alone from … to … (99 s): what it took then with acks=1 is on no other log.``"""
    found = () if advice.verdict is None else advice.verdict.evidence
    stints = [one for one in found if one.kind is EvidenceKind.LED_ALONE]
    for brokers in dict.fromkeys(one.brokers for one in stints):
        times = [(one.since_ms or 0, one.until_ms or 0) for one in stints if one.brokers == brokers]
        acks_all = any(one.acks_all for one in stints if one.brokers == brokers)
        since, until = times[-1]
        more = f", and {counted(len(times) - 1, 'time')} before" if len(times) > 1 else ""
        who = (
            f"Broker {brokers[0]} led alone"
            if len(brokers) == 1
            else f"Brokers {both(brokers)} went on alone"
        )
        yield (
            f"{who} from {time_text(since)} to {time_text(until)} ({exact_age((until - since) / 1000)}){more}: what"
            f" {'it' if len(brokers) == 1 else 'they'} took then{'' if acks_all else ' with acks=1'} is on no"
            " other log."
        )


def _why_instead(advice: Advice) -> Iterator[str]:
    """Whom to elect all the same, and on what that rests."""
    by_log = any(one.kind is DeciderKind.METADATA_LOG for one in advice.decided_by)
    if by_log and advice.kind is not AdviceKind.GIVE_LOG:
        yield (
            "The metadata log may decide it at once: give this user CLUSTER_ACTION and a way to the active"
            " controller, or a copy of that log (--metadata-dir)."
        )
    if not advice.instead:
        return
    who = f"Broker {advice.instead[0]}" if len(advice.instead) == 1 else "Each that may be elected instead"
    lacks = "" if advice.verdict is None or not advice.verdict.proved_none else ", and may lack others"
    rests = f"{_unless(advice)}{_unchecked(advice)}{lacks}"
    yield f"{_holds_acknowledged(who, advice)}{rests} (--accept-unchecked elects it)."


def _why_warned(advice: Advice) -> Iterator[str]:
    if advice.repair:
        brokers = "the broker" if len(advice.repair) == 1 else "the brokers"
        yield f"As {_disks(advice.repair)} {_was_read(advice.repair)}, {brokers} would not serve all of it, or end."
    if advice.copy:
        yield f"As {_disks(advice.copy)} {_was_read(advice.copy)}, the start deletes what ktriage disk scan names."
    others = not_to_start_first(advice)
    cutting = [one for one in others if one.cuts_off]
    if cutting:
        yield (
            f"Broker {both([one.broker for one in cutting])} led after an unclean election, and has not what others"
            " hold from before."
        )
    if any(one.kind is AutomaticElectionKind.UNCLEAN_TOPIC for one in others):
        yield "unclean.leader.election.enable is on."
    if advice.by_elr:
        yield "A change of min.insync.replicas empties the ELR: then Kafka elects nobody who returns."


def _was_read(brokers: Sequence[int]) -> str:
    return "was read" if len(brokers) == 1 else "were read"


# Why nobody is elected.


def short_reason(decision: Decision, before: Sequence[int] = ()) -> str:
    """Why nobody is elected, in at most 120 characters and in words that need no explanation. ``before``: whom to
    start before those that it waits for.
    """
    if before and decision.waits_for:
        hosts = "its host" if len(before) == 1 else "their hosts"
        then = f"start {both(before)} first if {hosts} kept power, then {either(decision.waits_for)}"
        return f"{then}: {'not fully checked' if decision.why_not is WhyNot.UNCHECKED else 'its log may hold more'}"
    text = None if decision.why_not is None else _SHORT_REASONS.get(decision.why_not)
    if text is not None:
        return text(decision) or decision.reason
    if decision.verdict is DecisionKind.WAIT and decision.waits_for and not decision.together:
        return f"wait for {_awaited(decision)}: its log may hold more"
    return decision.reason


def _awaited(decision: Decision) -> str:
    return _few(decision.waits_for, either) if decision.waits_for else "somebody"


def _failed_disks(decision: Decision) -> str:
    returning = () if decision.judged is None else decision.judged.automatic_elections
    failed = [one.broker for one in returning if one.failed_disk]
    return f"{_disk_of(failed)} failed: read it first with {READ_DISK}" if failed else ""


def _unclean_member(decision: Decision) -> str:
    returning = () if decision.judged is None else decision.judged.automatic_elections
    cutting = [one for one in returning if one.cuts_off]
    holders = sorted({broker for one in cutting for broker in one.cuts_off})
    who = _few([one.broker for one in cutting])
    return f"only the log of {who} could tell more, and its start cuts off what {_few(holders)} {_holds(holders)}"


_SHORT_REASONS: Mapping[WhyNot, Callable[[Decision], str]] = {
    WhyNot.FAILED_DISK: _failed_disks,
    WhyNot.BRANCHES: lambda _: "the logs differ: each choice loses some records",
    WhyNot.BETTER_FENCED: lambda one: f"{_awaited(one)} has a better log and cannot be elected yet",
    WhyNot.UNCLEAN_MEMBER: _unclean_member,
    WhyNot.REASSIGNING: lambda _: "a reassignment is in progress: start who is in the ISR or ELR",
    WhyNot.OLD_LEADER: lambda one: f"writes still go to {_awaited(one)}: stop it, or mend its network",
    WhyNot.UNCHECKED: lambda one: (
        f"not fully checked{f': wait for {_awaited(one)}' if one.waits_for else ''}"
    ),
    WhyNot.WHOLE_MEMBER: lambda one: f"{_awaited(one)} was shut down, and its log is likely whole: start it",
}
