"""Numbers with their nouns."""

from __future__ import annotations


def counted_as(number: int, noun: str) -> str:
    """``1 partition``, ``3,000 partitions``."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
