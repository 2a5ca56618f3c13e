"""The replicas that Kafka elects by itself when their brokers return."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from recovery.acknowledged.complete_logs import key
from recovery.acknowledged.partition_facts import PartitionFacts
from recovery.acknowledged.verdict import AutomaticElection, AutomaticElectionKind, LaterLeader, Verdict
from recovery.model import Lineage, Replica, ReplicaLog, Unknown


def automatic_elections(
    facts: PartitionFacts, verdicts: Mapping[int, Verdict]
) -> tuple[AutomaticElection, ...]:
    """The replicas that cannot be elected now, and that Kafka elects as soon as their brokers are unfenced."""
    if not facts.survey.state.offline:
        return ()
    found = []
    for replica in facts.survey.replicas:
        answered = not isinstance(replica.log, Unknown)
        kind = None if replica.electable and answered else _kind(facts, replica.broker)
        if kind is not None:
            checks = _checks_records(facts, kind, replica.broker)
            failed = replica.broker in facts.failed_disks
            verdict = verdicts.get(replica.broker)
            shut_down, cuts_off = _shut_down(facts, replica), _cuts_off(facts, replica.broker)
            found.append(
                AutomaticElection(
                    replica.broker,
                    kind,
                    checks,
                    failed,
                    verdict,
                    shut_down,
                    cuts_off,
                    _led_after(facts, replica.broker),
                    _keeps_acked(facts, replica.broker),
                    _keeps_all(facts, replica.broker),
                )
            )
    return tuple(found)


def _checks_records(facts: PartitionFacts, kind: AutomaticElectionKind, broker: int) -> bool:
    """A member that returns uncleanly leaves ISR and ELR. Where the topic elects uncleanly by itself, that election
    then takes it all the same; and where no other member is left, the controller elects the last known leader
    (PartitionChangeBuilder.canElectLastKnownLeader).
    """
    state = facts.survey.state
    alone = {*state.isr, *(state.elr or ())} == {broker} and state.last_known_elr == (broker,)
    if facts.unclean_elections is True or alone:
        return False
    return kind is AutomaticElectionKind.ELR_MEMBER or (
        kind is AutomaticElectionKind.ISR_MEMBER and facts.elr_enabled is True
    )


def _cuts_off(facts: PartitionFacts, broker: int) -> tuple[int, ...]:
    """The brokers whose known logs hold records that the leader of an unclean election may have lacked, since which
    ``broker`` was in the ISR: they did not follow that leader, and truncate their logs when ``broker`` leads.
    """
    history = facts.in_sync
    last = None if isinstance(history, Unknown) else history.last_in_sync(broker, history.newest)
    if isinstance(history, Unknown) or last is None:
        return ()
    elections = [one for one in history.doubts if one.unclean and one.at <= last]
    logs = {other: log for other, log in facts.known_logs().items() if other != broker}
    not_empty = {other: log for other, log in logs.items() if log.log_end_offset > log.log_start_offset}
    return tuple(
        other
        for other, log in not_empty.items()
        if any(
            other != election.leader
            and not history.joined_after(other, election.at)
            and key(log)[0] < election.epoch
            and log.log_end_offset > _branch_start(logs.values(), election.epoch)
            for election in elections
        )
    )


def _led_after(facts: PartitionFacts, broker: int) -> tuple[LaterLeader, ...]:
    """Who led since ``broker`` was in the ISR last."""
    history = facts.in_sync
    if isinstance(history, Unknown):
        return ()
    logs = facts.known_logs()
    return tuple(
        LaterLeader(other, other in logs, other in facts.failed_disks)
        for other in history.leaders_without(broker)
    )


def _keeps_acked(facts: PartitionFacts, broker: int) -> bool:
    history = facts.in_sync
    whole = None if isinstance(history, Unknown) else history.whole(broker)
    return whole is not None and not whole.restarts


def _keeps_all(facts: PartitionFacts, broker: int) -> bool:
    """Each known log is a part of its log: since the epoch of that log's last record no other broker led."""
    history = facts.in_sync
    if isinstance(history, Unknown) or not _keeps_acked(facts, broker):
        return False
    logs = [log for other, log in facts.known_logs().items() if other != broker]
    not_empty = [log for log in logs if log.log_end_offset > log.log_start_offset]
    return history.leads_since(broker, min((key(log)[0] for log in not_empty), default=None))


def _branch_start(logs: Iterable[ReplicaLog], epoch: int) -> int:
    """The offset from which on the leader of ``epoch`` and those after it wrote, as the known logs show; 0: none of
    them shows where that was.
    """
    starts = [
        span.start if number or not lineage.floor else 0
        for log in logs
        if isinstance(lineage := log.lineage, Lineage)
        for number, span in enumerate(lineage.spans)
        if span.epoch >= epoch
    ]
    return min(starts, default=0)


def _shut_down(facts: PartitionFacts, replica: Replica) -> bool | None:
    """True where it is known that its logs were written to disk when it stopped. No record proves nothing."""
    history = facts.in_sync
    recorded = not isinstance(history, Unknown) and replica.broker in history.shut_down
    return True if recorded or replica.disk_stopped_cleanly else None


def _kind(facts: PartitionFacts, broker: int) -> AutomaticElectionKind | None:
    """KIP-966, "Leader election", as shipped: the ISR, then the ELR, then the one LastKnownELR member."""
    state = facts.survey.state
    if broker in state.isr:
        return AutomaticElectionKind.ISR_MEMBER
    if broker in (state.elr or ()) and not state.isr:
        return AutomaticElectionKind.ELR_MEMBER
    if not state.isr and not state.elr and state.last_known_elr == (broker,):
        return AutomaticElectionKind.LAST_KNOWN_LEADER
    return AutomaticElectionKind.UNCLEAN_TOPIC if facts.unclean_elections is True else None
