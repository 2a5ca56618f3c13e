"""One offset axis for all logs of a partition.

It keeps the order of offsets, and not their distances: a divergence of five records at the end of a log of ten
million must be seen. Each stretch between two offsets that matter is as wide as the logarithm of its length.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import log10
from typing import NamedTuple

LEAST = 3
"""Columns of the shortest stretch."""


class Axis(NamedTuple):
    """``points`` are offsets, ascending; point i stands at column ``columns[i]``. ``skipped``: older points were
    left out for lack of room.
    """

    points: tuple[int, ...]
    columns: tuple[int, ...]
    skipped: bool

    @property
    def width(self) -> int:
        return self.columns[-1] if self.columns else 0

    def column(self, offset: int) -> int:
        """Where ``offset`` stands; between two points, the later its offset the further right."""
        if offset <= self.points[0]:
            return 0
        index = bisect_right(self.points, offset) - 1
        if index >= len(self.points) - 1:
            return self.width
        start, end = self.points[index], self.points[index + 1]
        left, right = self.columns[index], self.columns[index + 1]
        return left + (offset - start) * (right - left) // (end - start)

    def stretches(self) -> Iterable[tuple[int, int, int]]:
        """(first offset, first column, columns) of each stretch, left to right."""
        for index in range(len(self.points) - 1):
            left, right = self.columns[index], self.columns[index + 1]
            yield self.points[index], left, right - left


def make_axis(offsets: Iterable[int], width: int) -> Axis:
    """An axis of ``width`` columns through ``offsets``; where there is no room for all, the newest are kept."""
    points = sorted(set(offsets))
    if len(points) < 2:
        return Axis(tuple(points), tuple(0 for _ in points), skipped=False)
    room = max(width // LEAST, 1)
    skipped = len(points) - 1 > room
    if skipped:
        points = [points[0], *points[len(points) - room :]]
    return Axis(tuple(points), _columns(points, width), skipped)


def _columns(points: Sequence[int], width: int) -> tuple[int, ...]:
    weights = [1 + log10(end - start) for start, end in pairwise(points)]
    spare, total = width - LEAST * len(weights), sum(weights)
    columns, run = [0], 0.0
    for number, weight in enumerate(weights, 1):
        run += weight
        columns.append(LEAST * number + int(spare * run / total + 1e-9))
    return tuple(columns)
