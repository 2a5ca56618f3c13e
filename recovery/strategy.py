"""Whether to elect now, and whom. The strategies follow KIP-966, "Unclean recovery"."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from recovery.acknowledged.verdict import (
    AutomaticElectionKind,
    DeciderKind,
    EvidenceKind,
    PartitionVerdicts,
    Verdict,
    VerdictKind,
)
from recovery.model import NO_LEADER, Survey, Unknown
from recovery.old_leaders import OldLeader, old_leaders
from recovery.ranking import Candidate, Ranking, answered, rank
from recovery.wording.quantity_text import both, either
from recovery.wording.replica_text import STANDING_WORDS, acting_text, moving_unknown
from recovery.wording.verdict_text import verdict_text

# The reasons of decisions: why a leader is chosen, or nobody.

REASSIGNING = (
    "a reassignment is in progress, which Kafka neither finishes nor cancels without a leader: bring a member of"
    " the ISR or ELR back. An unclean election elects the first live replica of the assignment, whatever its log"
    " lacks"
)


def best_text(
    survey: Survey,
    chosen: Candidate,
    ranked: tuple[Candidate, ...],
    ranking: Ranking,
    steady: Sequence[int] = (),
) -> str:
    """Why ``chosen`` is the best of those that answered; ``steady`` as in :func:`recovery.ranking.rank`."""
    what = "last record's epoch" if ranking is Ranking.LAST_RECORD else "leader epoch"
    epoch, end = chosen.key
    best = f"best of {len(ranked)} of {len(survey.replicas)} that answered: {what} {epoch}, log end {end:,}"
    alike = [c.broker for c in ranked if c.key == chosen.key and c.broker in steady]
    if survey.compacted is None or chosen.broker not in alike or len(alike) < 2:
        return best
    others = both(tuple(broker for broker in alike if broker != chosen.broker))
    return f"{best}; of the logs that end alike {chosen.broker} was in the ISR for the longest, {others} not longer"


def both_branches_text(chosen: Candidate, ranked: tuple[Candidate, ...], verdict: Verdict) -> str:
    """Why the best by ranking is not elected where another replica has committed records that it lacks."""
    holders = {b for one in verdict.evidence if one.kind is EvidenceKind.HIGH_WATERMARK for b in one.brokers}
    branches = [
        f"broker {one.broker} holds up to {one.log.log_end_offset:,} in epoch {one.key[0]}"
        for one in ranked
        if one.broker == chosen.broker or one.broker in holders
    ]
    return (
        f"the best by ranking, broker {chosen.broker}, {verdict_text(verdict)}: {'; '.join(branches)}."
        " Each choice cuts off the other branch: choose by hand, and rescue the other branch before the election"
    )


def old_leader_text(writing: tuple[OldLeader, ...]) -> str:
    """Why nobody is elected while a broker that does not know that it was replaced takes writes."""
    one = len(writing) == 1
    stop = "stop its process, or mend its network" if one else "stop their processes, or mend their network"
    return (
        f"{acting_text(writing)}, and an election cuts off what {'it takes' if one else 'they take'}: {stop}"
    )


def no_disk_left_text(failed: tuple[int, ...]) -> str:
    """Why nobody can be elected where the disks of all replicas have failed."""
    disks = "the disk of broker" if len(failed) == 1 else "the disks of brokers"
    return f"{disks} {both(failed)} FAILED, and no other replica is left: without reading it the records are gone"


def reassignment_text(survey: Survey, *, detailed: bool) -> str:
    """Why nobody is elected during a reassignment, or while it is not known whether there is one.

    ``detailed``: also whom an unclean election would elect now, which a snapshot of many clusters does not tell.
    """
    if isinstance(survey.reassigning, Unknown):
        return moving_unknown(survey.reassigning)
    first = next((replica for replica in survey.replicas if replica.electable), None)
    if first is None or not detailed:
        return REASSIGNING
    log = first.log
    if isinstance(log, Unknown):
        holds = "its log is not known"
    elif log.log_end_offset <= log.log_start_offset:
        holds = "its log is EMPTY"
    else:
        holds = f"log end {log.log_end_offset:,}"
    return f"{REASSIGNING}: broker {first.broker} now, {holds}"


class Strategy(StrEnum):
    """How many replicas must have answered before a leader is chosen (docs/files.md)."""

    AGGRESSIVE = "aggressive"
    BALANCED = "balanced"
    COMPLETE = "complete"
    NONE = "none"


class DecisionKind(StrEnum):
    """The decision for one partition."""

    ELECT = "elect"
    ALREADY_ONLINE = "already online"
    WAIT = "wait"
    REFUSED = "refused"
    NO_CANDIDATE = "no candidate"
    REPORT_ONLY = "report only"


class WhyNot(StrEnum):
    """Which evidence speaks against electing now.

    - BRANCHES: the best by ranking lacks records that were committed.
    - FAILED_DISK: only a disk that failed could tell more, and its broker returns with an empty one; or no other
      replica is left.
    - BETTER_FENCED: a better log is on a broker that cannot be elected yet.
    - UNCLEAN_MEMBER: only the return of a broker could tell more, and it is in the ISR since an unclean election:
      it cuts off what others hold from before.
    - REASSIGNING: a reassignment is in progress.
    - OLD_LEADER: a broker that does not know that it was replaced still takes writes, which an election cuts off.
    - UNCHECKED: what the best loses of the acknowledged records rests on what was not checked, or what there are
      signs against, and something can still check it.
    - WHOLE_MEMBER: the best loses no record that was acknowledged with acks=all, and a broker is away whose log is
      likely whole, that Kafka elects when it returns, without an unclean election. Where it led last, nothing at
      all is lost with it; else what was acknowledged with acks=all is kept.
    """

    BRANCHES = "branches"
    FAILED_DISK = "failed disk"
    BETTER_FENCED = "better fenced"
    UNCLEAN_MEMBER = "unclean member"
    REASSIGNING = "reassigning"
    OLD_LEADER = "old leader"
    UNCHECKED = "unchecked"
    WHOLE_MEMBER = "whole member"


class Decision(NamedTuple):
    """The choice for one partition.

    ``leader`` is -1 unless the verdict is ELECT (or ALREADY_ONLINE: the present leader). ``order`` holds
    every replica: the chosen one first, then by rank, those that did not answer last, in assignment order.
    ``waits_for`` are the brokers to wait for. ``other_ranking_leader`` is set where the other ranking would
    choose somebody else. ``judged`` are the verdicts it rests on; None: nobody judged. ``why_not`` is the evidence
    against an election, where that is the reason. ``instead``: whom ``--accept-unchecked`` elects instead of
    waiting; -1: nobody. ``together``: all of ``waits_for`` are to be started, for nothing runs.
    """

    verdict: DecisionKind
    leader: int
    order: tuple[int, ...]
    waits_for: tuple[int, ...]
    reason: str
    other_ranking_leader: int | None
    judged: PartitionVerdicts | None = None
    why_not: WhyNot | None = None
    instead: int = NO_LEADER
    together: bool = False


def decide(
    survey: Survey,
    ranking: Ranking,
    strategy: Strategy,
    judged: PartitionVerdicts | None = None,
    *,
    accept_unchecked: bool = False,
) -> Decision:
    """The choice that ``strategy`` makes among the candidates as ``ranking`` orders them.

    With ``judged``, ``balanced`` goes by the verdict of the best candidate. Without it, as in a snapshot of many
    clusters, it goes by who answered. ``accept_unchecked``: somebody takes it that the conditions of a verdict hold
    under which no acknowledged record is lost.
    """
    decision = _decide(survey, ranking, strategy, judged, accept_unchecked=accept_unchecked)
    repaired = [r.broker for r in survey.replicas if r.broker in decision.waits_for and r.disk_to_repair]
    if repaired:
        # As its disk was read, the broker would end, or would not serve all of it.
        reason = f"{decision.reason}; repair the disk of {both(repaired)} before its start"
        decision = decision._replace(reason=reason)
    members = tuple(sorted({*survey.state.isr, *(survey.state.elr or ())}))
    if survey.led_to_end and members and decision.verdict in (DecisionKind.WAIT, DecisionKind.NO_CANDIDATE):
        who = f"broker {members[0]}" if len(members) == 1 else f"brokers {both(members)}, all of them"
        decision = decision._replace(
            verdict=DecisionKind.WAIT,
            waits_for=members,
            reason=f"nothing runs: start {who} (ISR or ELR)",
            together=True,
        )
    return decision if judged is None else decision._replace(judged=judged)


_MAY_ELECT = (WhyNot.UNCHECKED, WhyNot.WHOLE_MEMBER, WhyNot.FAILED_DISK)


def _acceptable(verdict: Verdict | None) -> bool:
    """Whether it loses no acknowledged record if its conditions hold. An empty log is not called complete."""
    return verdict is not None and verdict.none and not verdict.empty


def _or_elect(decision: Decision | None, chosen: Candidate, verdict: Verdict | None) -> Decision | None:
    """``decision`` with whom somebody may elect all the same who takes it that the conditions hold."""
    waits = decision is not None and decision.why_not in _MAY_ELECT
    if decision is None or not waits or not _acceptable(verdict):
        return decision
    return decision._replace(instead=chosen.broker)


def _decide(
    survey: Survey,
    ranking: Ranking,
    strategy: Strategy,
    judged: PartitionVerdicts | None,
    *,
    accept_unchecked: bool,
) -> Decision:
    early = _nothing_to_decide(survey, strategy, detailed=judged is not None)
    if early is not None:
        return early
    steady = () if judged is None else judged.steady
    ranked = rank(survey, ranking, steady)
    if isinstance(ranked, Unknown):
        return _no_election(DecisionKind.REFUSED, str(ranked))
    chosen = next((candidate for candidate in ranked if candidate.electable), None)
    failed = _failed_disks(judged)
    if judged is not None and strategy is Strategy.BALANCED and chosen is not None:
        verdict = judged.candidates.get(chosen.broker)
        accepted = accept_unchecked and _acceptable(verdict)
        against = (
            None if accepted else _or_elect(_by_verdict(survey, chosen, ranked, judged), chosen, verdict)
        )
        if against is not None:
            return against
    else:
        waits_for, why = _must_wait(survey, ranking, strategy, ranked, failed)
        if judged is not None and strategy is Strategy.BALANCED:
            waits_for = _awaited(waits_for, judged) or waits_for
        if waits_for:
            return _waits(waits_for, why, failed)
    if chosen is None:
        return _nobody(survey, ranked, failed)
    order = election_order(survey, ranked, chosen.broker)
    unproved = _unproved(judged, chosen.broker) if strategy is Strategy.BALANCED else ""
    other = best_electable(
        survey, Ranking.SPECIFICATION if ranking is Ranking.LAST_RECORD else Ranking.LAST_RECORD
    )
    return Decision(
        DecisionKind.ELECT,
        chosen.broker,
        order,
        (),
        "; ".join(filter(None, (best_text(survey, chosen, ranked, ranking, steady), unproved))),
        other if other != chosen.broker else None,
    )


def _by_verdict(
    survey: Survey, chosen: Candidate, ranked: tuple[Candidate, ...], judged: PartitionVerdicts
) -> Decision | None:
    """Why ``balanced`` does not elect the best candidate; None: it does.

    It does where it is proved that no acknowledged record is lost, and where nothing can tell more any more.
    """
    verdict = judged.candidates.get(chosen.broker)
    reported = "" if verdict is None else f"broker {chosen.broker} {verdict_text(verdict)}"
    waits_for, why = _better_but_fenced(survey, ranked, judged)
    if waits_for:
        why = "; ".join(filter(None, (why, reported)))
        return _no_election(DecisionKind.WAIT, why, waits_for=waits_for, why_not=WhyNot.BETTER_FENCED)
    if verdict is not None and verdict.kind is VerdictKind.SOME:
        why = both_branches_text(chosen, ranked, verdict)
        return _no_election(DecisionKind.REFUSED, why, why_not=WhyNot.BRANCHES)
    if verdict is not None and verdict.proved_none:
        return _whole_member(survey, chosen, judged, reported)
    answers = () if verdict is None else verdict.decided_by
    deciders = {b: None for one in answers if one.kind is DeciderKind.BROKER_ANSWER for b in one.brokers}
    silent = _awaited([broker for broker in survey.state.replicas if broker in deciders], judged)
    if silent:
        members = {one.broker for one in judged.automatic_elections if one.kind in CLEAN}
        unchecked = verdict is not None and verdict.none
        why = f"{reported}; wait for {either(silent)}"
        if unchecked and members.issuperset(silent):
            why = f"bring back {either(silent)} (ISR or ELR) with its disk intact, or read that disk; {reported}"
        why_not = WhyNot.UNCHECKED if unchecked else None
        return _no_election(DecisionKind.WAIT, why, waits_for=silent, why_not=why_not)
    by_log = any(one.kind is DeciderKind.METADATA_LOG for one in answers)
    against = _unclean_member(chosen, judged, reported) or _failed_disk(chosen, judged, reported)
    if (against is None and answers) or (by_log and verdict is not None and verdict.none):
        return _no_election(DecisionKind.WAIT, reported, why_not=WhyNot.UNCHECKED)
    return against


def _whole_member(
    survey: Survey, chosen: Candidate, judged: PartitionVerdicts, reported: str
) -> Decision | None:
    """Waits for a broker that was shut down, whose return elects a leader without an unclean election; not where
    the best itself led after that one, and holds what the return would cut off.
    """
    silent = {r.broker for r in survey.replicas if isinstance(r.log, Unknown)}
    found = tuple(
        one
        for one in judged.automatic_elections
        if one.broker in silent
        and one.kind in CLEAN
        and one.shut_down
        and not (one.failed_disk or one.cuts_off)
        and chosen.broker not in {later.broker for later in one.led_after}
    )
    found = tuple(one for one in found if one.keeps_all) or found
    if not found:
        return None
    whole = tuple(one.broker for one in found)
    lost = "and the partition needs no unclean election"
    if all(one.keeps_all for one in found):
        lost = "then nothing at all is lost"
    elif all(one.keeps_acked for one in found):
        lost = "then no record that was acknowledged with acks=all is lost"
    why = f"bring back {either(whole)}, which was shut down: {lost}; {reported}"
    return _no_election(DecisionKind.WAIT, why, waits_for=whole, why_not=WhyNot.WHOLE_MEMBER)


def _unproved(judged: PartitionVerdicts | None, broker: int) -> str:
    """What an election rests on that was not checked; "" where it is proved, or unknown."""
    verdict = None if judged is None else judged.candidates.get(broker)
    if verdict is None or not verdict.none or verdict.proved_none:
        return ""
    return verdict_text(verdict)


def _awaited(deciders: Sequence[int], judged: PartitionVerdicts) -> tuple[int, ...]:
    """Of the silent brokers whose logs would decide: those that Kafka elects without an unclean election, else all;
    never one whose return cuts off what others hold.
    """
    returning = {one.broker: one for one in judged.automatic_elections}
    safe = [broker for broker in deciders if broker not in returning or not returning[broker].cuts_off]
    members = [broker for broker in safe if broker in returning and returning[broker].kind in CLEAN]
    return likely_leaders(members or safe, judged)


def _unclean_member(chosen: Candidate, judged: PartitionVerdicts, reported: str) -> Decision | None:
    """Refuses where only a broker that is in the ISR since an unclean election could tell more."""
    cutting = [one for one in judged.automatic_elections if one.cuts_off]
    if not cutting:
        return None
    members, holders = (
        tuple(one.broker for one in cutting),
        sorted({b for one in cutting for b in one.cuts_off}),
    )
    hold = "holds" if len(holders) == 1 else "hold"
    why = (
        f"broker {both(members)} is in the ISR since an unclean election, and its return cuts off what"
        f" {both(tuple(holders))} {hold} from before; {reported}. Read both logs first, or elect {chosen.broker}"
        " (--strategy aggressive)"
    )
    return _no_election(DecisionKind.REFUSED, why, why_not=WhyNot.UNCLEAN_MEMBER)


CLEAN = (AutomaticElectionKind.ISR_MEMBER, AutomaticElectionKind.ELR_MEMBER)
"""Kafka elects these when they return, without an unclean election."""


def likely_leaders(brokers: Iterable[int], judged: PartitionVerdicts) -> tuple[int, ...]:
    """Those of ``brokers`` that were in a controlled shutdown and whose logs Kafka checks when they return: it is
    likely to elect no other; of these the one that led last, since the others cut off what it took without them.
    All of them where there is none. A member of the ELR counts also where the topic elects uncleanly by itself:
    then the others must not return first.
    """
    brokers = tuple(brokers)
    shut_down = {
        one.broker
        for one in judged.automatic_elections
        if one.shut_down and (one.checks_records or one.kind is AutomaticElectionKind.ELR_MEMBER)
    }
    likely = tuple(broker for broker in brokers if broker in shut_down)
    last = {one.broker for one in judged.automatic_elections if one.keeps_all}
    return tuple(broker for broker in likely if broker in last) or likely or brokers


def _failed_disks(judged: PartitionVerdicts | None) -> tuple[int, ...]:
    """Brokers that Kafka would elect when they return, and that return with an empty disk."""
    return (
        () if judged is None else tuple(one.broker for one in judged.automatic_elections if one.failed_disk)
    )


def _failed_disk(chosen: Candidate, judged: PartitionVerdicts, reported: str) -> Decision | None:
    """Refuses where only a disk that failed could tell more; None where nothing could: the best is elected."""
    failed = _failed_disks(judged)
    if not failed:
        return None
    why = (
        f"the disk of broker {either(failed)} FAILED, and it returns with an empty one; {reported}. Read that disk,"
        f" or elect {chosen.broker} before (--strategy aggressive)"
    )
    return _no_election(DecisionKind.REFUSED, why, why_not=WhyNot.FAILED_DISK)


def _waits(brokers: tuple[int, ...], why: str, failed: tuple[int, ...]) -> Decision:
    """Nobody is waited for whose disk failed: what was on it can only be read from it."""
    unread = tuple(broker for broker in brokers if broker in failed)
    others = tuple(broker for broker in brokers if broker not in failed)
    if unread:
        disks = "the disk of broker" if len(unread) == 1 else "the disks of brokers"
        read = (
            "read what is left of it (ktriage disk scan) and give it as --evidence, or use another strategy"
        )
        why = f"{why}; {disks} {both(unread)} FAILED: {read}"
    if others:
        return _no_election(DecisionKind.WAIT, why, waits_for=others)
    return _no_election(DecisionKind.REFUSED, why, why_not=WhyNot.FAILED_DISK)


def _nothing_to_decide(survey: Survey, strategy: Strategy, *, detailed: bool) -> Decision | None:
    if not survey.state.offline:
        leader = survey.state.leader
        return _no_election(DecisionKind.ALREADY_ONLINE, f"led by {leader}", leader=leader)
    if survey.reassigning:
        why = reassignment_text(survey, detailed=detailed)
        sure = WhyNot.REASSIGNING if survey.reassigning is True else None
        return _no_election(DecisionKind.REFUSED, why, why_not=sure)
    if strategy is Strategy.NONE:
        return _no_election(DecisionKind.REPORT_ONLY, "strategy none: nothing is elected")
    writing = old_leaders(survey)
    if writing and strategy is not Strategy.AGGRESSIVE:
        brokers = tuple(one.broker for one in writing)
        why = old_leader_text(writing)
        return _no_election(DecisionKind.WAIT, why, waits_for=brokers, why_not=WhyNot.OLD_LEADER)
    return None


def election_order(survey: Survey, ranked: tuple[Candidate, ...], leader: int) -> tuple[int, ...]:
    """The assignment order to elect with: ``leader``, the others by rank, those that did not answer last."""
    by_rank = [candidate.broker for candidate in ranked if candidate.broker != leader]
    silent = [broker for broker in survey.state.replicas if broker != leader and broker not in by_rank]
    return (leader, *by_rank, *silent)


def clean_electors(survey: Survey) -> tuple[int, ...]:
    """The brokers whose return elects a leader without an unclean election: ISR and ELR members.

    Kafka elects any of them as soon as it is unfenced (KIP-966, "Leader election"). Where ISR and ELR are
    empty a sole LastKnownELR member is elected by itself too, but it may have lost its suffix: it is not
    listed here.
    """
    members = (*survey.state.isr, *(survey.state.elr or ()))
    return tuple(broker for broker in survey.state.replicas if broker in members)


def _must_wait(
    survey: Survey,
    ranking: Ranking,
    strategy: Strategy,
    ranked: tuple[Candidate, ...],
    failed: tuple[int, ...],
) -> tuple[tuple[int, ...], str]:
    """Whom to wait for, and why. ``failed`` are brokers whose return brings nothing, because their disks failed."""
    if strategy is Strategy.AGGRESSIVE:
        return (), ""
    state = survey.state
    if strategy is Strategy.BALANCED and state.elr is not None:
        clean = tuple(broker for broker in clean_electors(survey) if broker not in failed)
        if clean:
            why = (
                f"bring back {either(clean)} (ISR or ELR): after a clean shutdown it is elected without loss"
            )
            return clean, why
        if state.last_known_elr and not set(failed).issuperset(state.last_known_elr):
            missing = _not_ready(survey, ranking, state.last_known_elr)
            if missing:
                return missing, f"LastKnownELR member {both(missing)} is not electable or did not answer"
            return _better_but_fenced(survey, ranked)
    # Without a log, `complete` never elects; `balanced` does not wait for a disk that will not come back.
    ignored = failed if strategy is Strategy.BALANCED else ()
    missing = tuple(r.broker for r in survey.replicas if not answered(r, ranking) and r.broker not in ignored)
    if missing:
        return missing, f"replica {both(missing)} did not answer"
    return _better_but_fenced(survey, ranked)


def _better_but_fenced(
    survey: Survey, ranked: tuple[Candidate, ...], judged: PartitionVerdicts | None = None
) -> tuple[tuple[int, ...], str]:
    """A better log on a fenced broker is waited for: waiting is free here, and truncation is final. Not one whose
    return cuts off what others hold. Whatever the ranking says, a log that is proved to hold every acknowledged
    record is better than one that is not.
    """
    best = next((candidate for candidate in ranked if candidate.electable), None)
    if best is None:
        return (), ""
    cutting = (
        () if judged is None else tuple(one.broker for one in judged.automatic_elections if one.cuts_off)
    )
    proved = _proved_instead(best.broker, judged)
    better = tuple(
        c.broker
        for c in ranked
        if not c.electable and (c.key > best.key or c.broker in proved) and c.broker not in cutting
    )
    if not better:
        return (), ""
    disks = {replica.broker for replica in survey.replicas if replica.disk_read_ms is not None}
    if disks.issuperset(better):
        start = f"start broker {both(better)} again with its disk"
        return better, f"the disk of {both(better)} holds a better log than {best.broker} has: {start}"
    return (
        better,
        f"{both(better)} answered with a better log than {best.broker}, but cannot be elected yet",
    )


def _proved_instead(broker: int, judged: PartitionVerdicts | None) -> frozenset[int]:
    """Whose election is proved to lose no acknowledged record, where that of ``broker`` rests on conditions."""
    verdict = None if judged is None else judged.candidates.get(broker)
    if judged is None or verdict is None or not verdict.none or verdict.proved_none:
        return frozenset()
    proved = {other for other, one in judged.candidates.items() if one.proved_none}
    return frozenset(proved.difference(_failed_disks(judged)))


def _not_ready(survey: Survey, ranking: Ranking, brokers: tuple[int, ...]) -> tuple[int, ...]:
    ready = {r.broker for r in survey.replicas if r.electable and answered(r, ranking)}
    return tuple(broker for broker in brokers if broker not in ready)


def _nobody(survey: Survey, ranked: tuple[Candidate, ...], failed: tuple[int, ...]) -> Decision:
    if not ranked and failed and set(failed).issuperset(survey.state.replicas):
        return _no_election(DecisionKind.NO_CANDIDATE, no_disk_left_text(failed), why_not=WhyNot.FAILED_DISK)
    if not ranked:
        reason = "no replica answered"
    else:
        states = ", ".join(f"{c.broker} is {STANDING_WORDS[c.standing]}" for c in ranked)
        reason = f"no replica that answered can be elected: {states}"
    left = tuple(broker for broker in survey.state.replicas if broker not in failed)
    return _no_election(DecisionKind.NO_CANDIDATE, reason, waits_for=left)


def best_electable(survey: Survey, ranking: Ranking) -> int | None:
    """The best by ranking that can be elected, whatever it lacks; None: nobody, or the logs cannot be ranked."""
    ranked = rank(survey, ranking)
    if isinstance(ranked, Unknown):
        return None
    return next((candidate.broker for candidate in ranked if candidate.electable), None)


def _no_election(
    verdict: DecisionKind,
    reason: str,
    *,
    leader: int = -1,
    waits_for: tuple[int, ...] = (),
    why_not: WhyNot | None = None,
) -> Decision:
    return Decision(verdict, leader, (), waits_for, reason, None, why_not=why_not)
