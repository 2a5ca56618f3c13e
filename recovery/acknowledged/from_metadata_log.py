"""Takes one partition's ISR history out of a folded metadata log."""

from __future__ import annotations

from recovery.acknowledged.broker_restarts import broker_restarts, restart_after_copy, shut_down
from recovery.acknowledged.in_sync_history import InSyncHistory
from recovery.acknowledged.min_isr_over_time import BEFORE_THE_LOG, min_isr_over_time
from recovery.controller.registration import Registration
from recovery.metadata_log.history import MetadataHistory
from recovery.metadata_log.log_changes import IN_SNAPSHOT, PartitionSubject
from recovery.model import PartitionState, Survey, Unknown, Why


def in_sync_history(
    history: MetadataHistory, survey: Survey, *, copied: bool = False
) -> InSyncHistory | Unknown:
    """The partition's history, or why it cannot be used: it must end in the state that the survey found, and
    every record of it must have been understood. ``copied``: it may have gone on since, without a change of this
    partition; every broker may have started again then.
    """
    state = survey.state
    counts = history.counts
    if counts.malformed or counts.unknown:
        return Unknown(Why.FAILED, "the metadata log holds records that could not be read")
    subject = PartitionSubject(state.topic_id, state.partition)
    intervals = history.intervals(subject)
    if not intervals or intervals[-1].until_ms is not None:
        return Unknown(Why.NOT_ANSWERED, f"the metadata log does not hold {state.tp}")
    if not _same(intervals[-1].registration, state):
        return Unknown(Why.NOT_ANSWERED, f"the metadata log and the cluster tell {state.tp} differently")
    if isinstance(survey.min_isr, Unknown):
        return survey.min_isr
    first = next(history.of(subject))
    if first.batch == IN_SNAPSHOT:
        intervals = (intervals[0]._replace(offset=BEFORE_THE_LOG), *intervals[1:])
    brokers = sorted({broker for one in intervals for broker in one.registration.replicas})
    unseen = (restart_after_copy(history),) if copied else ()
    return InSyncHistory(
        intervals,
        min_isr_over_time(history, state.topic, brokers, survey.min_isr),
        {broker: (*broker_restarts(history, broker), *unseen) for broker in brokers},
        from_creation=first.batch != IN_SNAPSHOT,
        shut_down=frozenset(broker for broker in brokers if shut_down(history, broker)),
    )


def _same(held: Registration, state: PartitionState) -> bool:
    """Whether the controller's record is what the survey found. An ISR comes in any order."""
    return (held.leader, held.leader_epoch, set(held.replicas), set(held.isr)) == (
        state.leader,
        state.leader_epoch,
        set(state.replicas),
        set(state.isr),
    )
