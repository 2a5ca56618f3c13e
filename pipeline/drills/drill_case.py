"""One case of a drill, and its results."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from traceback import extract_tb
from typing import NamedTuple


class DrillCase(NamedTuple):
    """One incident: the scenario or kind of incident, the recovery method, min ISR (None: as the scenario
    sets it), the seed.
    """

    scenario: str
    arm: str
    min_isr: int | None
    seed: int

    @property
    def replay(self) -> str:
        """The command that runs this case again."""
        min_isr = "" if self.min_isr is None else f" --min-isr {self.min_isr}"
        return (
            f"ktriage pipeline drill --scenario {quote(self.scenario)} --arm {self.arm}{min_isr}"
            f" --seed {self.seed} --seeds 1 --out replay"
        )


class DrillRow(NamedTuple):
    """The results of a case. Offsets: ``lost_acknowledged`` with acks=all, ``lost_other`` anything else that
    was written and is not in the leader's log. ``rescuable``: those of both kinds that a replica which answered had
    when the operator elected another one, so that ``ktriage rescue`` reads them first; ``lost_for_good``: the rest.
    ``unavailable_s``: partition-seconds of virtual time without a
    leader. ``offline``: partitions without a leader when the operator started; ``decisions``: those for which
    a person had to choose, each look counted; ``waits``: those for which the strategy said to wait.
    ``offline_after``: partitions offline at the end. ``error``: the case could not be run; its numbers mean
    nothing.
    """

    scenario: str
    arm: str
    min_isr: int
    seed: int
    lost_acknowledged: int
    lost_other: int
    rescuable: int
    lost_for_good: int
    unavailable_s: float
    offline: int
    decisions: int
    waits: int
    offline_after: int
    broken: int
    steps: int
    error: str
    replay: str

    @classmethod
    def failed(cls, case: DrillCase, error: Exception) -> DrillRow:
        """The row of a case that could not be run."""
        at = extract_tb(error.__traceback__)[-1]
        message = (
            f"{type(error).__name__}: {error}".splitlines()[0] + f" ({Path(at.filename).name}:{at.lineno})"
        )
        return cls(*case_key(case), 0, 0, 0, 0, 0.0, 0, 0, 0, 0, 0, 0, message, case.replay)


def case_key(case: DrillCase) -> tuple[str, str, int, int]:
    """The first columns of the case's row."""
    return case.scenario, case.arm, -1 if case.min_isr is None else case.min_isr, case.seed
