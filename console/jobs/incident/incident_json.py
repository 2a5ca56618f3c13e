"""An incident as ``ktriage.report/3``."""

from __future__ import annotations

from collections.abc import Iterator

from console.jobs.incident.affected_groups import IncidentGroup, affected_groups, groups_unread
from console.jobs.incident.incident import ElectionRound, Incident, RescueState
from console.jobs.incident.incident_fixes import repeated_offsets, repeated_text
from console.jobs.incident.incident_open import disk_states, gap_lines, next_commands, open_items
from console.jobs.incident.journal_report import run_json
from console.jobs.timeline.timeline_report import event_fields
from console.output.json_document import document
from console.reading.unread_disks_json import unread_disks_json
from recovery.metadata_log.outages import Outage
from recovery.model import NO_EPOCH


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
            "outages": [_outage_json(outage) for outage in incident.outages],
            "elections": [row for one in incident.rounds for row in _elections_json(one)],
            "plans": [
                {"file": str(file.path), "plan": file.plan.header.plan_id, "sha256": file.digest}
                for file in incident.plans
                if file.plan is not None
            ],
            "affectedGroups": [_group_json(one) for one in affected_groups(incident)],
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


def _outage_json(outage: Outage) -> dict[str, object]:
    return {
        "topic": outage.tp.topic,
        "partition": outage.tp.partition,
        "sinceMs": outage.since_ms,
        "untilMs": outage.until_ms,
        "leaderBefore": outage.leader_before,
        "leaderAfter": outage.leader_after,
        "unclean": outage.unclean,
        "otherLogDir": outage.other_log_dir,
        "deleted": outage.deleted,
    }


def _elections_json(one: ElectionRound) -> Iterator[dict[str, object]]:
    for election in one.elections:
        row = one.row(election)
        yield {
            "run": one.run.run_id,
            "topic": election.tp.topic,
            "partition": election.tp.partition,
            "plan": one.begun.detail.get("planId"),
            "plannedLeader": election.planned_leader,
            "leaderBefore": election.leader_before,
            "leader": election.leader,
            "leaderEpoch": election.leader_epoch,
            "outcome": election.outcome or None,
            "lossAtLeast": election.at_least,
            "lossAtMost": election.at_most,
            "acknowledged": election.acknowledged or None,
            "reason": None if row is None else row.reason,
        }


def _group_json(one: IncidentGroup) -> dict[str, object]:
    group = one.group
    return {
        "group": group.group,
        "topic": group.tp.topic,
        "partition": group.tp.partition,
        "offset": group.offset,
        "epoch": None if group.epoch == NO_EPOCH else group.epoch,
        "place": group.place.name.lower().replace("_", "-"),
        "goBackTo": group.go_back_to,
        "putRight": one.put_right,
    }


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
