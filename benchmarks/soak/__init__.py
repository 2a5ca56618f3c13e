"""The long random runs: each module here has ``run(asked)``."""

from __future__ import annotations

from typing import NamedTuple


class Asked(NamedTuple):
    """How much of a run is wanted: ``rounds`` seeds from ``first`` on, where the run does not say otherwise itself,
    in ``jobs`` processes at the most. A long run is done in pieces so, and their sums are the whole. After
    ``seconds`` no seed more is begun, where the run looks at it.
    """

    rounds: int | None = None
    first: int | None = None
    jobs: int | None = None
    seconds: int | None = None

    def seeds(self, rounds: int, first: int = 0) -> range:
        """The seeds; ``rounds`` and ``first`` are the run's own."""
        begin = first if self.first is None else self.first
        return range(begin, begin + (rounds if self.rounds is None else self.rounds))
