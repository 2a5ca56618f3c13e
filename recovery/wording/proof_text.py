"""The proof of a verdict, step by step, so that somebody who knows Kafka's source can check it.

Each step is a sentence with the offsets, epochs and times that it rests on, and the beliefs about Kafka behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from recovery.acknowledged.beliefs import Belief
from recovery.acknowledged.broker_restarts import LastStop
from recovery.acknowledged.in_sync_history import InSyncHistory
from recovery.acknowledged.lacking_spans import lacking
from recovery.acknowledged.partition_facts import PartitionFacts, has_epochs
from recovery.acknowledged.verdict import Evidence, EvidenceKind, PartitionVerdicts, Verdict
from recovery.controller.registration import LeaderRecoveryState
from recovery.model import EpochSpan, Lineage, Replica, ReplicaLog, Survey, TopicPartition, Unknown
from recovery.wording.quantity_text import both, counted, ids, offset, time_text
from recovery.wording.replica_text import disk_text, min_isr_on_brokers
from recovery.wording.verdict_text import condition_text, decider_text, loss_text, short_verdict

MOST_CHANGES = 12
"""Changes of the partition that are listed; the older ones are counted."""
MOST_EPOCHS = 6


class ProofStep(NamedTuple):
    """One sentence, and what it believes of Kafka."""

    text: str
    beliefs: tuple[Belief, ...] = ()


class PartitionProofs(NamedTuple):
    """``known`` are the steps that are the same for all choices; ``choices`` has those of each broker's election,
    with its verdict.
    """

    known: tuple[ProofStep, ...]
    choices: tuple[tuple[int, Verdict, tuple[ProofStep, ...]], ...]

    @property
    def beliefs(self) -> tuple[Belief, ...]:
        """What the steps believe, each once, in the order of the steps."""
        steps = (*self.known, *(step for _, _, steps in self.choices for step in steps))
        return tuple(dict.fromkeys(belief for step in steps for belief in step.beliefs))


def partition_proofs(tp: TopicPartition, judged: PartitionVerdicts) -> PartitionProofs | None:
    """The proofs of the verdicts on ``tp``; None where nothing was judged: no log is known with its epochs."""
    facts = judged.facts
    if facts is None or not judged.candidates:
        return None
    choices = (
        (broker, verdict, tuple(_choice_steps(facts, broker, verdict)))
        for broker, verdict in judged.candidates.items()
    )
    return PartitionProofs(tuple(_known_steps(facts, tp)), tuple(choices))


def explained_lines(survey: Survey, judged: PartitionVerdicts | None) -> Iterator[str]:
    """The proofs of the verdicts on a partition as text, or why there are none."""
    proofs = None if judged is None else partition_proofs(survey.tp, judged)
    if proofs is not None:
        yield from proof_lines(survey.tp, proofs)
    elif survey.state.offline:
        yield f"{survey.tp}: no verdict: no replica told where its log ends in which epoch"
    else:
        yield f"{survey.tp}: no verdict: broker {survey.state.leader} leads, so nobody has to be elected"


def proof_lines(tp: TopicPartition, proofs: PartitionProofs) -> Iterator[str]:
    """The steps, numbered, and the beliefs at the end, each with the place in Kafka's source."""
    numbers = {belief: number for number, belief in enumerate(proofs.beliefs, 1)}
    yield f"{tp}: what is known"
    yield from _numbered(proofs.known, 1, numbers)
    for broker, verdict, steps in proofs.choices:
        yield f"{tp}, electing broker {broker}: {short_verdict(verdict)}"
        yield from _numbered(steps, len(proofs.known) + 1, numbers)
    if numbers:
        yield "What these steps believe of Kafka (docs/proof.md has the tests):"
    for belief, number in numbers.items():
        source = belief.details.sources[-1]
        yield f" [{number}] {belief.sentence} {source.owner}.{source.name}"


def _numbered(steps: Sequence[ProofStep], first: int, numbers: Mapping[Belief, int]) -> Iterator[str]:
    for number, step in enumerate(steps, first):
        marks = "".join(f"[{numbers[belief]}]" for belief in step.beliefs)
        yield f"{number:>3}. {step.text}{f' {marks}' if marks else ''}"


def proofs_json(proofs: PartitionProofs) -> dict[str, object]:
    """The member "proofs" of docs/output.md: each step with the names of its beliefs."""

    def steps_json(steps: Sequence[ProofStep]) -> list[dict[str, object]]:
        return [{"text": step.text, "believes": [belief.name for belief in step.beliefs]} for step in steps]

    return {
        "known": steps_json(proofs.known),
        "choices": [{"broker": broker, "steps": steps_json(steps)} for broker, _, steps in proofs.choices],
        "beliefs": [
            {
                "name": belief.name,
                "sentence": belief.sentence,
                "sources": [f"{source.owner}.{source.name}" for source in belief.details.sources],
                "tests": belief.details.tests,
            }
            for belief in proofs.beliefs
        ],
    }


def _known_steps(facts: PartitionFacts, tp: TopicPartition) -> Iterator[ProofStep]:
    state = facts.survey.state
    elr = "off" if state.elr is None else ids(state.elr)
    min_isr = facts.survey.min_isr
    unknown = isinstance(min_isr, Unknown)
    least = f"not known ({min_isr})" if unknown else min_isr_on_brokers(facts.survey)
    yield ProofStep(
        f"{tp} (topic id {state.topic_id}) has no leader, leader epoch {state.leader_epoch}: replicas"
        f" {ids(state.replicas)}, ISR {ids(state.isr)}, ELR {elr}, min ISR now {least}."
    )
    yield from map(_log_step, facts.survey.replicas)
    if isinstance(facts.in_sync, Unknown):
        yield ProofStep(
            f"The metadata log was not used ({facts.in_sync}): who was in the ISR at what time, which min ISR was"
            " in force and whether a leader was elected uncleanly is not known."
        )
    else:
        yield from _history_steps(facts.in_sync)


def _choice_steps(facts: PartitionFacts, broker: int, verdict: Verdict) -> Iterator[ProofStep]:
    yield from _lacking_steps(facts, broker)
    if not isinstance(facts.in_sync, Unknown):
        yield from _membership_steps(facts.in_sync, broker)
    yield from map(evidence_step, verdict.evidence)
    for condition in verdict.conditions:
        known = "There are signs against this" if condition.doubtful else "This was not checked"
        yield ProofStep(f"{known}: {condition_text(condition)}.")
    deciders = " or ".join(dict.fromkeys(map(decider_text, verdict.decided_by)))
    decides = f" What would decide more: {deciders}." if deciders else ""
    yield ProofStep(f"So broker {broker} {loss_text(verdict)}.{decides}")


def _log_step(replica: Replica) -> ProofStep:
    log = replica.log
    if isinstance(log, Unknown):
        return ProofStep(f"Broker {replica.broker}: its log is not known ({log}).")
    where = (
        "as its broker answered"
        if replica.disk_read_ms is None
        else f"from {disk_text(replica.disk_read_ms)}"
    )
    text = (
        f"Broker {replica.broker}: offsets {offset(log.log_start_offset)} to {offset(log.log_end_offset)}, high"
        f" watermark {offset(log.high_watermark)}, {_epochs(log)}, {where}{_own_view(log)}."
    )
    return ProofStep(text)


def _own_view(log: ReplicaLog) -> str:
    """Where the broker was asked whether it leads: it knew an older leader epoch than the controllers."""
    if log.leads is None:
        return ""
    view = "leads" if log.leads else "does not lead"
    return f"; its broker knows leader epoch {log.leader_epoch}, and {view} in it"


def _epochs(log: ReplicaLog) -> str:
    if not isinstance(log.lineage, Lineage):
        return f"epochs not known ({log.lineage})"
    spans = log.lineage.spans
    if not spans:
        return "no record"
    older = f"{counted(len(spans) - MOST_EPOCHS, 'older epoch')}, " if len(spans) > MOST_EPOCHS else ""
    return older + ", ".join(map(_span, spans[-MOST_EPOCHS:]))


def _span(span: EpochSpan) -> str:
    return f"epoch {span.epoch} from {span.start:,} to {span.end:,}"


def _lacking_steps(facts: PartitionFacts, broker: int) -> Iterator[ProofStep]:
    mine = facts.survey.log(broker)
    if mine is None or not has_epochs(mine):
        return
    for other, log in facts.known_logs().items():
        if other == broker:
            continue
        found = lacking(facts.survey, mine, log)
        if not found.spans:
            yield ProofStep(
                f"Broker {broker} lacks nothing that broker {other} holds{_before_start(found.expired)}.",
                (Belief.SAME_EPOCH_AND_OFFSET, *((Belief.LOG_STARTS_ONLY_RISE,) if found.expired else ())),
            )
            continue
        spans = both(tuple(map(_span, found.spans)))
        committed = both(tuple(map(_span, found.committed))) if found.committed else "none of it"
        yield ProofStep(
            f"Broker {broker} lacks of broker {other}: {spans}; below the high watermark of broker {other}, so"
            f" committed: {committed}{_before_start(found.expired)}.",
            (Belief.SAME_EPOCH_AND_OFFSET, Belief.HIGH_WATERMARK_WAS_COMMITTED),
        )


def _before_start(expired: int) -> str:
    if not expired:
        return ""
    return f" ({counted(expired, 'older offset')} before its log start not counted: they were deleted)"


def _history_steps(history: InSyncHistory) -> Iterator[ProofStep]:
    first = history.intervals[history.start]
    begins = f"The proof begins at offset {first.offset:,} of the metadata log ({time_text(first.since_ms)})"
    if history.start:
        yield ProofStep(
            f"{begins}: all present replicas were in the ISR then, so an acknowledged record of before was on all"
            " of their logs or on none.",
            (Belief.WHO_JOINS_THE_ISR, Belief.SAME_EPOCH_AND_OFFSET),
        )
    elif history.known_from_start:
        yield ProofStep(f"{begins}: the partition was created.")
    else:
        yield ProofStep(
            f"The proof begins with {history.begins} ({time_text(first.since_ms)}): elections of before are not"
            " known."
        )
    if history.ends:
        yield ProofStep(f"The metadata log is evidence up to there only: {history.ends}.")
    shown = range(max(history.start, len(history.intervals) - MOST_CHANGES), len(history.intervals))
    if shown.start > history.start:
        yield ProofStep(
            f"{counted(shown.start - history.start, 'change')} of the partition before the next step."
        )
    for index in shown:
        yield _interval_step(history, index)
    for election in history.doubts:
        lacked = (
            "it is not proved that it held every acknowledged record"
            if election.unclean
            else f"it held every acknowledged record unless it lost unflushed ones when it started again"
            f" ({counted(len(election.restarts), 'restart')})"
        )
        yield ProofStep(
            f"{time_text(election.since_ms)}: broker {election.leader} was elected in epoch {election.epoch};"
            f" {lacked}.",
            (Belief.CLEAN_LEADERS,),
        )


def _interval_step(history: InSyncHistory, index: int) -> ProofStep:
    interval = history.intervals[index]
    now = interval.registration
    recovering = ", RECOVERING" if now.leader_recovery_state is LeaderRecoveryState.RECOVERING else ""
    led = f"led by {now.leader}" if now.has_leader else "no leader"
    text = (
        f"{time_text(interval.since_ms)} (offset {interval.offset:,}): epoch {now.leader_epoch}, {led}{recovering},"
        f" ISR {ids(now.isr)} of {ids(now.replicas)}"
    )
    if not now.has_leader:
        return ProofStep(
            f"{text}: nothing is acknowledged, but by a leader that has not heard of it.",
            (Belief.FENCED_LEADER_GOES_ON,),
        )
    least = history.lowest_min_isr(index)
    answer = "acks=all could be confirmed" if history.acknowledges(index) else "acks=all was refused"
    return ProofStep(
        f"{text}, min ISR {least}: {answer}.",
        (Belief.ACKS_ALL_NEEDS_THE_ISR, Belief.ISR_IS_IN_THE_METADATA_LOG, Belief.MIN_ISR_OF_THE_LEADER),
    )


def _membership_steps(history: InSyncHistory, broker: int) -> Iterator[ProofStep]:
    last = history.last_in_sync(broker, history.newest)
    if last is None:
        yield ProofStep(f"Broker {broker} was never in the ISR, as far as the log shows.")
        return
    if last == history.newest:
        left = f"Broker {broker} is in the ISR"
    else:
        left = f"Broker {broker} left the ISR at {time_text(history.intervals[last + 1].since_ms)}"
    since = history.min_isr_reached_without(broker)
    if since is not None:
        yield ProofStep(f"{left}; from {time_text(since)} on acks=all could be confirmed without it.")
        return
    yield ProofStep(
        f"{left}; no leader could confirm acks=all without it since.", (Belief.ACKS_ALL_NEEDS_THE_ISR,)
    )
    whole = history.whole(broker)
    if whole is None:
        yield ProofStep(
            f"It is not proved that broker {broker} kept its log since: it may have followed a leader that lacked"
            " records, or its replica or log dir was replaced."
        )
        return
    for restart in whole.restarts:
        how = _STOPS[restart.stop]
        yield ProofStep(
            f"Broker {broker} started again at {time_text(restart.time_ms)} ({how}).",
            (Belief.RESTART_IS_REGISTERED, Belief.CLEAN_STOP_WRITES_THE_LOGS),
        )


_STOPS = {
    LastStop.CLEAN: "after a clean stop: the controller kept it in the ELR",
    LastStop.SHUT_DOWN: "after a controlled shutdown",
    LastStop.UNTOLD: "nothing tells how it stopped",
    LastStop.UNCLEAN: "no controlled shutdown is recorded, as a clean stop would be",
}
_SENTENCES = {
    EvidenceKind.HIGH_WATERMARK: (
        "Broker {brokers} knew a high watermark of {offset}: what lies below was committed."
    ),
    EvidenceKind.EVERY_REPLICA_ANSWERED: "The logs of all replicas are known: no other log can hold more.",
    EvidenceKind.IN_SYNC_NOW: "Broker {brokers} is in the ISR or ELR, and so holds every committed record.",
    EvidenceKind.FEW_SILENT: (
        "Fewer replicas than min ISR are silent, so each acknowledged record is on a log of {brokers}, and the"
        " best of these logs has them all."
    ),
    EvidenceKind.NEVER_MIN_ISR_WITHOUT: (
        "So broker {brokers} holds every record that was acknowledged with acks=all."
    ),
    EvidenceKind.MIN_ISR_WITHOUT: (
        "Records may have been acknowledged since {since} that broker {brokers} lacks."
    ),
    EvidenceKind.UNCLEAN_ELECTION: (
        "An election at {since} was in doubt: records of before may be on replicas that did not follow its leader."
    ),
    EvidenceKind.RECORDS_LOST: (
        "Broker {brokers} was in the ISR when offset {offset} was committed, and lacks records below it: it lost"
        " them."
    ),
    EvidenceKind.STILL_WRITING: (
        "Broker {brokers} may still take writes and confirm them, after the election too: it is behind the"
        " controllers, and leads, or may follow who leads, in an older epoch."
    ),
    EvidenceKind.DISK_REPLACED: (
        "Broker {brokers} was in the ISR, registered again without the log dir that held this replica, and has an"
        " empty log: what it held is on the old disk."
    ),
    EvidenceKind.LED_ALONE: (
        "From {since} to {until} the ISR was broker {brokers} alone: what was acknowledged then ({acks}) is on no"
        " other log."
    ),
}
_BELIEFS = {
    EvidenceKind.HIGH_WATERMARK: (Belief.HIGH_WATERMARK_WAS_COMMITTED,),
    EvidenceKind.IN_SYNC_NOW: (Belief.CLEAN_LEADERS, Belief.WHO_JOINS_THE_ISR),
    EvidenceKind.FEW_SILENT: (Belief.ACKS_ALL_NEEDS_THE_ISR, Belief.SAME_EPOCH_AND_OFFSET),
    EvidenceKind.NEVER_MIN_ISR_WITHOUT: (Belief.ACKS_ALL_NEEDS_THE_ISR,),
    EvidenceKind.UNCLEAN_ELECTION: (Belief.CLEAN_LEADERS,),
    EvidenceKind.RECORDS_LOST: (Belief.ISR_IS_IN_THE_METADATA_LOG, Belief.HIGH_WATERMARK_WAS_COMMITTED),
    EvidenceKind.DISK_REPLACED: (Belief.ISR_IS_IN_THE_METADATA_LOG,),
    EvidenceKind.STILL_WRITING: (Belief.FENCED_LEADER_GOES_ON,),
    EvidenceKind.LED_ALONE: (Belief.ISR_IS_IN_THE_METADATA_LOG,),
}


def evidence_step(evidence: Evidence) -> ProofStep:
    """What one piece of evidence says."""
    text = _SENTENCES[evidence.kind].format(
        brokers=both(evidence.brokers) if evidence.brokers else "the replicas",
        offset=offset(evidence.offset),
        since="an unknown time" if evidence.since_ms is None else time_text(evidence.since_ms),
        until="now" if evidence.until_ms is None else time_text(evidence.until_ms),
        acks="acks=1, and acks=all: the ISR reached min ISR" if evidence.acks_all else "acks=1",
    )
    return ProofStep(text, _BELIEFS.get(evidence.kind, ()))
