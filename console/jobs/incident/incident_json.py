"""An incident as ``ktriage.report/3``."""

from __future__ import annotations

from collections.abc import Iterator

from console.jobs.incident.affected_groups import affected_groups, groups_unread
from console.jobs.incident.incident import Incident, RescueState
from console.jobs.incident.incident_fixes import AFFECTED_GROUP, repeated_offsets, repeated_text
from console.jobs.incident.incident_open import disk_states, gap_lines, next_commands, open_items
from console.jobs.incident.incident_report import OUTAGE, decided_fields
from console.jobs.incident.journal_report import run_json
from console.jobs.timeline.timeline_report import event_fields
from console.output.json_document import document
from console.reading.unread_disks_json import unread_disks_json
from widgets.fields import json_of


def report_document(incident: Incident) -> Iterator[str]:
    """All of it, nothing left out."""
    sources = incident.sources
    timeline = sources.timeline
    return document(
        "report",
        {
            "clusterId": sources.cluster_id,
            "sinceMs": sources.since_ms,
            "untilMs": sources.until_ms,
            "virtual": sources.virtual,
            "gaps": list(gap_lines(incident)),
            "open": list(open_items(incident)),
            "next": list(next_commands(incident)),
            "unreadDisks": unread_disks_json(incident.unfinished.unread_disks, disk_states(incident)),
            "outages": list(map(json_of(OUTAGE), incident.outages)),
            "elections": [
                row for one in incident.rounds for row in map(json_of(decided_fields(one)), one.elections)
            ],
            "plans": [
                {"file": str(file.path), "plan": file.plan.header.plan_id, "sha256": file.digest}
                for file in incident.plans
                if file.plan is not None
            ],
            "affectedGroups": list(map(json_of(AFFECTED_GROUP), affected_groups(incident))),
            "groupsUnread": list(groups_unread(incident)),
            "rescues": [_rescue_json(rescue) for rescue in incident.rescues],
            "restores": [
                {
                    "at": one.at,
                    "directory": one.directory,
                    "options": one.words,
                    "target": one.target,
                    "records": one.records,
                }
                for one in incident.restores
            ],
            "repeated": list(map(repeated_text, repeated_offsets(incident))),
            "runs": [run_json(sources.cluster_id, run) for run in incident.runs],
            "events": []
            if timeline is None
            else [event_fields(event, timeline) for event in incident.events],
        },
    )


def _rescue_json(rescue: RescueState) -> dict[str, object]:
    return {
        "directory": str(rescue.directory),
        "problem": rescue.problem or None,
        "offsets": sum(branch.offsets for branch in rescue.branches if branch.whole),
        "branches": [
            {"branch": branch.name, "offsets": branch.offsets, "whole": branch.whole}
            for branch in rescue.branches
        ],
        "unread": list(rescue.unread),
        "restored": [{"target": target, "records": records} for target, records in rescue.restored],
    }
