"""Runs the elections of a plan in batches, and reads the results."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from backends.base.answers import Depth, Election, LikelyEpochs, Outcome, SurveyRequest
from backends.base.errors import BackendError
from backends.base.protocol import Backend, Progress, Recorder
from console.change.election_notes import election_results
from console.journal.planned_elections import results_detail
from console.reading.partition_selection import SETTLE_SECONDS, described
from console.signals import StopRequest
from recovery.model import Survey, TopicPartition
from recovery.plan.election_requests import election_parts
from recovery.plan.values import Plan, PlanRow
from recovery.plan.verify import Leading, RowState, verify
from recovery.ranking import Ranking
from recovery.unread_brokers import UnreadBrokers

SUCCESS = frozenset({Outcome.ELECTED, Outcome.ALREADY_ONLINE})
SETTLING_PAUSES = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 1.0)
"""Seconds between readings of the partitions that were just elected and reverted."""
PARTS_AT_ONCE = 3
"""While the controller works on one part, the rows of the next are judged."""


class Result(NamedTuple):
    """One row of a plan and the result of its election. ``state`` is the row's state read afterwards, None if
    it was not read.
    """

    row: PlanRow
    election: Election
    state: RowState | None

    @property
    def lost_offsets(self) -> bool:
        """The new leader's epoch starts below the planned log end: offsets that the plan keeps were
        overwritten.
        """
        return self.state is not None and isinstance(self.state.gap, int) and self.state.gap > 0

    @property
    def succeeded(self) -> bool:
        return self.election.outcome in SUCCESS and self.election.reverted and not self.lost_offsets

    @property
    def only_order_open(self) -> bool:
        """The election succeeded; the replica order is not reverted, or not for certain."""
        return self.election.outcome in SUCCESS and not self.election.reverted and not self.lost_offsets


class RowFailure(NamedTuple):
    """Why a row is not a success, in one line. ``leads``: it has its leader, and ``resume`` finishes the rest."""

    tp: TopicPartition
    reason: str
    leads: bool = False

    def __str__(self) -> str:
        return f"{'not finished' if self.leads else 'not recovered'}: {self.tp}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Elected:
    """The results of a plan's elections, in the plan's order. ``not_read_back`` says why the state was not read
    afterwards.
    """

    results: tuple[Result, ...]
    not_read_back: str | None = None

    @property
    def counts(self) -> Mapping[Outcome, int]:
        return Counter(result.election.outcome for result in self.results)

    @property
    def failures(self) -> tuple[Result, ...]:
        return tuple(result for result in self.results if not result.succeeded)

    def of_elected(self, unread: UnreadBrokers) -> UnreadBrokers:
        """Of the partitions that were elected."""
        elected = (one.row.tp for one in self.results if one.election.outcome is Outcome.ELECTED)
        return {tp: unread[tp] for tp in elected if tp in unread}

    @property
    def all_stale(self) -> bool:
        """Every row was judged stale right before its election, and none was held."""
        return bool(self.results) and all(r.election.outcome is Outcome.STALE for r in self.results)

    @property
    def unfinished(self) -> bool:
        """Whether ``resume`` has something to do or to wait for: an assignment still has the order that was written
        for its election, or an election may still be carried out.
        """
        return any(not one.election.reverted or one.election.in_doubt for one in self.results)


def row_failure(result: Result) -> RowFailure:
    """Why this row is not a success; of a stale row as the comparison of a plan says it."""
    return RowFailure(result.row.tp, _failure_text(result), result.only_order_open)


def _failure_text(result: Result) -> str:
    election, state = result.election, result.state
    if result.only_order_open:
        was = "was elected" if election.outcome is Outcome.ELECTED else "leads"
        what = election.detail or "the replica order is not reverted"
        return f"broker {election.leader} {was}; {what}; ktriage resume reverts the replica order"
    if election.outcome is Outcome.STALE and election.reverted:
        return f"{election.outcome}: {election.detail}"
    parts = [f"{election.outcome}"]
    if election.leader >= 0:
        parts.append(f"led by {election.leader}")
    if election.detail:
        parts.append(election.detail)
    if result.lost_offsets and state is not None:
        parts.append(f"{state.gap} offsets below the planned log end were overwritten")
    if not election.reverted and not election.detail:
        parts.append("its assignment order is not reverted")
    if not election.reverted or election.in_doubt:
        parts.append("run ktriage resume")
    return "; ".join(parts)


async def execute(
    backend: Backend,
    plan: Plan,
    recorder: Recorder,
    *,
    attempts: int,
    stop: StopRequest,
    progress: Progress | None = None,
    stop_after: int | None = None,
) -> Elected:
    """Elects every row of the plan, then reads back.

    ``stop_after`` failures end it. No batch has more rows than failures are still allowed, so the number is
    never exceeded. Raises BackendError only if nothing was sent.
    """
    job = _BatchJob(backend, plan.header.ranking, recorder, attempts, stop, progress)
    with stop.in_flight():
        if stop_after is None:
            elections, unsent = await _in_parts(job, plan)
        else:
            elections, unsent = await job.until(plan.rows, stop_after), frozenset()
        states, not_read_back = await _states_afterwards(job, plan, elections, unsent)
    results = tuple(
        Result(row, _with_read_back(election, states.get(row.tp)), states.get(row.tp))
        for row, election in zip(plan.rows, elections, strict=True)
    )
    return Elected(results, not_read_back)


def _with_read_back(election: Election, state: RowState | None) -> Election:
    """An unanswered election counts as done if the planned leader is then seen to lead."""
    if election.outcome is not Outcome.FAILED or state is None or state.leading is not Leading.RIGHT:
        return election
    detail = "; ".join(filter(None, ("it leads now, although its answer did not arrive", election.detail)))
    return election._replace(outcome=Outcome.ELECTED, leader=state.leader, detail=detail, in_doubt=False)


async def _in_parts(job: _BatchJob, plan: Plan) -> tuple[tuple[Election, ...], frozenset[TopicPartition]]:
    """All rows, some parts at once, and the rows of those parts for which nothing was sent.

    Raises BackendError if nothing was sent for any part.
    """
    parts = [replace(plan, rows=rows) for rows in election_parts(plan.rows)]
    turn = asyncio.Semaphore(PARTS_AT_ONCE)
    done = 0

    async def one(part: Plan) -> tuple[Election, ...]:
        nonlocal done
        async with turn:
            elections = await job.all(part.rows, None if len(parts) > 1 else job.progress)
            done += len(elections)
            if job.progress is not None and len(parts) > 1:
                job.progress("electing", done, len(plan.rows))
            return elections

    # Wait for every part, even if one fails or all are cancelled: each reverts what it wrote.
    outcomes = await asyncio.gather(*(one(part) for part in parts), return_exceptions=True)
    defect = next(
        (e for e in outcomes if isinstance(e, BaseException) and not isinstance(e, BackendError)), None
    )
    if defect is not None:
        raise defect
    if outcomes and all(isinstance(part, BackendError) for part in outcomes):
        raise next(part for part in outcomes if isinstance(part, BackendError))
    elections: dict[TopicPartition, Election] = {}
    unsent: set[TopicPartition] = set()
    for part, rows in zip(outcomes, parts, strict=True):
        failed = (Election(row.tp, Outcome.FAILED, -1, -1, str(part)) for row in rows.rows)
        elections.update((e.tp, e) for e in (part if isinstance(part, tuple) else failed))
        if not isinstance(part, tuple) or all(e.outcome is Outcome.NOT_ATTEMPTED for e in part):
            unsent.update(row.tp for row in rows.rows)
    return tuple(elections[row.tp] for row in plan.rows), frozenset(unsent)


async def _states_afterwards(
    job: _BatchJob, plan: Plan, elections: tuple[Election, ...], unsent: frozenset[TopicPartition]
) -> tuple[Mapping[TopicPartition, RowState], str | None]:
    """The state of the rows for which something was sent, or why it could not be read. One request for all
    rows: describing some partitions of a topic describes the whole topic.
    """
    rows = tuple(row for row in plan.rows if row.tp not in unsent)
    if not rows or all(e.outcome is Outcome.NOT_ATTEMPTED for e in elections if e.tp not in unsent):
        return {}, None
    try:
        return await _read_until_applied(job.backend, replace(plan, rows=rows), elections, job.progress), None
    except BackendError as error:
        return {}, str(error)


class _BatchJob(NamedTuple):
    backend: Backend
    ranking: Ranking
    recorder: Recorder
    attempts: int
    stop: StopRequest
    progress: Progress | None

    async def all(self, rows: Sequence[PlanRow], progress: Progress | None) -> tuple[Election, ...]:
        return await self.backend.designate(
            rows, self.ranking, self.recorder, attempts=self.attempts, stop=self.stop, progress=progress
        )

    async def until(self, rows: Sequence[PlanRow], most_failures: int) -> tuple[Election, ...]:
        """As :meth:`all`, but stops after this many failures: no batch has more rows than failures are left."""
        ended: list[Election] = []
        failed = 0
        while len(ended) < len(rows) and failed < most_failures and not self.stop:
            batch = rows[len(ended) : len(ended) + most_failures - failed]
            try:
                ended.extend(await self.all(batch, None))
            except BackendError as error:
                if not ended:
                    raise
                ended.extend(Election(row.tp, Outcome.FAILED, -1, -1, str(error)) for row in batch)
            failed = sum(1 for election in ended if election.outcome not in SUCCESS)
            if self.progress is not None:
                self.progress("electing", len(ended), len(rows))
        why = "stopped before its turn" if self.stop else f"not sent after {failed} failures"
        left = (Election(row.tp, Outcome.NOT_ATTEMPTED, -1, -1, why) for row in rows[len(ended) :])
        return (*ended, *left)


async def _read_until_applied(
    backend: Backend, plan: Plan, elections: Sequence[Election], progress: Progress | None
) -> Mapping[TopicPartition, RowState]:
    """Reads the states after the brokers have learned of what was just written.

    The last orders were reverted a moment ago. A state that is still old after some seconds is reported as it
    is.
    """
    done = {e.tp for e in elections if e.outcome is Outcome.ELECTED and e.reverted}
    meant = {row.tp: (row.leader, row.replicas) for row in plan.rows if row.tp in done}
    for pause in SETTLING_PAUSES:
        states = (await described(backend, [row.tp for row in plan.rows])).states
        if all((s.leader, s.replicas) == meant[s.tp] for s in states if s.tp in meant):
            break
        await asyncio.sleep(pause)
    else:
        states = (await described(backend, [row.tp for row in plan.rows])).states
    # An old leader that was known before is asked whether it has heard of its successor.
    watched = {row.tp for row in plan.rows if any(one.still_writes for one in row.candidates)}
    found: list[Survey] = []
    for leaders_only in (True, False):
        asked = tuple(state for state in states if (state.tp not in watched) is leaders_only)
        if asked:
            request = SurveyRequest(
                asked,
                SETTLE_SECONDS,
                Depth.LAST,
                log_dirs=False,
                leaders_only=leaders_only,
                likely_epochs=_leaders_epochs(plan),
            )
            found += (await backend.survey(request, progress)).surveys
    return _compared(plan, found)


def _leaders_epochs(plan: Plan) -> LikelyEpochs:
    """The epochs of the last records of the logs that the plan elects."""
    found: dict[int, dict[TopicPartition, int]] = {}
    for row in plan.rows:
        epoch = row.chosen.last_epoch
        if epoch is not None:
            found.setdefault(row.leader, {})[row.tp] = epoch
    return found


def _compared(plan: Plan, surveys: Sequence[Survey]) -> Mapping[TopicPartition, RowState]:
    return {state.tp: state for state in verify(plan, surveys)}


def note_elected(recorder: Recorder, entry: str, elected: Elected) -> None:
    """Records who leads after the elections of a plan."""
    recorder.after(entry, results_detail(election_results((r.election for r in elected.results), {})))
