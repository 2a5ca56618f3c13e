"""Makes Python's cycle collector run rarely."""

from __future__ import annotations

import gc

YOUNG_OBJECTS = 1_000_000
"""New objects before the collector runs. A command keeps nearly all its objects until it ends, and collecting
again and again among the answers for thousands of partitions took a fifth of its time.
"""


def collect_seldom() -> None:
    """For a process that runs one command and ends."""
    gc.set_threshold(YOUNG_OBJECTS, 20, 50)
