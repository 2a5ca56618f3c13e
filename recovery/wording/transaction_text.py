"""Hanging transactions in words."""

from __future__ import annotations

from recovery.model import Unknown
from recovery.transactions.transaction_judgement import (
    EndingEvidence,
    TransactionEnding,
    TransactionJudgement,
)

_WHAT_DECIDES = {
    EndingEvidence.LAST_OF_ITS_PRODUCER: (
        "a transaction of the same producer may have ended since: the log of __transaction_state would decide it"
        " (READ on it)"
    ),
    EndingEvidence.ANOTHER_SINCE: (
        "its application, or a rescue of the branch that was cut off (--rescue DIR), would decide it"
    ),
    EndingEvidence.COORDINATOR_CUT_OFF: (
        "it is alive, or it ended and its producer was told so: its application, or a rescue of the branch that was"
        " cut off (--rescue DIR), would decide it"
    ),
    EndingEvidence.DECISIONS_DIFFER: "its application would decide it",
    EndingEvidence.FORGOTTEN: (
        "its coordinator has lost or dropped it, or this user may not see it: its application would decide it"
    ),
}


def transaction_text(judgement: TransactionJudgement | Unknown) -> str:
    """What became of it and why that is known, or what would decide it."""
    if isinstance(judgement, Unknown):
        return f"not known: {judgement}"
    words = f"{judgement.ending} ({judgement.evidence})"
    decides = _WHAT_DECIDES.get(judgement.evidence)
    return words if decides is None or judgement.ending is TransactionEnding.OPEN else f"{words}; {decides}"
