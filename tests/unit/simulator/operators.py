"""An operator at a simulated cluster, for tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from backends.base.answers import Election, SurveyRequest, SurveyResult
from backends.simulator.adapter import SimulatorBackend
from backends.simulator.scenario.files import read
from recovery.plan.make import plan_row
from recovery.plan.values import PlanRow
from recovery.ranking import Ranking
from recovery.strategy import DecisionKind, Strategy, decide


class Record:
    """Keeps what was recorded, in order."""

    def __init__(self, *, full: bool = False) -> None:
        self.before_: list[tuple[str, Mapping[str, object]]] = []
        self.after_: list[tuple[str, Mapping[str, object]]] = []
        self._full = full

    def before(self, action: str, detail: Mapping[str, object]) -> str:
        if self._full:
            raise OSError("no space left on device")
        self.before_.append((action, detail))
        return f"{action}-{len(self.before_)}"

    def after(self, entry: str, result: Mapping[str, object]) -> None:
        self.after_.append((entry, result))


def backend(name: str, state: Path | None = None, seed: int = 1) -> SimulatorBackend:
    return SimulatorBackend(read(name), seed, state)


async def survey(cluster: SimulatorBackend, duration: float = 30.0) -> SurveyResult:
    """The survey of every offline partition."""
    states = (await cluster.partitions()).states
    return await cluster.survey(SurveyRequest(tuple(s for s in states if s.offline), duration))


def chosen(
    surveyed: SurveyResult,
    strategy: Strategy = Strategy.AGGRESSIVE,
    ranking: Ranking = Ranking.LAST_RECORD,
) -> list[PlanRow]:
    """What the strategy would elect."""
    rows = []
    for one in surveyed.surveys:
        decision = decide(one, ranking, strategy)
        if decision.verdict is DecisionKind.ELECT:
            rows.append(plan_row(one, decision, ranking))
    return rows


async def elect(
    cluster: SimulatorBackend, rows: list[PlanRow], record: Record | None = None
) -> tuple[Election, ...]:
    return await cluster.designate(rows, Ranking.LAST_RECORD, record or Record(), attempts=0, stop=False)
