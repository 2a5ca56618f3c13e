"""Partitions whose min ISR is unknown, counted by reason: thousands may share one."""

from __future__ import annotations

from collections.abc import Mapping

from recovery.model import Unknown
from recovery.wording.quantity_text import counted, printable
from widgets.text import Line, Piece, Tone, fold, line

SHOWN = 2


def unknown_min_isr_lines(why: Mapping[Unknown, int], width: int) -> list[Line]:
    """The most frequent reasons why a min ISR is not known, a line each, with how many partitions have it
    (``why``).
    """
    reasons = sorted(why.items(), key=lambda item: -item[1])
    lines: list[Line] = []
    for reason, count in reasons[:SHOWN]:
        text = f"min ISR unknown for {counted(count, 'partition')}: {printable(str(reason))}"
        lines += fold(line(Piece(text, Tone.WARN)), width, "  ")
    left = sum(count for _, count in reasons[SHOWN:])
    if left:
        text = f"min ISR unknown for {counted(left, 'more partition')}, for other reasons"
        lines += fold(line(Piece(text, Tone.WARN)), width, "  ")
    return lines
