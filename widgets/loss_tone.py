"""What a choice loses, in the words of the command line and as short as a column wants it."""

from __future__ import annotations

from recovery.acknowledged.verdict import Verdict, VerdictValue
from recovery.loss import Branch, Loss, branches
from recovery.model import Lineage, ReplicaLog, Unknown
from widgets.text import Tone


def loss_tone(loss: Loss, last_epoch: int | None) -> Tone:
    """Good: nothing is lost for certain. Bad: newer records than any that are kept, or nobody knows how many."""
    if loss.none:
        return Tone.GOOD
    newer = last_epoch is not None and bool(branches(loss, last_epoch).get(Branch.NEWER))
    return Tone.BAD if newer or loss.at_most is None else Tone.WARN


def loss_order(loss: Loss | None) -> tuple[int, int, int]:
    """Sorts losses: none first, unbounded last; what is not known to be a loss before all."""
    if loss is None:
        return (-1, 0, 0)
    return (0 if loss.none else 1 if loss.at_most is not None else 2, loss.at_most or 0, loss.at_least)


def last_epoch(log: ReplicaLog | Unknown | None) -> int | None:
    """The epoch of the log's last record; None where it is not known."""
    if not isinstance(log, ReplicaLog) or not isinstance(log.lineage, Lineage):
        return None
    return log.lineage.last_epoch


def verdict_tone(verdict: Verdict | None) -> Tone:
    """Good: it is proved that no acknowledged record is lost. Bad: some are, or there is no bound."""
    if verdict is None:
        return Tone.DIM
    if verdict.value is VerdictValue.OPEN and verdict.at_most is not None:
        return Tone.WARN
    return VALUE_TONES[verdict.value]


VALUE_TONES = {
    VerdictValue.NONE: Tone.GOOD,
    VerdictValue.UNCHECKED: Tone.INFO,
    VerdictValue.IN_DOUBT: Tone.WARN,
    VerdictValue.SOME: Tone.BAD,
    VerdictValue.OPEN: Tone.BAD,
}
