"""The epoch spans of a log, from its batches and its leader-epoch-checkpoint."""

from __future__ import annotations

from collections.abc import Sequence


def epoch_spans(
    extents: Sequence[tuple[int, int, int]],
    epochs: Sequence[tuple[int, int]] | None,
    start: int,
    end: int,
) -> tuple[tuple[tuple[int, int, int], ...], str | None]:
    """Spans (epoch, first offset, offset after the last) from ``start`` to ``end`` without gaps, and what is wrong
    with the checkpoint ``epochs`` (epoch, first offset), None where nothing is.

    The batches (``extents``) decide which epoch has which offsets. Where compaction has left a hole between two
    epochs, only the checkpoint knows where the newer one began; the broker answers by it.
    """
    clipped = [(epoch, max(first, start), beyond) for epoch, first, beyond in extents if beyond > start]
    if not clipped:
        return (), None
    if epochs is None:
        return _without_holes(
            clipped, start, end
        ), "it has no leader-epoch-checkpoint: its batches tell the epochs"
    reported = _checkpoint_spans(epochs, start, end)
    if all(_holds(reported, extent) for extent in clipped):
        # A replica that copied a compacted log from its first batch on knows no epoch below it.
        (epoch, _, beyond), *later = reported
        return ((epoch, start, beyond), *later), None
    return _without_holes(
        clipped, start, end
    ), "its leader-epoch-checkpoint differs from the epochs of its batches"


def _checkpoint_spans(epochs: Sequence[tuple[int, int]], start: int, end: int) -> list[tuple[int, int, int]]:
    """The checkpoint's spans; an epoch whose leader wrote nothing has none."""
    spans = []
    for number, (epoch, first) in enumerate(epochs):
        beyond = epochs[number + 1][1] if number + 1 < len(epochs) else end
        if max(first, start) < min(beyond, end):
            spans.append((epoch, max(first, start), min(beyond, end)))
    return spans


def _holds(spans: Sequence[tuple[int, int, int]], extent: tuple[int, int, int]) -> bool:
    epoch, first, beyond = extent
    return any(span[0] == epoch and span[1] <= first and beyond <= span[2] for span in spans)


def _without_holes(
    extents: Sequence[tuple[int, int, int]], start: int, end: int
) -> tuple[tuple[int, int, int], ...]:
    """Each epoch reaches up to the next one's first batch, as in a broker that has read its batches anew."""
    firsts = [start, *(first for _, first, _ in extents[1:]), end]
    return tuple((extent[0], firsts[at], firsts[at + 1]) for at, extent in enumerate(extents))
