"""The rows of the first pane, made on the backend's thread: thousands of decisions take their time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from backends.base.answers import Partitions
from console.app.session.view import Choosing, View
from console.reading.partition_row import (
    PartitionHealth,
    PartitionHealthCounts,
    PartitionRow,
    bare_row,
    count_partitions,
    leader_unknown_row,
    partition_row,
    unjudged_row,
)
from recovery.broker_load import BrokerLoad, broker_loads
from recovery.controller.rules import min_isr_from_config
from recovery.model import PartitionState, Survey, TopicPartition
from recovery.plan.importance import log_size
from widgets.fields import natural


@dataclass(frozen=True, slots=True)
class Rows:
    """``partitions`` as they are to stand, ``others``: those that are well too. ``made_of``: the survey that each
    row was made of. ``offline``, ``led``: whether partitions without a leader, and with one, are in trouble.
    ``loads``: what hangs on each broker, of the partitions that were ``counted``. ``counts``: how the partitions
    fare, and what to do first for them.
    """

    partitions: tuple[PartitionRow, ...] = ()
    choosing: Choosing = field(default_factory=Choosing)
    others: bool = False
    made_of: Mapping[TopicPartition, tuple[Survey, PartitionRow]] = field(default_factory=dict)
    offline: bool = False
    led: bool = False
    counted: Partitions | None = None
    loads: Mapping[int, BrokerLoad] = field(default_factory=dict)
    counts: PartitionHealthCounts = field(default_factory=PartitionHealthCounts)


def shaped(view: View, choosing: Choosing, known: Rows, *, others: bool) -> Rows:
    """The rows of that view: offline first, those before all that nobody can lead, then by how the others fare,
    the most important first of each.
    A row whose survey is the very same object is the very same row.
    """
    before = known.made_of if known.choosing == choosing else {}
    made: dict[TopicPartition, tuple[Survey, PartitionRow]] = {}
    rows: list[PartitionRow] = []
    lost = {} if view.reading is None else view.reading.offline_times.since
    surveys, verdicts = view.surveys, view.verdicts
    for state in view.troubled:
        tp = state.tp
        survey, lost_at = surveys.get(tp), lost.get(tp)
        since = view.since.get(tp) if lost_at is None else lost_at
        exact = lost_at is not None
        if survey is None:
            rows.append(_bare(state, view, since)._replace(exact=exact))
            continue
        by = view.judged.get(tp)
        judged = None if by is None or by.survey is not survey else verdicts.get(tp)
        old = before.get(tp)
        same = old is not None and old[0] is survey and old[1].judged is judged
        if old is not None and same:
            row = old[1] if old[1].since == since else old[1]._replace(since=since, exact=exact)
        elif survey.state.offline and judged is None:
            row = unjudged_row(survey, since)._replace(exact=exact)
        else:
            row = partition_row(survey, choosing.ranking, choosing.strategy, since, judged)
            row = row._replace(exact=exact)
        made[tp] = (survey, row)
        rows.append(row)
    if view.partitions is not None:
        reported = view.partitions.unreachable_leaders
        rows.extend(leader_unknown_row(tp, why) for tp, why in sorted(reported.items()))
    rank = choosing.importance.rank
    topics = {topic: natural(topic) for topic in {row.state.topic for row in rows}}
    rows.sort(
        key=lambda row: (
            _WORST_FIRST[row.health],
            not _nobody_can_lead(row),
            rank(row.state.topic),
            -_size(row),
            topics[row.state.topic],
            row.state.partition,
        )
    )
    if others and view.partitions is not None:
        there = {state.tp for state in view.troubled}
        topics |= {topic: natural(topic) for topic in {state.topic for state in view.partitions.states}}
        well = [state for state in view.partitions.states if state.tp not in there]
        well.sort(key=lambda state: (topics[state.topic], state.partition))
        rows.extend(_bare(state, view, None) for state in well)
    partitions = tuple(rows)
    counts = known.counts
    if partitions == known.partitions:
        partitions = known.partitions
    else:
        counts = count_partitions(partitions)
    offline = any(state.offline for state in view.troubled)
    led = any(not state.offline for state in view.troubled)
    listed = view.partitions
    same = listed is known.counted
    loads = known.loads if same else broker_loads(() if listed is None else listed.states)
    return Rows(partitions, choosing, others, made, offline, led, listed, loads, counts)


_WORST_FIRST = {health: number for number, health in enumerate(PartitionHealth)}


def _nobody_can_lead(row: PartitionRow) -> bool:
    """No replica that could be elected now has answered."""
    return row.state.offline and row.decision is not None and row.now is None


def _size(row: PartitionRow) -> int:
    return 0 if row.survey is None else log_size(row.survey)


def _bare(state: PartitionState, view: View, since: float | None) -> PartitionRow:
    """The row of a partition whose logs were not asked, with its min ISR where its topic's configuration was."""
    config = None if view.reading is None else view.reading.configs.get(state.topic)
    return (
        bare_row(state, since)
        if config is None
        else bare_row(state, since, min_isr_from_config(state, config))
    )
