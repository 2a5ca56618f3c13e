"""Consumer groups that the elections of an incident affect, as its plans have them, and which were put right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from backends.base.answers import Outcome
from console.jobs.incident.incident import Incident, PlanFile
from console.journal.change_kinds import COMMIT_OFFSETS
from console.journal.run_records import RunRecord
from recovery.model import TopicPartition
from recovery.plan.values import AffectedGroup


class IncidentGroup(NamedTuple):
    """A group and the plan that names it. ``put_right``: the last offset that the journal has committed for it is
    not beyond the one to go back to.
    """

    group: AffectedGroup
    file: PlanFile
    put_right: bool


def affected_groups(incident: Incident) -> tuple[IncidentGroup, ...]:
    """Of the partitions that were elected as planned; each group and partition once, by the newest plan."""
    committed = dict(_committed(incident.runs))
    found: dict[tuple[str, TopicPartition], IncidentGroup] = {}
    for one in incident.rounds:
        plan = None if one.file is None else one.file.plan
        elected = {e.tp: e.planned_leader for e in one.elections if e.outcome == Outcome.ELECTED}
        for group in () if plan is None else plan.affected:
            if elected.get(group.tp) == group.leader and one.file is not None:
                key = (group.group, group.tp)
                at = committed.get(key)
                right = at is not None and group.go_back_to is not None and at <= group.go_back_to
                found[key] = IncidentGroup(group, one.file, right)
    return tuple(found[key] for key in sorted(found))


def groups_unread(incident: Incident) -> tuple[str, ...]:
    """Why there may be other affected groups, by the plans that were carried out."""
    plans = [one.file.plan for one in incident.rounds if one.file is not None and one.file.plan is not None]
    return tuple(dict.fromkeys(why for plan in plans for why in plan.groups_unread))


def _committed(runs: Iterable[RunRecord]) -> Iterator[tuple[tuple[str, TopicPartition], int]]:
    """The offsets that were committed for groups and partitions, the oldest first."""
    for run in runs:
        for begun, end in run.entries(COMMIT_OFFSETS):
            if end is None:
                continue
            failed = {
                (str(one.get("group")), one.get("partition")) for one in end.result.get("notCommitted", ())
            }
            for row in begun.detail.get("offsets", ()):
                tp = TopicPartition(str(row.get("topic")), row.get("partition", -1))
                at = row.get("after", {}).get("offset")
                if isinstance(at, int) and (str(row.get("group")), str(tp)) not in failed:
                    yield (str(row.get("group")), tp), at
