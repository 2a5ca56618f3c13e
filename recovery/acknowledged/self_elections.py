"""The replicas that Kafka elects by itself when their brokers return."""

from __future__ import annotations

from collections.abc import Mapping

from recovery.acknowledged.partition_facts import PartitionFacts
from recovery.acknowledged.verdict import SelfElection, SelfElectionKind, Verdict
from recovery.model import Unknown


def self_elections(facts: PartitionFacts, verdicts: Mapping[int, Verdict]) -> tuple[SelfElection, ...]:
    """The replicas that cannot be elected now, and that Kafka elects as soon as their brokers are unfenced."""
    if not facts.survey.state.offline:
        return ()
    found = []
    for replica in facts.survey.replicas:
        answered = not isinstance(replica.log, Unknown)
        kind = None if replica.electable and answered else _kind(facts, replica.broker)
        if kind is not None:
            checks = kind is SelfElectionKind.ELR_MEMBER or (
                kind is SelfElectionKind.ISR_MEMBER and facts.elr_enabled is True
            )
            failed = replica.broker in facts.failed_disks
            verdict = verdicts.get(replica.broker)
            found.append(
                SelfElection(replica.broker, kind, checks, failed, verdict, _shut_down(facts, replica.broker))
            )
    return tuple(found)


def _shut_down(facts: PartitionFacts, broker: int) -> bool | None:
    return None if isinstance(facts.in_sync, Unknown) else broker in facts.in_sync.shut_down


def _kind(facts: PartitionFacts, broker: int) -> SelfElectionKind | None:
    """KIP-966, "Leader election", as shipped: the ISR, then the ELR, then the one LastKnownELR member."""
    state = facts.survey.state
    if broker in state.isr:
        return SelfElectionKind.ISR_MEMBER
    if broker in (state.elr or ()) and not state.isr:
        return SelfElectionKind.ELR_MEMBER
    if not state.isr and not state.elr and state.last_known_elr == (broker,):
        return SelfElectionKind.LAST_KNOWN_LEADER
    return SelfElectionKind.UNCLEAN_TOPIC if facts.unclean_elections is True else None
