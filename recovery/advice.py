"""What to do first: one rule for the console, the command line, the plan and its markdown.

It follows from the decision of the careful strategy (balanced) and from the verdicts: who can be elected now
without losing an acknowledged record, and whom Kafka elects by itself when a broker returns. Waiting is not always
the safe choice: a broker that returns may have a shorter log, and be elected at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from recovery.acknowledged.disks_to_read import DisksToRead, MissedElection
from recovery.acknowledged.verdict import (
    AutomaticElection,
    AutomaticElectionKind,
    Decider,
    DeciderKind,
    LaterLeader,
    PartitionVerdicts,
    Verdict,
)
from recovery.model import NO_LEADER, Replica, Survey, TopicPartition
from recovery.old_leaders import OldLeader, old_leaders
from recovery.ranking import Ranking
from recovery.strategy import CLEAN, Decision, DecisionKind, Strategy, WhyNot, decide, likely_leaders
from recovery.unread_disks import UnreadDisk, only_in_journal


class AdviceKind(StrEnum):
    """What to do first, in the order in which it is to be done. All but READ_FIRST and STOP_AND_READ are for
    partitions without a leader.

    - READ_FIRST: a partition is online, and ``brokers`` that are down may hold acknowledged records which its
      leader lacks: read their disks before they start.
    - STOP_AND_READ: a partition is online, and ``brokers`` that do not know of it still act as its leader and take
      writes, which are lost when they hear of their successor: stop them, and read their disks before that.
    - STOP_OR_MEND: a broker that does not know that it was replaced still takes writes, which an election cuts off.
    - ELECT: one replica that can be elected now holds every record that was acknowledged with acks=all.
    - UNFENCE: a broker that answers and is still fenced has a better log than those that can be elected.
    - START_TOGETHER: nothing runs, and ``brokers`` were in the ISR or the ELR when the metadata log ended.
    - BRING_BACK: Kafka elects a broker that is away as soon as it returns, without an unclean election.
    - ASK: a broker that is away is not elected by itself, and its log, or its disk, would decide.
    - GIVE_LOG: the metadata log would decide who holds every acknowledged record.
    - READ_DISK: the disks of ``brokers`` failed, and no other replica is left.
    - COMPARE: the log that ranks best lacks records that were committed: a person compares the branches.
    - CHOOSE: nobody is proved to hold every acknowledged record, and nobody's return is expected to help.
    """

    READ_FIRST = "read before start"
    STOP_AND_READ = "stop and read"
    STOP_OR_MEND = "stop or mend"
    ELECT = "elect"
    UNFENCE = "unfence"
    START_TOGETHER = "start together"
    BRING_BACK = "bring back"
    ASK = "ask"
    GIVE_LOG = "give the metadata log"
    READ_DISK = "read the failed disk"
    COMPARE = "compare"
    CHOOSE = "choose"


class Advice(NamedTuple):
    """``brokers``: whom to elect, or whose return helps; nobody for CHOOSE.

    ``keep_down``: brokers that Kafka would elect by itself when they return, although their logs are not known to
    hold every acknowledged record: do the step before they are started. ``check_disk``: those of ``brokers`` that
    Kafka elects whatever their logs lost. ``verdict`` is that of the broker to elect, or of those that could be
    elected ``instead`` (--accept-unchecked). ``start_if_whole``: brokers that are away, and that may hold what was
    acknowledged with acks=1 alone, which their return keeps where their logs are whole.
    ``keeps_acked``, ``keeps_all``: each of ``brokers`` to bring back, or of ``start_if_whole``, does, as
    :class:`AutomaticElection` has it. ``led_after``, of BRING_BACK alone: who led after them, without them.
    ``by_elr``: Kafka elects one of ``brokers`` because it is in the ELR or is the last known leader. A change of
    min.insync.replicas, of the topic or of the cluster, empties both (ClearElrRecord; tried on 4.3.1), and then
    nobody is elected.
    ``was_shut_down``: each of ``brokers`` was in a controlled shutdown when it was last seen (metadata log).
    ``reassigning``: a reassignment is in progress, so that nobody can be designated. ``missed``, of READ_FIRST
    alone: the election after which the leader lacks what their disks may hold; None: the journal has it.
    ``leads_again``, of STOP_OR_MEND alone: Kafka elects each of ``brokers`` by itself, without an unclean election,
    when it hears the controllers again. ``read_before``: those of ``brokers`` to start, or of ``start_if_whole``,
    whose start is not advised before their disks are read: this step or another one would lose by it.
    ``old_leaders``, of STOP_AND_READ alone. ``repair``: those of ``brokers`` to start, or of ``start_if_whole``,
    that would not serve all of their disks as these were read, or would end; ``copy``: whose start would delete
    something there. ``failed_disk``, of READ_FIRST alone: ``brokers`` are up, and their log dirs failed.
    """

    kind: AdviceKind
    brokers: tuple[int, ...] = ()
    keep_down: tuple[AutomaticElection, ...] = ()
    check_disk: tuple[int, ...] = ()
    verdict: Verdict | None = None
    decided_by: tuple[Decider, ...] = ()
    by_elr: bool = False
    was_shut_down: bool = False
    reassigning: bool = False
    missed: MissedElection | None = None
    leads_again: bool = False
    instead: tuple[int, ...] = ()
    start_if_whole: tuple[AutomaticElection, ...] = ()
    keeps_acked: bool = False
    keeps_all: bool = False
    led_after: tuple[LaterLeader, ...] = ()
    read_before: tuple[int, ...] = ()
    old_leaders: tuple[OldLeader, ...] = ()
    repair: tuple[int, ...] = ()
    copy: tuple[int, ...] = ()
    failed_disk: bool = False

    @property
    def starts(self) -> frozenset[int]:
        """The brokers that the step asks to start."""
        if self.kind is AdviceKind.ELECT:
            return frozenset(one.broker for one in self.start_if_whole)
        silent = (one.broker for one in self.led_after if not (one.log_known or one.failed_disk))
        return frozenset((*self.brokers, *silent) if self.kind in _STARTING else ())

    @property
    def holds_back(self) -> frozenset[int]:
        """The brokers that are not to be started before the step is done."""
        reads = self.brokers if self.kind in (AdviceKind.READ_FIRST, AdviceKind.STOP_AND_READ) else ()
        return frozenset((*reads, *(one.broker for one in self.keep_down)))

    def reading_before(self, brokers: Collection[int]) -> Advice:
        """The same, without the start of these brokers before their disks are read."""
        read = tuple(sorted(self.starts.intersection(brokers).union(self.read_before)))
        down = tuple(one for one in self.keep_down if one.failed_disk or one.broker not in read)
        return self._replace(read_before=read, keep_down=down) if read else self


_STARTING = (
    AdviceKind.START_TOGETHER,
    AdviceKind.BRING_BACK,
    AdviceKind.ASK,
    AdviceKind.COMPARE,
    AdviceKind.STOP_OR_MEND,
)
"""The kinds whose ``brokers`` are to be started, or are to hear the controllers again."""


def stop_and_read(surveys: Iterable[Survey]) -> Iterator[tuple[TopicPartition, Advice]]:
    """The advice for partitions with a leader of which another broker believes to be the leader too."""
    for survey in surveys:
        if not survey.state.offline and (old := old_leaders(survey)):
            yield (
                survey.tp,
                Advice(AdviceKind.STOP_AND_READ, tuple(one.broker for one in old), old_leaders=old),
            )


def read_first(
    unread: DisksToRead, recorded: Iterable[UnreadDisk] = (), up: Collection[int] = ()
) -> Iterator[tuple[TopicPartition, Advice]]:
    """The advice for partitions with a leader: whose disks are to be read before they start, or, of the brokers
    that are ``up``, before the failed disk is replaced. ``recorded`` are those of elections in the journal.
    """
    found = [(tp, missed.brokers, missed) for tp, missed in unread.partitions.items()]
    only_recorded = [(disk.tp, (disk.broker,), None) for disk in only_in_journal(recorded, unread)]
    for tp, brokers, election in (*found, *only_recorded):
        for failed in (False, True):
            if these := tuple(broker for broker in brokers if (broker in up) is failed):
                yield tp, Advice(AdviceKind.READ_FIRST, these, missed=election, failed_disk=failed)


def advise(survey: Survey, ranking: Ranking, judged: PartitionVerdicts | None) -> Advice | None:
    """The advice for one partition. None: it has a leader, or was not judged."""
    return advice(decide(survey, ranking, Strategy.BALANCED, judged))


def advise_decided(
    survey: Survey,
    ranking: Ranking,
    judged: PartitionVerdicts | None,
    strategy: Strategy,
    decision: Decision,
    *,
    accept_unchecked: bool = False,
) -> Advice | None:
    """As :func:`advise`, where ``strategy`` came to ``decision``: balanced does not decide twice."""
    if strategy is Strategy.BALANCED and not accept_unchecked:
        return advice(decision)
    return advise(survey, ranking, judged)


def advice(decision: Decision) -> Advice | None:
    """As :func:`advise`, from the decision of balanced."""
    judged = decision.judged
    if judged is not None and judged.facts is not None and judged.facts.survey.led_to_end:
        together = start_together(judged.facts.survey, judged)
        if together is not None:
            return together
    found = _advice(decision)
    if found is None:
        return None
    facts = None if decision.judged is None else decision.judged.facts
    return _with_starts(found, () if facts is None else facts.survey.replicas)


def start_together(survey: Survey, judged: PartitionVerdicts | None) -> Advice | None:
    """The advice for a partition that had a leader when the metadata log ended, in a cluster of which nothing runs.
    None: nobody is known to hold every acknowledged record.

    Kafka takes a broker that was killed out of the ISR and the ELR when it registers, so that it elects nobody
    while another member is away; where all of them start, a leader is elected whose log was in sync. Real:
    ``tests/live/test_from_disks.py``. Members whose scanned logs lack acknowledged records are not to be started
    before the others lead.
    """
    members = {*survey.state.isr, *(survey.state.elr or ())}
    verdicts = {} if judged is None else judged.candidates
    short = {broker for broker in members if broker in verdicts and not verdicts[broker].none}
    if members == short:
        return None
    returning = () if judged is None else judged.automatic_elections
    down = tuple(one for one in returning if one.broker in short)
    found = Advice(AdviceKind.START_TOGETHER, tuple(sorted(members - short)), down)
    return _with_starts(found, survey.replicas)


def _with_starts(found: Advice, replicas: Iterable[Replica]) -> Advice:
    """With what the starts that it asks for would do to disks."""
    repair = found.starts.intersection(one.broker for one in replicas if one.disk_to_repair)
    copy = found.starts.intersection(one.broker for one in replicas if one.disk_to_copy)
    return found.reading_before(found.holds_back)._replace(
        repair=tuple(sorted(repair)), copy=tuple(sorted(copy))
    )


def _advice(decision: Decision) -> Advice | None:
    judged = decision.judged
    if judged is None:
        return None
    unsafe = tuple(one for one in judged.automatic_elections if not _safe(one))
    if judged.old_leaders and decision.verdict not in (DecisionKind.ALREADY_ONLINE, DecisionKind.REPORT_ONLY):
        return _stop_or_mend(judged, unsafe)
    match decision.verdict:
        case DecisionKind.ELECT:
            return _elect(decision, judged, unsafe)
        case DecisionKind.WAIT | DecisionKind.NO_CANDIDATE:
            return _or_instead(_wait(decision, judged, unsafe), decision, judged)
        case DecisionKind.REFUSED:
            return _or_instead(_refused(decision.why_not, judged, unsafe), decision, judged)
        case _:
            return None


def _stop_or_mend(judged: PartitionVerdicts, unsafe: tuple[AutomaticElection, ...]) -> Advice:
    """Who runs and answers is not brought back. Kafka makes it leader again if it is in the ISR or ELR."""
    brokers = tuple(one.broker for one in judged.old_leaders)
    members = {one.broker for one in judged.automatic_elections if one.kind in CLEAN}
    return Advice(
        AdviceKind.STOP_OR_MEND,
        brokers,
        tuple(one for one in unsafe if one.broker not in brokers),
        by_elr=_by_elr(judged, brokers),
        leads_again=members.issuperset(brokers),
    )


def _elect(decision: Decision, judged: PartitionVerdicts, unsafe: tuple[AutomaticElection, ...]) -> Advice:
    # Who cuts off what the elected log lacks too takes nothing away by its return.
    verdict = judged.candidates.get(decision.leader)
    holds = verdict is not None and verdict.none and not verdict.empty
    first = tuple(
        one for one in judged.automatic_elections if holds and _may_be_whole(one) and not _outrun(one)
    )
    first = tuple(one for one in first if one.keeps_all) or first
    down = tuple(
        one
        for one in unsafe
        if one.broker != decision.leader
        and one not in first
        and (decision.leader in one.cuts_off or not _own_log_safe(one))
    )
    if holds:
        whole = bool(first) and all(one.keeps_all for one in first)
        return Advice(
            AdviceKind.ELECT, (decision.leader,), down, (), verdict, start_if_whole=first, keeps_all=whole
        )
    return Advice(AdviceKind.CHOOSE, (), down, (), None, () if verdict is None else verdict.decided_by)


def _refused(
    why: WhyNot | None, judged: PartitionVerdicts, unsafe: tuple[AutomaticElection, ...]
) -> Advice | None:
    """None where the verdicts are not the reason: a permission is missing."""
    if why is WhyNot.REASSIGNING:
        clean = (one for one in judged.automatic_elections if one.kind in CLEAN)
        back = [one for one in clean if not one.failed_disk and not one.cuts_off]
        members = tuple(one.broker for one in back)
        kind = AdviceKind.BRING_BACK if members else AdviceKind.CHOOSE
        others = tuple(one for one in unsafe if one.broker not in members)
        check = tuple(one.broker for one in back if not one.checks_records)
        return Advice(kind, members, others, check, by_elr=_by_elr(judged, members), reassigning=True)
    if why is WhyNot.UNCLEAN_MEMBER:
        best = judged.best(tuple(judged.candidates))
        return Advice(AdviceKind.CHOOSE, (), unsafe, (), None, () if best is None else best.decided_by)
    if why is WhyNot.FAILED_DISK:
        best = judged.best(tuple(judged.candidates))
        return Advice(AdviceKind.CHOOSE, (), unsafe, (), None, () if best is None else best.decided_by)
    if why is WhyNot.BRANCHES:
        members = tuple(
            one.broker for one in judged.automatic_elections if one.checks_records and not one.cuts_off
        )
        return Advice(AdviceKind.COMPARE, members, unsafe, by_elr=_by_elr(judged, members))
    return None


_LED_LAST = (
    AutomaticElectionKind.ISR_MEMBER,
    AutomaticElectionKind.ELR_MEMBER,
    AutomaticElectionKind.LAST_KNOWN_LEADER,
)


def _may_be_whole(one: AutomaticElection) -> bool:
    """Whether its log, which nobody knows, may hold more than any other: it may have led last."""
    return one.verdict is None and one.kind in _LED_LAST and not (one.failed_disk or one.cuts_off)


def _outrun(one: AutomaticElection) -> bool:
    """Whether a log that is known holds what its return cuts off: that broker led later."""
    return any(later.log_known for later in one.led_after)


def _or_instead(found: Advice | None, decision: Decision, judged: PartitionVerdicts) -> Advice | None:
    """The advice with whom to elect instead."""
    if found is None or decision.instead == NO_LEADER:
        return found
    return found._replace(instead=(decision.instead,), verdict=judged.candidates[decision.instead])


def _wait(decision: Decision, judged: PartitionVerdicts, unsafe: tuple[AutomaticElection, ...]) -> Advice:
    returning = {one.broker: one for one in judged.automatic_elections}
    failed = {broker for broker, one in returning.items() if one.failed_disk}
    if decision.verdict is DecisionKind.NO_CANDIDATE and decision.why_not is WhyNot.FAILED_DISK:
        return Advice(AdviceKind.READ_DISK, tuple(sorted(failed)))
    cutting = {broker for broker, one in returning.items() if one.cuts_off}
    awaited = [broker for broker in decision.waits_for if broker not in failed | cutting]
    members = likely_leaders((b for b in awaited if b in returning and returning[b].kind in CLEAN), judged)
    best = judged.candidates.get(decision.instead) or judged.best(decision.waits_for)
    best = best or judged.best(tuple(judged.candidates))
    deciders = () if best is None else best.decided_by
    if members:
        down = tuple(one for one in unsafe if one.broker not in members)
        check = tuple(broker for broker in members if not returning[broker].checks_records)
        elr = _by_elr(judged, members)
        back = [returning[broker] for broker in members]
        later = (one for member in back for one in member.led_after if one.broker not in members)
        return Advice(
            AdviceKind.BRING_BACK,
            members,
            down,
            check,
            None,
            deciders,
            elr,
            was_shut_down=all(one.shut_down for one in back),
            keeps_acked=all(one.keeps_acked for one in back),
            keeps_all=all(one.keeps_all for one in back),
            led_after=tuple(dict.fromkeys(later)),
        )
    if decision.why_not is WhyNot.BETTER_FENCED:
        return Advice(AdviceKind.UNFENCE, decision.waits_for, unsafe, (), None, deciders)
    if awaited and decision.verdict is DecisionKind.WAIT:
        return Advice(AdviceKind.ASK, tuple(awaited), unsafe, (), None, deciders, _by_elr(judged, awaited))
    if decision.why_not is WhyNot.UNCHECKED and any(one.kind is DeciderKind.METADATA_LOG for one in deciders):
        return Advice(AdviceKind.GIVE_LOG, (), unsafe, (), None, deciders)
    return Advice(AdviceKind.CHOOSE, (), unsafe, (), None, deciders)


_BY_ELR = (AutomaticElectionKind.ELR_MEMBER, AutomaticElectionKind.LAST_KNOWN_LEADER)


def _by_elr(judged: PartitionVerdicts, brokers: Collection[int]) -> bool:
    return any(one.kind in _BY_ELR and one.broker in brokers for one in judged.automatic_elections)


def _safe(one: AutomaticElection) -> bool:
    """Whether its own election is expected to lose no acknowledged record, and cuts off no earlier branch."""
    return _own_log_safe(one) and not one.cuts_off


def _own_log_safe(one: AutomaticElection) -> bool:
    """Whether its log is expected to be as it was: Kafka elects it only after a clean shutdown, or its log is known
    to hold everything.
    """
    if one.failed_disk:
        return False
    return one.checks_records or (one.verdict is not None and one.verdict.none and not one.verdict.doubtful)


class FirstStep(NamedTuple):
    """The same advice for so many ``partitions``; ``example`` is the first of them. ``only_then``: it starts a
    broker that is not to be started before an earlier step is done.
    """

    advice: Advice
    partitions: int
    example: TopicPartition
    only_then: bool = False


def first_steps(found: Iterable[tuple[TopicPartition, Advice]]) -> tuple[FirstStep, ...]:
    """What to do, in order: whose disks are to be read before they start, and what a broker's return would cut off,
    since another step may ask for that return; elections, since
    a broker that returns may take them away; then whose return helps the most partitions; then what needs a
    person's choice. This is the one place that decides what is said of the start of each broker: no step asks for
    what another one advises against.
    """
    groups: dict[tuple[object, ...], list[tuple[TopicPartition, Advice]]] = {}
    for tp, one in found:
        groups.setdefault(_group(one), []).append((tp, one))
    return in_order(
        FirstStep(_merged([one for _, one in group]), len({tp for tp, _ in group}), group[0][0])
        for group in groups.values()
    )


def in_order(steps: Iterable[FirstStep]) -> tuple[FirstStep, ...]:
    """As :func:`first_steps`, of steps that were made apart."""
    order = list(AdviceKind)

    def urgency(step: FirstStep) -> tuple[bool, int, int]:
        reads = step.advice.kind in (AdviceKind.READ_FIRST, AdviceKind.STOP_AND_READ)
        warns = reads or any(one.cuts_off for one in step.advice.keep_down)
        return not warns, order.index(step.advice.kind), -step.partitions

    return tuple(_without_contradiction(sorted(steps, key=urgency)))


def _without_contradiction(steps: list[FirstStep]) -> Iterator[FirstStep]:
    """A step that starts a broker comes after those that hold it back; an election need not wait for them, and
    where each of two steps would have to be the first, the disk is read before.
    """
    left, done = list(steps), frozenset[int]()
    while left:
        guarded: frozenset[int] = frozenset()
        for number, step in enumerate(left):
            others = left[:number] + left[number + 1 :]
            guarded = frozenset(broker for one in others for broker in one.advice.holds_back)
            if step.advice.kind is AdviceKind.ELECT or not step.advice.starts & guarded:
                break
        else:
            number, step = 0, left[0]
            guarded = frozenset(broker for one in left[1:] for broker in one.advice.holds_back)
        del left[number]
        if step.advice.kind is AdviceKind.ELECT:
            guarded |= done
        after = step.advice.reading_before(guarded | step.advice.holds_back)
        yield step._replace(advice=after, only_then=bool((after.starts & done).difference(after.read_before)))
        done |= step.advice.holds_back


def _group(one: Advice) -> tuple[object, ...]:
    """Elections stand together whoever is elected, and disks whoever has them; returns by the broker."""
    if one.kind in (AdviceKind.ELECT, AdviceKind.READ_FIRST):
        return (one.kind, one.failed_disk)
    return (one.kind, one.brokers, one.reassigning, bool(one.instead))


def _merged(group: list[Advice]) -> Advice:
    """One advice that holds for all of the group, with every warning once."""
    brokers = tuple(sorted({broker for one in group for broker in one.brokers}))
    down: dict[tuple[int, bool, bool, bool], AutomaticElection] = {}
    for one in group:
        for warned in one.keep_down:
            key = (warned.broker, warned.failed_disk, warned.checks_records, bool(warned.cuts_off))
            down.setdefault(key, warned)
    check = tuple(sorted({broker for one in group for broker in one.check_disk}))
    verdicts = [one.verdict for one in group if one.verdict is not None]
    conditions = tuple(dict.fromkeys(condition for one in verdicts for condition in one.conditions))
    evidence = tuple(dict.fromkeys(found for one in verdicts for found in one.evidence))
    verdict = verdicts[0]._replace(conditions=conditions, evidence=evidence) if verdicts else None
    deciders = tuple(dict.fromkeys(decider for one in group for decider in one.decided_by))
    elr = any(one.by_elr for one in group)
    shut = all(one.was_shut_down for one in group)
    return Advice(
        group[0].kind,
        brokers,
        tuple(down.values()),
        check,
        verdict,
        deciders,
        elr,
        shut,
        group[0].reassigning,
        next((one.missed for one in group if one.missed is not None), None),
        all(one.leads_again for one in group),
        tuple(sorted({broker for one in group for broker in one.instead})),
        tuple({one.broker: one for found in group for one in found.start_if_whole}.values()),
        all(one.keeps_acked for one in group),
        all(one.keeps_all for one in group if one.start_if_whole or one.kind is not AdviceKind.ELECT),
        tuple(dict.fromkeys(later for one in group for later in one.led_after)),
        tuple(sorted({broker for one in group for broker in one.read_before})),
        tuple(dict.fromkeys(old for one in group for old in one.old_leaders)),
        tuple(sorted({broker for one in group for broker in one.repair})),
        tuple(sorted({broker for one in group for broker in one.copy})),
        group[0].failed_disk,
    )
