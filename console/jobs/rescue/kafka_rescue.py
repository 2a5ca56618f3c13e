"""The rescue before Kafka's own unclean elections: the leader that Kafka takes is known before.

It is the first live replica in assignment order, where ISR and ELR have nobody alive (PartitionChangeBuilder).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from backends.base.answers import Election, Outcome
from backends.base.protocol import Backend, Progress
from console.provenance import plan_header
from console.reading.partition_selection import surveyed
from console.reading.plan_comparison import PreparedPlan, checked_just_now
from recovery.model import PartitionState, Survey, TopicPartition
from recovery.plan.make import plan_of_bare
from recovery.plan.values import BarePlan, BareRow
from recovery.ranking import Ranking
from recovery.strategy import Strategy

SURVEY_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class ExpectedElections:
    """The elections as they are expected, as a plan that was just made. ``unread``: the partitions of which nothing
    can be read first, each with why.
    """

    prepared: PreparedPlan
    unread: Mapping[TopicPartition, str] = field(default_factory=dict)

    def only(self, partitions: Container[TopicPartition]) -> ExpectedElections:
        """The same for some of the partitions."""
        holding = self.prepared.holding
        rows = tuple(row for row in holding.rows if row.tp in partitions)
        return ExpectedElections(
            replace(self.prepared, holding=replace(holding, rows=rows)),
            {tp: why for tp, why in self.unread.items() if tp in partitions},
        )

    def unexpected(self, elections: Iterable[Election]) -> Sequence[Election]:
        """Those that elected somebody else: what they cut off was not read."""
        expected = {row.tp: row.leader for row in self.prepared.plan.rows}
        return [
            one
            for one in elections
            if one.outcome is Outcome.ELECTED
            and one.tp in expected
            and one.leader not in (-1, expected[one.tp])
        ]


async def expected_elections(
    cluster: Backend, cluster_id: str, states: Iterable[PartitionState], progress: Progress | None
) -> ExpectedElections:
    """Surveys the partitions that have no leader. Raises BackendError."""
    offline = tuple(state for state in states if state.offline)
    surveys = await surveyed(cluster, offline, progress, SURVEY_SECONDS)
    leaders = {survey.tp: leader for survey in surveys if (leader := _first_live(survey)) is not None}
    bare = BarePlan(tuple(BareRow(tp, leader) for tp, leader in leaders.items()))
    header = plan_header(cluster_id, Ranking.LAST_RECORD, Strategy.AGGRESSIVE)
    plan = plan_of_bare(header, bare, surveys, {})
    unread = {row.tp: row.reason for row in plan.not_elected if row.tp in leaders}
    return ExpectedElections(checked_just_now(replace(plan, not_elected=())), unread)


def _first_live(survey: Survey) -> int | None:
    return next((replica.broker for replica in survey.replicas if replica.electable), None)
