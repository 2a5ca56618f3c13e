"""What a choice loses, in the words of the command line and as short as a column wants it."""

from __future__ import annotations

from recovery.loss import Branch, Loss, branches
from recovery.model import Lineage, ReplicaLog, Standing, Unknown
from widgets.text import Tone

STANDING_WORDS = {
    Standing.ELECTABLE: "electable",
    Standing.FENCED: "fenced",
    Standing.OFFLINE_REPLICA: "replica offline",
    Standing.UNREGISTERED: "not registered",
}


def short_loss(loss: Loss, last_epoch: int | None) -> str:
    """A loss in few words; ``last_epoch`` is that of the chosen log. "max ?": no upper bound is known."""
    if loss.at_most is None:
        text = f"{loss.at_least:,} or more" if loss.at_least else "unknown"
    elif loss.at_most == 0:
        return "nothing"
    elif loss.at_least == loss.at_most:
        text = f"{loss.at_least:,}"
    else:
        text = f"{loss.at_least:,} to {loss.at_most:,}"
    if last_epoch is None:
        return text
    kinds = branches(loss, last_epoch)
    if kinds.get(Branch.NEWER):
        return f"{text}, NEWER"
    if kinds.get(Branch.STALE) and not kinds.get(Branch.FURTHER):
        return f"{text}, stale"
    return text


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
