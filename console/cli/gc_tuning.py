"""Python's search for cycles, made rare."""

from __future__ import annotations

import gc

YOUNG_OBJECTS = 1_000_000
"""New objects before Python looks for cycles: a command keeps nearly all that it makes until it ends, and looking
through the answers about thousands of partitions again and again took a fifth of its time."""


def collect_seldom() -> None:
    """For a process that does one thing and ends."""
    gc.set_threshold(YOUNG_OBJECTS, 20, 50)
