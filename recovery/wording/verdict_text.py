"""A verdict on acknowledged records, in words."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from recovery.acknowledged.verdict import (
    Condition,
    ConditionKind,
    Decider,
    DeciderKind,
    EvidenceKind,
    Verdict,
    VerdictKind,
)
from recovery.wording.quantity_text import both, either


def verdict_text(verdict: Verdict) -> str:
    """What is lost of the acknowledged records, the worst first, with what it rests on that was not checked."""
    reported = loss_text(verdict)
    if verdict.conditions and (verdict.kind is not VerdictKind.SOME or verdict.at_most is not None):
        reported += f", {conditions_text(verdict.conditions)}"
    parts = [reported]
    if verdict.appended:
        parts.append(f"{verdict.appended:,} offsets that were only appended are lost")
    parts.extend(_warnings(verdict))
    if verdict.kind is not VerdictKind.SOME and verdict.decided_by:
        decides = "checked by" if verdict.none else "decided by"
        parts.append(f"{decides} {' or '.join(map(decider_text, verdict.decided_by))}")
    return "; ".join(parts)


@lru_cache(maxsize=4_096)  # thousands of partitions on the same brokers have equal ones
def conditions_text(conditions: tuple[Condition, ...]) -> str:
    """Such as ``if min ISR was never lower, … and the replicas were always the same``."""
    return f"if {both(tuple(dict.fromkeys(map(condition_text, conditions))))}"


def _warnings(verdict: Verdict) -> Iterator[str]:
    """The evidence that an operator must hear of whatever is chosen."""
    for one in verdict.evidence:
        who = both(one.brokers)
        match one.kind:
            case EvidenceKind.RECORDS_LOST:
                lost = f"broker {who} LOST records that it had: it was in sync up to {one.offset:,}"
                yield f"{lost} (power loss, or a new disk)"
            case EvidenceKind.DISK_REPLACED:
                yield f"the disk of broker {who} was replaced, and the new one is EMPTY: keep and read the old one"
            case EvidenceKind.STILL_WRITING:
                yield f"broker {who} may still take writes"


def short_verdict(verdict: Verdict | None) -> str:
    """What of the acknowledged records is lost. A high watermark proves only that a record was committed.

    For a column: ``none``, ``none, unchecked``, ``none, in doubt``, ``500+ committed``, ``500 committed`` (no
    others), ``up to 40``, ``unknown``.
    """
    if verdict is None:
        return "not judged"
    if verdict.kind is VerdictKind.NONE:
        return verdict.value
    if verdict.kind is VerdictKind.SOME:
        return f"{verdict.at_least:,}{'' if verdict.exact else '+'} committed"
    return "unknown" if verdict.at_most is None else f"up to {verdict.at_most:,}"


def loss_text(verdict: Verdict) -> str:
    """What is lost of the acknowledged records, as a verb: without conditions and evidence."""
    if verdict.kind is VerdictKind.NONE:
        return "loses no record that was acknowledged with acks=all"
    if verdict.kind is VerdictKind.SOME:
        return _some(verdict)
    if verdict.at_most is None:
        return "may lose acknowledged records, nobody knows how many"
    return f"may lose up to {verdict.at_most:,} acknowledged offsets"


def _some(verdict: Verdict) -> str:
    """A bound is one of acknowledged offsets: more than these may have been committed."""
    proved = "offsets that a high watermark proves committed"
    if verdict.exact:
        return f"loses {verdict.at_least:,} {proved}, and no others"
    text = f"loses {verdict.at_least:,} or more {proved}"
    return (
        text
        if verdict.at_most is None
        else f"{text}; at most {verdict.at_most:,} acknowledged offsets are lost"
    )


def condition_text(condition: Condition) -> str:
    """What a verdict assumes, such as ``min ISR was never lower``."""
    names = list(_names(condition))
    match condition.kind:
        case ConditionKind.MIN_ISR_NEVER_LOWER:
            return _files_text(condition.brokers) if names else "min ISR was never lower"
        case ConditionKind.NO_UNCLEAN_ELECTION:
            return "no unclean election happened" + (" before the metadata log" if condition.since_ms else "")
        case ConditionKind.SAME_REPLICAS | ConditionKind.NO_COMPACTION_HOLES | ConditionKind.NOT_MADE_AGAIN:
            return _WITHOUT_BROKERS[condition.kind]
        case ConditionKind.NOT_EMPTIED:
            return f"the disk of {names[0]}, whose log is EMPTY, was not replaced"
        case ConditionKind.RECORDS_KEPT:
            hosts = names[0] if names else ""
            again = ", which started again," if condition.doubtful else ""
            return f"{hosts}{again} lost no unflushed records"


_WITHOUT_BROKERS = {
    ConditionKind.SAME_REPLICAS: "the replicas were always the same",
    ConditionKind.NO_COMPACTION_HOLES: "compaction left no holes",
    ConditionKind.NOT_MADE_AGAIN: "no topic of this name was deleted and made again before the metadata log begins",
}


def _files_text(brokers: tuple[int, ...]) -> str:
    """The value in the file of a broker is known from its own answer only."""
    if len(brokers) == 1:
        return f"the file of broker {brokers[0]} sets no lower min.insync.replicas (not asked)"
    return f"the files of brokers {both(brokers)} set no lower min.insync.replicas (not asked)"


def _names(condition: Condition) -> Iterator[str]:
    count, few = len(condition.brokers), condition.tolerated
    if not count:
        return
    if few and few + 1 >= count:
        yield f"one of {both(condition.brokers)}" if count > 1 else f"broker {condition.brokers[0]}"
    elif few:
        yield f"all but {few} of {both(condition.brokers)}"
    else:
        yield f"{'broker' if count == 1 else 'brokers'} {both(condition.brokers)}"


def decider_text(decider: Decider) -> str:
    """What would decide an open verdict, or check a condition, such as ``the disk of broker 3``."""
    match decider.kind:
        case DeciderKind.BROKER_ANSWER:
            return _of_brokers("answer", decider)
        case DeciderKind.BROKER_DISK:
            return _of_brokers("disk", decider)
        case DeciderKind.METADATA_LOG:
            return "the metadata log"
        case DeciderKind.MIN_ISR:
            return "the topic's min.insync.replicas"
        case DeciderKind.LINEAGE:
            return f"permission to read {_of_brokers('log', decider)}"
        case DeciderKind.END_OF_WRITES:
            its = "its" if len(decider.brokers) == 1 else "their"
            return f"stopping broker {both(decider.brokers)} or mending {its} network"


def _of_brokers(what: str, decider: Decider) -> str:
    if decider.every and len(decider.brokers) > 1:
        return f"the {what}s of brokers {both(decider.brokers)}"
    return f"the {what} of broker {either(decider.brokers)}"
