"""What tests leave out in ``make test`` because other cases show it too, and do in ``make soak``."""

from __future__ import annotations

import os

SOAK = "KTRIAGE_SOAK"
"""Set while all repetitions are wanted: by ``python -m benchmarks.soak repetitions``, and for ``make mutants``."""


def soaking() -> bool:
    """Whether a test runs for ``make soak``."""
    return bool(os.environ.get(SOAK))


def repetitions(few: int, all_of_them: int) -> int:
    """The number of random cases that a test tries."""
    return all_of_them if soaking() else few
