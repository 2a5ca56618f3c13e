"""Proofs that one known log holds every acknowledged record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from recovery.acknowledged.partition_facts import PartitionFacts
from recovery.acknowledged.verdict import Condition, ConditionKind, Evidence, EvidenceKind
from recovery.model import Lineage, ReplicaLog, Unknown


class EarlierBranch(NamedTuple):
    """Records of epochs below ``epoch`` may be on replicas that did not follow the leader of that epoch.

    ``silent`` are such replicas whose logs are not known. With a ``condition`` there are no such records if it
    holds; without one there may be.
    """

    epoch: int
    silent: tuple[int, ...]
    condition: Condition | None
    evidence: Evidence


class CompleteLog(NamedTuple):
    """``broker``'s log holds every acknowledged record, if ``conditions`` hold.

    ``earlier`` are the branches of before elections whose leader may have lacked records.
    ``ranks``: then every log that ranks as high by (epoch of the last record, log end) holds them too. It needs
    that each leader was elected with all acknowledged records.
    """

    broker: int
    evidence: tuple[Evidence, ...]
    conditions: tuple[Condition, ...]
    earlier: tuple[EarlierBranch, ...] = ()
    ranks: bool = True


UNCHECKED_HISTORY = (
    Condition(ConditionKind.MIN_ISR_NEVER_LOWER),
    Condition(ConditionKind.NO_UNCLEAN_ELECTION),
    Condition(ConditionKind.SAME_REPLICAS),
)
"""Facts that only the metadata log contains."""


def key(log: ReplicaLog) -> tuple[int, int]:
    """(epoch of the last record, log end offset)."""
    assert isinstance(log.lineage, Lineage)
    return log.lineage.last_epoch, log.log_end_offset


def proofs_without_history(facts: PartitionFacts, logs: Mapping[int, ReplicaLog]) -> list[CompleteLog]:
    """Proofs from the present state and the known logs.

    There are none if the topic elects uncleanly by itself or a reassignment is in progress: then it is likely that
    a leader lacked records when it was elected, or that the replicas changed.
    """
    if facts.unclean_elections is True or facts.survey.reassigning is True:
        return []
    found = list(_in_sync_now(facts, logs))
    few_silent = _few_silent(facts, logs)
    if few_silent is not None:
        found.append(few_silent)
    return found


def _in_sync_now(facts: PartitionFacts, logs: Mapping[int, ReplicaLog]) -> list[CompleteLog]:
    """A member of ISR or ELR holds every committed record (KIP-966, "ELR invariants") unless it lost records."""
    state = facts.survey.state
    return [
        CompleteLog(
            broker,
            (Evidence(EvidenceKind.IN_SYNC_NOW, (broker,)),),
            (*UNCHECKED_HISTORY, Condition(ConditionKind.RECORDS_KEPT, (broker,))),
        )
        for broker in (*state.isr, *(state.elr or ()))
        if broker in logs
    ]


def _few_silent(facts: PartitionFacts, logs: Mapping[int, ReplicaLog]) -> CompleteLog | None:
    """Overlap: an acknowledged record was on min ISR replicas, so also on a replica whose log is known.

    An emptied log proves nothing, and counts as silent.
    """
    min_isr = facts.survey.min_isr
    witnesses = tuple(broker for broker in logs if not emptied(logs, broker))
    others = len(facts.survey.replicas) - len(witnesses)
    if isinstance(min_isr, Unknown) or not witnesses or others >= min_isr:
        return None
    best = max(witnesses, key=lambda broker: key(logs[broker]))
    state = facts.survey.state
    # With the ELR on, ISR and ELR drop below min ISR only when a member registers after an unclean shutdown.
    unclean = state.elr is not None and len({*state.isr, *state.elr}) < min_isr
    condition = Condition(
        ConditionKind.RECORDS_KEPT, witnesses, tolerated=min_isr - others - 1, doubtful=unclean
    )
    evidence = Evidence(EvidenceKind.FEW_SILENT, witnesses)
    return CompleteLog(best, (evidence,), (*UNCHECKED_HISTORY, condition))


def emptied(logs: Mapping[int, ReplicaLog], broker: int) -> bool:
    """Whether the log is empty although others are not: its disk may have been replaced."""
    log = logs[broker]
    empty = log.log_start_offset >= log.log_end_offset
    return empty and any(other.log_end_offset > log.log_end_offset for other in logs.values())
