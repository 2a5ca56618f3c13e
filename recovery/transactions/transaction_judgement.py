"""Whether a transaction that is open in a partition's log is alive, and if it is not, how it ended.

A marker ends a transaction in each of its partitions. An unclean election may cut a marker off; then the records
stay invisible to read_committed consumers, with everything behind them, although the coordinator has finished the
transaction and told its producer so. Nothing in Kafka ends it by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from recovery.model import Unknown
from recovery.transactions.transaction_values import (
    CoordinatedTransaction,
    EndedTransaction,
    OpenTransaction,
    RescuedMarker,
    TransactionState,
)


class TransactionEnding(StrEnum):
    """What became of a transaction."""

    OPEN = "open and alive"
    COMMITTED = "hanging, was committed"
    ABORTED = "hanging, was aborted"
    UNDECIDED = "may hang, outcome unknown"


class EndingEvidence(StrEnum):
    """What an ending rests on, or why it is not known."""

    COORDINATOR_HAS_IT = "the coordinator has it in progress"
    COORDINATOR_ENDS_IT = "the coordinator is writing its markers"
    DECISION_RECORD = "the decision is in the log of __transaction_state"
    RESCUED_MARKER = "its marker is in the rescue"
    LAST_OF_ITS_PRODUCER = "it is the newest transaction that the coordinator knows of this producer"
    ANOTHER_SINCE = "the producer has begun another transaction since"
    DECISIONS_DIFFER = "several transactions of this producer in this partition ended differently"
    COORDINATOR_CUT_OFF = (
        "the coordinator has it in progress, but an unclean election may have cut off the end of its log"
    )
    FORGOTTEN = "no coordinator knows this producer any more"


class TransactionJudgement(NamedTuple):
    """``certain`` False: the outcome is what the evidence suggests, and an operator has to name it."""

    ending: TransactionEnding
    evidence: EndingEvidence
    certain: bool = True

    @property
    def committed(self) -> bool | None:
        """The marker that is missing: True a COMMIT, False an ABORT, None: not known, or none is missing."""
        return {TransactionEnding.COMMITTED: True, TransactionEnding.ABORTED: False}.get(self.ending)

    @property
    def hanging(self) -> bool:
        return self.ending is not TransactionEnding.OPEN


_COMPLETE = {
    TransactionState.COMPLETE_COMMIT: TransactionEnding.COMMITTED,
    TransactionState.COMPLETE_ABORT: TransactionEnding.ABORTED,
}
_PREPARED = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)


def judge_transaction(
    transaction: OpenTransaction,
    coordinated: CoordinatedTransaction | None,
    decisions: Sequence[EndedTransaction] | Unknown,
    rescued: Sequence[RescuedMarker] = (),
    *,
    coordinator_cut_off: bool = False,
) -> TransactionJudgement:
    """``coordinated`` is None where every coordinator was asked and none knows the producer. ``decisions`` are
    those that the log of __transaction_state still holds of this producer, the oldest first. ``rescued`` are
    markers from the branches that were cut off. ``coordinator_cut_off``: an unclean election may have taken the
    newest decisions from the coordinator's log. What it has in progress may have ended then, and the decisions that
    it still has may be those of earlier transactions.
    """
    if coordinated is not None and transaction.tp in coordinated.partitions:
        if coordinated.state in _PREPARED:
            return TransactionJudgement(TransactionEnding.OPEN, EndingEvidence.COORDINATOR_ENDS_IT)
        if coordinated.state is TransactionState.ONGOING:
            return _in_progress(transaction, rescued, coordinator_cut_off=coordinator_cut_off)
    proved = _proved(transaction, () if isinstance(decisions, Unknown) else decisions, rescued)
    if proved is not None:
        return proved
    if coordinated is None:
        return TransactionJudgement(TransactionEnding.UNDECIDED, EndingEvidence.FORGOTTEN, certain=False)
    complete = _COMPLETE.get(coordinated.state)
    if complete is None or coordinated.epoch != transaction.epoch:
        return TransactionJudgement(TransactionEnding.UNDECIDED, EndingEvidence.ANOTHER_SINCE, certain=False)
    return TransactionJudgement(complete, EndingEvidence.LAST_OF_ITS_PRODUCER, certain=False)


def _in_progress(
    transaction: OpenTransaction, rescued: Sequence[RescuedMarker], *, coordinator_cut_off: bool
) -> TransactionJudgement:
    if not coordinator_cut_off:
        return TransactionJudgement(TransactionEnding.OPEN, EndingEvidence.COORDINATOR_HAS_IT)
    return _proved(transaction, (), rescued) or TransactionJudgement(
        TransactionEnding.UNDECIDED, EndingEvidence.COORDINATOR_CUT_OFF, certain=False
    )


def _proved(
    transaction: OpenTransaction, decisions: Sequence[EndedTransaction], rescued: Sequence[RescuedMarker]
) -> TransactionJudgement | None:
    """By the decisions about this partition, and by the markers that were cut off. Several transactions without a
    marker look like one that is open: only where all of it agrees is it certain.

    A transaction that was open where the logs part is ended in the other log by the first marker behind. A
    producer's epoch may rise when its transaction ends (KIP-890, and when a coordinator aborts it), never fall.
    """
    recorded = {
        decision.committed
        for decision in decisions
        if transaction.tp in decision.partitions and decision.epoch >= transaction.epoch
    }
    marked = {
        marker.committed
        for marker in rescued
        if (marker.tp, marker.producer_id) == (transaction.tp, transaction.producer_id)
        and marker.epoch >= transaction.epoch
        and transaction.start_offset < marker.diverged
    }
    outcomes = recorded | marked
    if not outcomes:
        return None
    if len(outcomes) > 1:
        return TransactionJudgement(
            TransactionEnding.UNDECIDED, EndingEvidence.DECISIONS_DIFFER, certain=False
        )
    return TransactionJudgement(
        TransactionEnding.COMMITTED if outcomes == {True} else TransactionEnding.ABORTED,
        EndingEvidence.DECISION_RECORD if recorded else EndingEvidence.RESCUED_MARKER,
    )
