"""Requests of the contract tests to a backend, with a recorder and a stop flag."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kio.records.readers import read_batch

from backends.base.answers import Depth, Election, RawBatches, SurveyRequest
from backends.base.protocol import Backend
from recovery.model import PartitionState, Survey, Unknown
from recovery.plan.values import PlanRow
from recovery.ranking import Ranking
from recovery.strategy import Strategy, decide
from tests.plan_rows import row_of


class StopFlag:
    """Whether the job shall stop."""

    def __init__(self, stopped: bool = False) -> None:
        self._stopped = stopped

    def __bool__(self) -> bool:
        return self._stopped


class MemoryRecorder:
    """Records in memory what a journal writes to disk. ``full``: it cannot be written."""

    def __init__(self, *, full: bool = False) -> None:
        self.actions: list[str] = []
        self.details: list[Mapping[str, object]] = []
        self.ends: dict[str, Mapping[str, object]] = {}
        self._full = full

    def before(self, action: str, detail: Mapping[str, object]) -> str:
        if self._full:
            raise OSError("no space left on device")
        self.actions.append(action)
        self.details.append(detail)
        return str(len(self.actions))

    def after(self, entry: str, result: Mapping[str, object]) -> None:
        self.ends[entry] = result


async def states(backend: Backend, topic: str) -> tuple[PartitionState, ...]:
    return (await backend.partitions([topic])).states


async def state(backend: Backend, topic: str) -> PartitionState:
    """The topic's only partition."""
    (found,) = await states(backend, topic)
    return found


async def survey(
    backend: Backend, topic: str, depth: Depth = Depth.DIVERGENCE, duration: float = 20.0
) -> Survey:
    """The topic's only partition, surveyed."""
    request = SurveyRequest(await states(backend, topic), duration, depth)
    (found,) = (await backend.survey(request)).surveys
    return found


async def choices(backend: Backend, topic: str, leader: int | None = None) -> list[PlanRow]:
    """The aggressive choice for each of the topic's partitions, or ``leader``, with its preconditions."""
    found = await backend.survey(SurveyRequest(await states(backend, topic), 20.0))
    rows = []
    for surveyed in found.surveys:
        decision = decide(surveyed, Ranking.LAST_RECORD, Strategy.AGGRESSIVE)
        order = decision.order or surveyed.state.replicas
        if leader is not None:
            order = (leader, *(broker for broker in order if broker != leader))
        rows.append(row_of(surveyed, order))
    return rows


async def aggressive_choice(backend: Backend, topic: str, leader: int | None = None) -> PlanRow:
    """The choice for the topic's only partition."""
    (found,) = await choices(backend, topic, leader)
    return found


async def designate(
    backend: Backend,
    rows: Sequence[PlanRow],
    record: MemoryRecorder | None = None,
    *,
    stopped: bool = False,
) -> tuple[Election, ...]:
    return await backend.designate(
        rows, Ranking.LAST_RECORD, record or MemoryRecorder(), attempts=0, stop=StopFlag(stopped)
    )


def offsets_of(found: RawBatches | Unknown) -> list[int]:
    """The offsets of all records, whose batches must be whole."""
    assert isinstance(found, RawBatches), found
    offsets: list[int] = []
    at = 0
    while at < len(found.data):
        batch, size = read_batch(found.data, at)
        offsets += [record.offset for record in batch.records]
        at += size
    return offsets
