"""The long random runs: each module here has ``run(options)``."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class SoakOptions(NamedTuple):
    """The size of a run: ``rounds`` seeds from ``first`` on, in at most ``jobs`` processes (None: the run's own).

    So a long run can be done in parts. After ``seconds`` no further seed starts, and the outcome of each part is
    kept in ``record``, in runs that support it; ``only`` is one kind of histories, of the ground truth.
    """

    rounds: int | None = None
    first: int | None = None
    jobs: int | None = None
    seconds: int | None = None
    record: Path | None = None
    only: str | None = None

    def seeds(self, rounds: int, first: int = 0) -> range:
        """The seeds; ``rounds`` and ``first`` are the run's own."""
        begin = first if self.first is None else self.first
        return range(begin, begin + (rounds if self.rounds is None else self.rounds))
