"""The loss of a choice, in words."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from recovery.loss import Branch, Loss, branches
from recovery.model import NO_EPOCH, EpochSpan
from recovery.wording.quantity_text import simulated_time


def range_text(at_least: int, at_most: int | None) -> str:
    """A range of offsets in words; None is unknown, never none."""
    if at_most is None:
        return f"{at_least:,} or more, no upper limit known" if at_least else "unknown"
    if at_most == 0:
        return "nothing"
    return f"{at_least:,}" if at_least == at_most else f"{at_least:,} to {at_most:,}"


def loss_text(loss: Loss) -> str:
    """How many offsets, in words."""
    return range_text(loss.at_least, loss.at_most)


def harm_text(loss: Loss, last_epoch: int | None) -> str:
    """What a choice destroys, and whether that is a divergent tail or newer than all that the chosen log has.

    ``last_epoch`` is that of the chosen log, None where it is not known. The smaller number is not the smaller
    harm: a divergent tail may be long, and what is newer was acknowledged later.
    """
    number = "an unknown number" if loss.unknown else loss_text(loss)
    text = number + _compacted_text(loss)
    if last_epoch is None:
        return text
    kinds = branches(loss, last_epoch)
    if newer := kinds.get(Branch.NEWER):
        return f"{text} ({newer:,} NEWER than anything it has)"
    if kinds.get(Branch.STALE) and not kinds.get(Branch.FURTHER):
        return f"{text} (divergent tail of {_epochs(loss)})"
    return text


def brief_range(at_least: int, at_most: int | None) -> str:
    """As :func:`range_text`; that no upper limit is known is in ``or more``."""
    return f"{at_least:,} or more" if at_most is None and at_least else range_text(at_least, at_most)


def brief_harm(loss: Loss, last_epoch: int | None) -> str:
    """As :func:`harm_text`, in the few words of a warning that is read before anything is sent."""
    text = "an unknown number" if loss.unknown else brief_range(loss.at_least, loss.at_most)
    if loss.compacted is None or loss.compacted:
        text += ", and what compaction removed from its log"
    kinds = {} if last_epoch is None else branches(loss, last_epoch)
    if kinds.get(Branch.NEWER):
        return f"{text}, NEWER than all it has"
    if kinds.get(Branch.STALE) and not kinds.get(Branch.FURTHER):
        return f"{text}, of an older leader"
    return text


def _compacted_text(loss: Loss) -> str:
    """What compaction may have removed from the chosen log alone."""
    if loss.compacted is None:
        return " (compacted: whether its log lacks records that others hold is not known)"
    if loss.compacted:
        return f" (up to {loss.compacted:,} compacted away in its log)"
    return ""


def short_loss(loss: Loss, last_epoch: int | None) -> str:
    """As :func:`harm_text`, for a column; "old" is a divergent tail of earlier epochs."""
    unlimited = loss.at_most is None and loss.at_least > 0
    text = f"{loss.at_least:,} or more" if unlimited else loss_text(loss)
    if loss.none or last_epoch is None:
        return text
    kinds = branches(loss, last_epoch)
    if kinds.get(Branch.NEWER):
        return f"{text}, NEWER"
    if kinds.get(Branch.STALE) and not kinds.get(Branch.FURTHER):
        return f"{text}, old"
    return text


def _epochs(loss: Loss) -> str:
    """The epochs in which the lost tail was written."""
    epochs = sorted({span.epoch for span in loss.tail if span.epoch != NO_EPOCH})
    return f"epoch{'s' * (len(epochs) > 1)} {', '.join(map(str, epochs))}"


def lost_ranges(loss: Loss) -> str:
    """Which offsets, with the times of the first and the last where they are known."""
    parts = [*_span_texts("", loss.tail), *_span_texts("head ", loss.head)]
    if loss.compacted is None:
        parts.append("records compacted away in its log alone: not known")
    elif loss.compacted:
        parts.append(f"up to {loss.compacted:,} records compacted away in its log alone")
    if loss.unanswered:
        parts.append(f"unknown on {', '.join(map(str, loss.unanswered))}")
    if loss.first_ms is not None and loss.last_ms is not None:
        first, last = _moment(loss.first_ms), _moment(loss.last_ms)
        parts.append(f"at {first}" if first == last else f"from {first} to {last}")
    return "; ".join(parts)


def _span_texts(what: str, spans: Sequence[EpochSpan]) -> list[str]:
    return [
        what
        + (f"{start}-{end - 1}" if end - start > 1 else str(start))
        + (f" of epoch {epoch}" * (epoch >= 0))
        for epoch, start, end in spans
    ]


def _moment(ms: int) -> str:
    if simulated := simulated_time(ms):
        return simulated
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return f"{ms} ms"
