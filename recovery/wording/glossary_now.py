"""What a term of the glossary means now for one partition, by what is known of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from recovery.acknowledged.verdict import PartitionVerdicts
from recovery.loss import Branch, branches, loss
from recovery.model import NO_EPOCH, Lineage, PartitionState, ReplicaLog, Standing, Survey, Unknown
from recovery.ranking import Ranking, rank
from recovery.strategy import Decision
from recovery.wording import glossary
from recovery.wording.quantity_text import both, counted, ids, offset
from recovery.wording.replica_text import min_isr_on_brokers
from recovery.wording.verdict_text import verdict_text


class PartitionNow(NamedTuple):
    """What is known of the partition under the cursor. ``decision``, ``verdicts``: None where nobody judged."""

    survey: Survey
    ranking: Ranking
    decision: Decision | None = None
    verdicts: PartitionVerdicts | None = None


def meaning_now(term: str, now: PartitionNow) -> str:
    """One or two sentences; "" for a term that says nothing about a partition."""
    reported = _NOW.get(term)
    return "" if reported is None else f"{now.survey.tp}: {reported(now)}"


def _isr(now: PartitionNow) -> str:
    state = now.survey.state
    if not state.isr:
        return "the ISR is empty."
    silent = [b for b in state.isr if now.survey.log(b) is None]
    led = f"led by {state.leader}" if not state.offline else "nobody leads"
    quiet = f"; of these {both(silent)} did not answer" if silent else ""
    return f"the ISR is {ids(state.isr)} of replicas {ids(state.replicas)}{quiet}; {led}."


def _min_isr(now: PartitionNow) -> str:
    least, members = now.survey.min_isr, len(now.survey.state.isr)
    if isinstance(least, Unknown):
        return f"min ISR is not known ({least})."
    if now.survey.state.offline:
        return f"min ISR is {min_isr_on_brokers(now.survey)}; without a leader nothing is written at all."
    refused = "acks=all is refused" if members < least else "acks=all is accepted"
    return f"the ISR has {members} of min ISR {least}: {refused}."


def _set_of(name: str, members: tuple[int, ...] | None, empty: str, full: str) -> str:
    if members is None:
        return f"the {name} is off in this cluster."
    return f"the {name} is {ids(members)}: {full}" if members else f"the {name} is empty: {empty}"


def _elr(now: PartitionNow) -> str:
    empty = "no replica outside the ISR is known to hold every committed record."
    full = "whoever of them returns after a clean shutdown is elected without loss."
    return _set_of("ELR", now.survey.state.elr, empty, full)


def _last_known(now: PartitionNow) -> str:
    state = now.survey.state
    empty = "Kafka elects nobody from it."
    return _set_of("LastKnownELR", state.last_known_elr, empty, _last_known_elects(state))


def _last_known_elects(state: PartitionState) -> str:
    """KIP-966, "Leader election": it counts only where ISR and ELR have no member."""
    known = state.last_known_elr or ()
    both_sets = [broker for broker in known if broker in (state.elr or ())]
    if both_sets:
        of = f"{both(both_sets)} is in the ELR as well: the controller knows of no unclean shutdown of it. "
        return f"{of}Kafka elects from ISR and ELR first."
    if state.isr or state.elr:
        return "Kafka elects nobody from it while the ISR or the ELR has a member."
    if len(known) > 1:
        return "it names more than one, and Kafka elects none of them by itself."
    return "Kafka elects it as soon as it is unfenced, whatever its log lost."


def _fenced(now: PartitionNow) -> str:
    fenced = [r.broker for r in now.survey.replicas if r.standing is Standing.FENCED]
    if not fenced:
        return "none of its replicas is on a fenced broker."
    return (
        f"{counted(len(fenced), 'replica')} on a fenced broker: {both(fenced)}, which cannot be elected now."
    )


def _leader_epoch(now: PartitionNow) -> str:
    state = now.survey.state
    return f"the leader epoch is {state.leader_epoch}; the next leader gets {state.leader_epoch + 1} or more."


def _logs(now: PartitionNow) -> list[tuple[int, ReplicaLog]]:
    return [(r.broker, r.log) for r in now.survey.replicas if isinstance(r.log, ReplicaLog)]


def _each(now: PartitionNow, what: Callable[[ReplicaLog], str]) -> str:
    parts = [f"{what(log)} on broker {broker}" for broker, log in _logs(now)]
    silent = [r.broker for r in now.survey.replicas if isinstance(r.log, Unknown)]
    parts += [f"not known on {both(silent)}"] if silent else []
    return f"{'; '.join(parts)}."


def _last_epoch(now: PartitionNow) -> str:
    def epoch(log: ReplicaLog) -> str:
        if not isinstance(log.lineage, Lineage):
            return "unknown"
        return "none" if log.lineage.last_epoch == NO_EPOCH else str(log.lineage.last_epoch)

    return _each(now, epoch)


def _high_watermark(now: PartitionNow) -> str:
    known = [(log.high_watermark, broker) for broker, log in _logs(now) if log.high_watermark >= 0]
    if not known:
        return "no replica reported one."
    most, broker = max(known)
    return f"the highest known is {offset(most)}, of broker {broker}: everything below it was committed."


def _log_end(now: PartitionNow) -> str:
    return _each(now, lambda log: offset(log.log_end_offset))


def _divergent(now: PartitionNow) -> str:
    best = now.decision.order[0] if now.decision is not None and now.decision.order else None
    if best is None or (log := now.survey.log(best)) is None or not isinstance(log.lineage, Lineage):
        return "whether the logs diverge is not known."
    lost = loss(now.survey, best)
    stale = branches(lost, log.lineage.last_epoch).get(Branch.STALE, 0)
    if stale:
        return f"if {best} leads, {counted(stale, 'offset')} of a divergent tail on other replicas are truncated."
    more = "; a replica that did not answer may have one" if lost.unanswered else ""
    return f"beside the log of {best} no replica that answered has a divergent tail{more}."


def _ranking(now: PartitionNow) -> str:
    order = rank(now.survey, now.ranking)
    if isinstance(order, Unknown):
        return f"no ranking by {now.ranking}: {order}."
    return f"by {now.ranking} the order is {ids(c.broker for c in order)}, the best first."


def _strategy(now: PartitionNow) -> str:
    return "nothing is suggested: it has a leader." if now.decision is None else f"{now.decision.reason}."


def _verdict(now: PartitionNow) -> str:
    if now.verdicts is None or not now.verdicts.candidates:
        return "nobody judged it: it has a leader, or no log is known."
    parts = [
        f"electing {broker} {verdict_text(verdict)}" for broker, verdict in now.verdicts.candidates.items()
    ]
    return f"{'. '.join(part[0].upper() + part[1:] for part in parts)}."


def _candidates(now: PartitionNow) -> str:
    found = [r.broker for r in now.survey.replicas if r.electable and isinstance(r.log, ReplicaLog)]
    return f"{ids(found)} could be elected now." if found else "nobody could be elected now."


def _unclean(now: PartitionNow) -> str:
    state = now.survey.state
    if not state.offline:
        return f"it is led by {state.leader}; none is needed."
    clean = sorted({*state.isr, *(state.elr or ())})
    return (
        f"every election of a replica outside {ids(clean)} is unclean."
        if clean
        else "every election is unclean."
    )


_NOW: dict[str, Callable[[PartitionNow], str]] = {
    glossary.ISR: _isr,
    glossary.MIN_ISR: _min_isr,
    glossary.ELR: _elr,
    glossary.LAST_KNOWN_ELR: _last_known,
    glossary.FENCED: _fenced,
    glossary.LEADER_EPOCH: _leader_epoch,
    glossary.LAST_EPOCH: _last_epoch,
    glossary.HIGH_WATERMARK: _high_watermark,
    glossary.LOG_END: _log_end,
    glossary.DIVERGENT_TAIL: _divergent,
    glossary.RANKING: _ranking,
    glossary.STRATEGY: _strategy,
    glossary.VERDICT: _verdict,
    glossary.ACKNOWLEDGED: _verdict,
    glossary.CANDIDATE: _candidates,
    glossary.UNCLEAN: _unclean,
}
